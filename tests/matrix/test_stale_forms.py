"""Every form of the console that edits an object says of which version it is, and a stale one writes nothing.

The pages of a world with one object of each kind are opened by a platform admin, and every form on them that is sent by
POST is looked at: it carries a version, or it stands below with the reason why it needs none.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from unittest.mock import patch
from urllib.parse import urlencode, urlsplit

import pytest
from django.db import transaction
from django.urls import resolve

from tests.api.page_forms import PageForm, forms_of
from tests.matrix import expectations
from tests.matrix.recorder import writes
from tests.matrix.stage import Route, Stage, address, routes
from tidesched_web.changes import adoption

WHO = "platform-admin"
TYPED = "typed by a person who was not the first"

# Forms that make something, or act on what they name whatever was changed of it meanwhile.
WITHOUT = {
    "makes": (
        "tenant_new", "project_new", "business_line_new", "user_new", "queue_new", "grant_new", "card_type_new",
        "priority_class_new", "priority_class_defaults", "tide_plan_new", "members", "member_invite", "tokens",
        "cluster_new", "provider_new", "sign_in_rule_new",
    ),
    "makes a draft, which is reviewed": (
        "tree_file", "adoption", "quota_review", "gang_try", "tide_plan_switch",
        "tide_plan_take_back", "tide_plan_delete",
    ),
    "an act that happens once, on what it names": (
        "acknowledge_alert", "resolve_alert", "acknowledge_platform_alert", "resolve_platform_alert", "job_cancel",
        "token_revoke", "member_link", "user", "user_mfa_reset", "policy_release", "audit_verify", "audit_seal",
        "audit_drop", "connection_test", "grant_delete", "gang_withdraw",
    ),
    "says which of two states it asks for; of two people one wins": ("pause",),
    "replaces the whole connection by one that was tested, with its test": (
        "cluster_offer", "connection_offer", "connection_replace",
    ),
    "names the cluster, or leaves it without credentials, however it was set": ("cluster_remove", "disconnect"),
    "a person's own settings, or their session": ("profile", "density", "password", "sign_out", "sign_in"),
    "asks a question, writes nothing": (
        "change_impact", "change_day", "change_server", "change_steps", "quota_check", "quota_table", "tide_plan_week",
    ),
    "says which live values it saw of each object": ("drift_decide",),
    "the link that was sent": ("invite",),
}  # fmt: skip
# What edits an object, closes it, or deletes it.
EDITS = {
    "tenant_edit", "tenant_delete", "tenant_approval", "project_edit", "project_delete", "business_line_edit",
    "business_line_delete", "queue_edit", "queue_close", "queue_delete", "card_type_edit", "card_type_delete",
    "priority_class_edit", "priority_class_replace", "priority_class_delete", "member_role", "member_remove",
    "user_edit", "user_switch", "rules", "policy", "policy_roll_back", "cluster_settings", "tide_plan_edit",
    "change_act",
}  # fmt: skip
EXCUSED = {name for names in WITHOUT.values() for name in names}
# This page lists several objects: what became of one of them is a message on it.
AS_A_MESSAGE = {"member_role"}
# Its reason is asked for below the answer to a check.
CHECKED_FIRST = {"policy"}
VERSION = re.compile(r"(?:\w+-)?(?:version|revision)")
PAGES = [route for route in routes() if route.name.startswith("console:") and route.name not in expectations.ELSEWHERE]


@pytest.fixture
def stage(db: None) -> Iterator[Stage]:
    with patch.object(adoption, "unmanaged", lambda cluster, known: []):  # the cluster does not answer
        yield Stage()


def name_of(form: PageForm) -> str:
    return resolve(urlsplit(form.action).path).url_name or ""


def forms_sent(stage: Stage, route: Route) -> Iterator[tuple[str, PageForm]]:
    """What the page of a route sends by POST, with the names of the addresses."""
    url = address(stage, route)
    answer = stage.client(WHO).get(url)
    if answer.status_code == 200 and "text/html" in answer.headers.get("Content-Type", ""):
        for form in forms_of(answer.content.decode(), url):
            if form.method == "post":
                yield name_of(form), form


def test_every_form_that_edits_carries_a_version_and_a_stale_one_writes_nothing(stage: Stage) -> None:
    wrong, seen = [], set()
    for route in PAGES:
        for name, form in forms_sent(stage, route):
            fields = [field for field, value in form.fields.items() if VERSION.fullmatch(field) and value]
            if name in EXCUSED or (name, form.action) in seen:
                continue
            seen.add((name, form.action))
            if not fields:
                wrong.append(f"{name}: no version, two people at once would lose an edit")
            # A page of a deletion that something prevents asks for no reason, and sends nothing.
            elif "reason" in form.fields or not name.endswith("_delete"):
                wrong += [f"{name}: {fault}" for fault in faults_of_stale(stage, name, form, fields[0])]
    assert wrong == [], chr(10).join(wrong)
    assert {name for name, _action in seen} >= EDITS, "a page has lost its form"


def faults_of_stale(stage: Stage, name: str, form: PageForm, field: str) -> Iterator[str]:
    """Send a form as it is, with a reason and another version than there is."""
    fields = (*form.fields, "reason") if name in CHECKED_FIRST else form.fields
    typed = {one: TYPED for one in fields if one.rpartition("-")[2] == "reason"}
    present = form.fields[field]
    sent = form.fields | typed | {field: str(int(present) + 1), "act": "apply", "confirm": "on"}
    if "aliases" in sent:
        sent["aliases"] = "another-name"  # where nothing differs, nothing is written
    with transaction.atomic():
        with writes() as written:
            answer = stage.client(WHO).post(
                form.action, urlencode(sent), content_type="application/x-www-form-urlencoded"
            )
        if written:
            yield f"writes {written}"
        if name in AS_A_MESSAGE:
            told = stage.client(WHO).get(answer.headers["Location"]).content.decode()
            if "choose again" not in told:
                yield f"{answer.status_code}, and does not say what to do"
        elif answer.status_code != 412:
            yield f"{answer.status_code} instead of 412"
        else:
            page = html.unescape(answer.content.decode())
            if "Next:" not in page:
                yield "does not say what to do"
            if not all(text in page for text in typed.values()):
                yield "forgets what was typed"
            again = [one for one in forms_of(answer.content.decode(), form.action) if name_of(one) == name]
            if present not in {one.fields.get(field) for one in again}:
                yield "stays stale"
        transaction.set_rollback(True)


def test_every_excuse_is_of_an_address_that_there_is() -> None:
    known = {route.name.rpartition(":")[2] for route in routes()}
    assert EXCUSED - known == set()
    assert EDITS - known == set()
    assert set() == EXCUSED & EDITS
