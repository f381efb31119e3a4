"""The audit log, tide plans, the tree as a file and adoption × everybody: who opens them, whose POST does something."""

from __future__ import annotations

import datetime as dt
from typing import Any
from unittest.mock import patch

import pytest
from django.db import transaction
from django.utils import timezone

from tests.web.console import world as story
from tests.web.console.cast import L40S
from tests.web.console.test_authority_manage import CAST, EVERYBODY, Row, caller, done
from tidesched_web.accounts.models import Membership, Tenant, TenantRole, User
from tidesched_web.audit import segment_services
from tidesched_web.audit import services as audit
from tidesched_web.changes import adoption
from tidesched_web.console import governance_urls
from tidesched_web.quota.services.tide_plans import write_tide_plan

pytestmark = pytest.mark.django_db

IN_CLUSTER = EVERYBODY | {"newcomer": 404}
BY_ALL_SEEING = EVERYBODY | dict.fromkeys(("lead", "member", "stranger", "newcomer"), 403)
CLUSTER_BY_ALL_SEEING = BY_ALL_SEEING | {"newcomer": 404}
BY_ADMIN = BY_ALL_SEEING | {"auditor": 403}
CLUSTER_BY_ADMIN = BY_ADMIN | {"newcomer": 404}
# About a queue of Search: a member of Research does not see that there is one.
OF_SEARCH = IN_CLUSTER | {"stranger": 404}
OF_SEARCH_BY_ADMIN = OF_SEARCH | dict.fromkeys(("auditor", "lead", "member"), 403)
ONLY_POST = EVERYBODY | dict.fromkeys(CAST, 405)
PLAN = {
    "name": "days", "time_zone": "UTC", "reason": "drill", "layer": "0", "l0-days": "mon", "l0-start": "08:00",
    "l0-end": "20:00", "l0-line": "0", "l0-x0-queue": "search-suggest-inference", "l0-x0-card": L40S,
    "l0-x0-act": "take", "l0-x0-cards": "1",
}  # fmt: skip
FILE = {"text": "format: 1\n", "format": "yaml", "keep": "on", "act": "compare"}
ROWS = {
    "audit": Row("audit/", EVERYBODY),
    "audit_entry": Row("audit/{entry}/", EVERYBODY | {"stranger": 404, "newcomer": 404}),
    "audit_integrity": Row("audit/integrity/", BY_ALL_SEEING),
    "audit_verify": Row("audit/integrity/verify/", ONLY_POST, done(BY_ALL_SEEING)),
    "audit_seal": Row("audit/integrity/seal/", ONLY_POST, done(BY_ADMIN), {"days": "0", "reason": "drill"}),
    "audit_drop": Row("audit/segments/{segment}/drop/", BY_ADMIN, done(BY_ADMIN), {"reason": "drill", "confirm": "on"}),
    "tree_file": Row(
        "clusters/demo/tree/", IN_CLUSTER, IN_CLUSTER | dict.fromkeys(("auditor", "member", "stranger"), 403), FILE
    ),
    "tree_export": Row("clusters/demo/tree/export/", IN_CLUSTER),
    "adoption": Row("clusters/demo/adoption/", CLUSTER_BY_ALL_SEEING, CLUSTER_BY_ADMIN | {"admin": 400}, {}),
    "drift": Row("clusters/demo/drift/", IN_CLUSTER),
    "drift_decide": Row(
        "clusters/demo/drift/decide/",
        ONLY_POST,
        CLUSTER_BY_ADMIN | {"admin": 400},
        {"act": "ignore", "reason": "drill"},
    ),
    "tide_plans": Row("clusters/demo/tide-plans/", IN_CLUSTER),
    "tide_plan_new": Row("clusters/demo/new/tide-plan/", CLUSTER_BY_ADMIN, done(CLUSTER_BY_ADMIN), PLAN),
    "tide_plan_week": Row("clusters/demo/new/tide-plan/week/", ONLY_POST, CLUSTER_BY_ADMIN, PLAN),
    "tide_plan": Row("clusters/demo/tide-plans/nights/", OF_SEARCH),
    "tide_plan_preview": Row("clusters/demo/tide-plans/nights/preview/", OF_SEARCH),
    "tide_plan_edit": Row(
        "clusters/demo/tide-plans/nights/edit/", OF_SEARCH_BY_ADMIN, done(OF_SEARCH_BY_ADMIN), PLAN | {"version": "1"}
    ),
    "tide_plan_switch": Row(
        "clusters/demo/tide-plans/nights/switch/", OF_SEARCH_BY_ADMIN, done(OF_SEARCH_BY_ADMIN), {"reason": "drill"}
    ),
    "tide_plan_delete": Row(
        "clusters/demo/tide-plans/nights/delete/", OF_SEARCH_BY_ADMIN, done(OF_SEARCH_BY_ADMIN), {"reason": "drill"}
    ),
}


@pytest.fixture
def world() -> story.World:
    made = story.full()
    made.lead = User.objects.create(username="lead")
    search = Tenant.objects.get(slug="search")
    Membership.objects.create(user=made.lead, tenant=search, role=TenantRole.ADMIN)
    layer: dict[str, Any] = {"days": ["mon"], "start": "22:00", "end": "07:00"}
    layer["quota"] = {"search-suggest-inference": {L40S: {"add": -1}}}
    write_tide_plan(cluster=made.cluster, name="nights", document={"layers": [layer]}, actor="tests")
    entry = audit.append(
        chain="platform", actor="a", action="tenant.update", object_type="tenant", object_id=1, tenant_ids=[search.pk]
    )
    with patch.object(segment_services, "YOUNGEST", dt.timedelta(0)):
        segment = segment_services.seal(before=timezone.now(), actor="tests")[0]
    segment_services.mark_exported(segment=segment, actor="tests")
    made.named = {"entry": entry.pk, "segment": segment.pk}
    return made


def asked(world: story.World, row: Row, method: str) -> dict[str, int]:
    """The answer to everybody; what one of them changed is taken back before the next one asks."""
    path = "/" + row.path.format(**world.named)
    answers = {}
    with patch.object(adoption, "unmanaged", lambda cluster, known: []):
        for who in CAST:
            with transaction.atomic():
                client = caller(world, who)
                answers[who] = (client.get(path) if method == "get" else client.post(path, row.body or {})).status_code
                transaction.set_rollback(True)
    return answers


def test_every_page_has_its_row() -> None:
    assert {pattern.name for pattern in governance_urls.urlpatterns} == set(ROWS)


def test_who_opens_which_page(world: story.World, subtests: pytest.Subtests) -> None:
    for name, row in ROWS.items():
        with subtests.test(name):
            assert asked(world, row, "get") == row.get


def test_whose_post_does_something(world: story.World, subtests: pytest.Subtests) -> None:
    for name, row in ROWS.items():
        if row.post is not None:
            with subtests.test(name):
                assert asked(world, row, "post") == row.post
