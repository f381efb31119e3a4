"""The text of each page of the console, for an admin: nothing is there, a cluster without a session, and all of it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from django.db import transaction

from tests.api.cast import ApiClient
from tests.api.story import Story
from tests.matrix.expectations import ELSEWHERE, EXPECTED
from tests.matrix.stage import address, routes
from tests.traces import expected, page_text
from tests.web.console import world, world_drift
from tidesched_web.accounts.models import User

ROUTES = {one.name: one for one in routes() if not one.name.startswith("api") and one.name not in ELSEWHERE}
SIGNS_OUT = {("console:sign_out", "post"), ("account_logout", "post")}
# Where the frame around the page is looked at too.
FRAMED = ("console:clusters", "console:cluster_overview")
# Pages of the large world: what they say of gangs, figures and alerts of every kind.
LARGE = {
    "overview": "", "quota": "quota/", "quota-map": "quota/?view=map", "quota-search": "quota/?q=search&card=H200",
    "queues": "queues/", "queue": "queues/search-training/", "queue-inference": "queues/search-rank-inference/",
    "gangs": "gangs/", "gangs-waiting": "gangs/?order=waiting", "reclaims": "reclaims/", "nodes": "nodes/",
    "sessions": "sessions/", "session": "sessions/1479/", "alerts": "alerts/", "drift": "drift/",
    "search": "search/?q=lap2", "tenant-use": "tenants/search/use/",
}  # fmt: skip


@dataclass
class Opened:
    """Where each page is, for the admin; `post`: its form is sent without its fields."""

    addresses: dict[str, str]
    method: str = "get"


def _named(method: str) -> list[str]:
    return [name for name in ROUTES if EXPECTED[name, method][-1] != "405" and (name, method) not in SIGNS_OUT]


def _of_no_object(*parameters: str) -> Opened:
    """The pages that name no object but a cluster; the clusters and the home page in any case."""
    paths = {name: ROUTES[name].pattern for name in _named("get")}
    taking = [name for name, path in paths.items() if re.findall(r"<([^>]+)>", path) == list(parameters)]
    named = [*taking, "console:clusters", "console:overview"]
    return Opened({name: "/" + paths[name].replace("<slug:slug>", "demo") for name in named})


def _nothing() -> Opened:
    User.objects.create(username="admin", platform_role="admin")
    return _of_no_object()


def _empty() -> Opened:
    world.bare()
    return _of_no_object("slug:slug")


def _filled(method: str = "get") -> Opened:
    story = Story()
    return Opened({name: address(story, ROUTES[name]) for name in _named(method)}, method)


def _large() -> Opened:
    full = world.full()
    world_drift.meddled(full)
    found = {name: f"/clusters/demo/{path}" for name, path in LARGE.items()}
    for name, gang in full.gangs.items():
        if gang.reason_code or name == "search/embed-lap2-007":
            found[f"gang-{name.replace('/', '-')}"] = f"/clusters/demo/gangs/{gang.pk}/"
    for number, reclaim in enumerate(full.reclaims[:2] + full.reclaims[-2:]):
        found[f"reclaim-{number}"] = f"/clusters/demo/reclaims/{reclaim.pk}/"
    return Opened(found)


WORLDS: dict[str, Callable[[], Opened]] = {
    "nothing": _nothing, "empty": _empty, "filled": _filled, "sent-empty": lambda: _filled("post"), "large": _large,
}  # fmt: skip


@pytest.fixture(scope="module", params=WORLDS)
def opened(request, django_db_setup, django_db_blocker):
    with django_db_blocker.unblock(), expected.standing_world(WORLDS[request.param]) as found:
        yield found


def test_pages(opened, request, db, subtests):
    folder = f"pages/{request.node.callspec.params['opened']}"
    admin = User.objects.get(username="admin")
    for name, path in opened.addresses.items():
        with subtests.test(name), transaction.atomic():
            answer = ApiClient(admin).generic(opened.method.upper(), path)
            kind, text = expected.kind_of(answer), expected.content_of(answer)
            if kind == "text/html":
                text = page_text.text_of(text, framed=name in FRAMED)
            heading = f"{path}\n{answer.status_code} {kind} {answer.headers.get('Location', '')}"
            expected.check(f"{folder}/{name.rpartition(':')[2]}", f"{heading}\n{text}")
            transaction.set_rollback(True)
    expected.check_names(folder, [name.rpartition(":")[2] for name in opened.addresses])
