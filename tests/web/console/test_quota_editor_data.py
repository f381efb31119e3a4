"""What the page of the quota editor fetches: once the whole grid, afterwards what moved."""

from __future__ import annotations

import pytest

from tests.web.console.cast import H200
from tests.web.console.test_changes import act, drafted
from tests.web.console.test_pages import client_of
from tidesched_web.accounts.models import Membership
from tidesched_web.quota.models import Queue
from tidesched_web.scheduling.models import QueueUsage

pytestmark = pytest.mark.django_db
DATA = "/clusters/demo/quota/edit/data/"
RANK, OTHERS = "search-rank-inference", "foundation-training"


def use(world, name: str, milli: int) -> None:
    QueueUsage.objects.filter(queue=world.queues[name], card=H200).update(allocated=milli)


def test_use_and_what_tide_plans_turn_move_without_an_edit(world) -> None:
    client = client_of(world.admin)
    whole = client.get(DATA).json()
    again = client.get(DATA, headers={"If-None-Match": whole["etag"]})
    assert (again.status_code, again.content) == (304, b"")

    use(world, RANK, 3000)
    Queue.objects.filter(name=RANK).update(tide={H200: 5})
    moved = client.get(DATA, headers={"If-None-Match": whole["etag"]})
    assert moved.status_code == 200
    assert set(moved.json()) == {"version", "etag", "live"}, "neither rows nor words come again"
    live = moved.json()["live"]
    assert (live["use"][RANK][H200], live["effective"][RANK]) == (3.0, {H200: 5})
    assert client.get(DATA, headers={"If-None-Match": moved.json()["etag"]}).status_code == 304
    row = next(row for row in client.get(DATA).json()["rows"] if (row["kind"], row["name"]) == ("queue", RANK))
    column = str([column["title"] for column in whole["columns"]].index(H200))
    assert (row["use"][column], row["effective"][column]) == (3.0, 5)


def test_who_wrote_since_is_told_to_a_page_that_has_an_older_version(world) -> None:
    client = client_of(world.admin)
    whole = client.get(DATA).json()
    assert whole["writers"] == []
    for figure in (3, 4):
        edits = {f"queue/{RANK}": {"card_quota": {H200: figure}}}
        act(client, drafted(client, edits), "apply", reason="x", when="now")
    fresh = client.get(DATA, headers={"If-None-Match": whole["etag"]}).json()
    assert [(one["by"], one["edits"]) for one in fresh["writers"]] == [
        (world.admin.username, {f"queue/{RANK}": {"card_quota": {H200: figure}}}) for figure in (4, 3)
    ]
    assert all(0 <= one["seconds"] < 600 for one in fresh["writers"])
    Membership.objects.filter(user=world.member).update(role="admin")
    other = {f"queue/{OTHERS}": {"weight": 7}}
    act(client, drafted(client, other), "apply", reason="x", when="now")
    seen = client_of(world.member).get(DATA, headers={"If-None-Match": fresh["etag"]}).json()
    assert seen["writers"] == [], "of another tenant"


def test_a_tenant_admin_gets_what_moves_in_their_own_queues(world) -> None:
    Membership.objects.filter(user=world.member).update(role="admin")
    client = client_of(world.member)
    etag = client.get(DATA).json()["etag"]
    use(world, OTHERS, 1000)
    Queue.objects.filter(name=OTHERS).update(tide={H200: 5})
    assert client.get(DATA, headers={"If-None-Match": etag}).status_code == 304
    use(world, RANK, 1000)
    live = client.get(DATA, headers={"If-None-Match": etag}).json()["live"]
    assert OTHERS not in live["use"] | live["effective"]
    assert live["use"][RANK][H200] == 1.0
