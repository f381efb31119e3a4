"""The quota tree: sums, badges, folding levels, filters, and what a reader may not see."""

from __future__ import annotations

import csv
import io
import json
import re

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from tests.web.console import world as story
from tests.web.console.cast import H200
from tests.web.console.test_pages import MAX_QUERIES, WRITER, client_of
from tidesched_web.accounts.models import Project
from tidesched_web.console import quota_tree
from tidesched_web.quota.models import CardQuota, Queue
from tidesched_web.scheduling.models import QueueUsage
from tidesched_web.scheduling.usage_selectors import usage_now

pytestmark = pytest.mark.django_db
TREE = "/clusters/demo/quota/"


def keys(page: str) -> list[str]:
    return re.findall(r'data-key="([^"]+)"', page)


def rows(client: Client, query: str = "") -> list[dict[str, str]]:
    text = client.get(f"{TREE}?format=csv{query}").content.decode("utf-8-sig")
    return list(csv.DictReader(io.StringIO(text)))


def test_a_place_without_a_limit_claims_what_stands_below_it(world) -> None:
    found = {
        (row["name"], row["level"], row["card"]): row for row in rows(client_of(world.admin), "&service_type=inference")
    }
    root = found["inference", "service", H200]
    # Search has 20 of its own although its queues hold 16; Shop has 12.
    assert (root["quota"], root["assigned"]) == ("48", "32")
    search = found["search", "tenant", H200]
    assert (search["quota"], search["assigned"], search["allocated"]) == ("20", "16", "12.0")
    assert found["maps", "tenant", "NVIDIA-L40S"]["quota"] == "", "no limit of its own"
    assert found["search-rank-inference", "project", H200]["quota"] == "16"


def turn(world: story.World, name: str, more: int) -> int:
    """A tide plan makes the H200 quota of a queue other than its base; the base."""
    base = CardQuota.objects.get(queue=world.queues[name], card_type__name=H200).cards
    Queue.objects.filter(name=name).update(tide={H200: base + more})
    return base


def test_sums_above_queues_are_of_the_quota_that_holds_now(world) -> None:
    client = client_of(world.admin)
    before = {(row["service_type"], row["level"], row["name"]): row for row in rows(client, f"&card={H200}")}
    turn(world, "search-training", 3)
    turn(world, "search-rank-inference", -2)
    after = {(row["service_type"], row["level"], row["name"]): row for row in rows(client, f"&card={H200}")}
    for place, more in (
        (("training", "tenant", "search"), 3),
        (("training", "service", "training"), 3),
        (("inference", "project", "search-rank-inference"), -2),
    ):
        if place == ("training", "service", "training") and before["training", "tenant", "search"]["quota"]:
            more = 0  # noqa: PLW2901 - a tenant with a limit claims the limit
        was = int(before[place]["assigned"])
        assert int(after[place]["assigned"]) == was + more, place
        assert after[place]["base"] == (str(was) if more else ""), place
    # The project has a limit, which is all that the tenant assigns to it.
    assert after["inference", "tenant", "search"]["assigned"] == before["inference", "tenant", "search"]["assigned"]
    page = client.get(TREE).content.decode()
    assert f"base {before['training', 'tenant', 'search']['assigned']}" in page


def test_borrowed_is_counted_from_the_quota_that_the_newest_session_saw(world) -> None:
    inference = QueueUsage.objects.filter(queue__service_type="inference", card=H200)
    for quota, beyond in ((0, "nothing"), (48_000, "everything")):
        inference.update(quota=0)
        QueueUsage.objects.filter(pk=inference[0].pk).update(quota=quota)
        found = rows(client_of(world.admin), f"&service_type=training&card={H200}")
        root = next(row for row in found if row["level"] == "service")
        assert root["borrowed"] == (root["allocated"] if beyond == "everything" else "0.0"), beyond
    used = QueueUsage.objects.filter(queue__service_type="training", card=H200, allocated__gt=0)
    queue = used.select_related("queue")[0].queue
    now = usage_now([queue])[queue.pk][H200]
    assert now["borrowed"] == now["allocated"] > 0


def test_pages_of_tenants_and_projects_sum_the_quota_that_holds_now(world) -> None:
    client = client_of(world.admin)
    base = turn(world, "search-rank-inference", -2)
    project = world.queues["search-rank-inference"].project
    for path in ("/tenants/search/", f"/tenants/search/projects/{project.slug}/"):
        page = client.get(path).content.decode()
        part = page.partition('id="use-title"')[2].partition("</section>")[0]
        assert f"base {base}" in part, path
        assert str(base - 2) in part, path
    QueueUsage.objects.filter(queue__tenant__slug="search", card=story.MPS).update(allocated=3000)
    page = client.get("/tenants/search/").content.decode()
    said = re.search(r"([\d.,]+) of ([\d.,]+) physical cards: a slice or a share counts as the part of", page)
    usage = QueueUsage.objects.filter(queue__tenant__slug="search").values_list("card", "allocated")
    used = sum(milli / (2 if card == story.MPS else 1) for card, milli in usage) / 1000
    # H200 16 + 24 less the 2 of the plan, L40S 8 + 10 + 20, A100 32, and four halves of an L40S.
    assert (float(said[1]), float(said[2])) == (pytest.approx(used, abs=0.05), 38 + 38 + 32 + 2)
    with_cards = client.get("/clusters/demo/card-types/").context["page"].rows
    shown = next(row.inference_quota for row in with_cards if row.name == H200)
    assert shown == sum(CardQuota.objects.filter(
        queue__service_type="inference", card_type__name=H200).values_list("cards", flat=True)) - 2  # fmt: skip


def test_badges_say_where_more_is_assigned_than_there_is(world) -> None:
    page = client_of(world.admin).get(TREE).content.decode()
    assert "3 places assign more than they have" in page
    assert "40 of 32 assigned" in page
    over = keys(client_of(world.admin).get(f"{TREE}?badge=over").content.decode())
    assert [key for key in over if "-t" in key] == [f"training-t{world.queues['research-training'].tenant_id}"]


def test_starved_queues_are_found_with_all_that_they_hang_from(world) -> None:
    page = client_of(world.admin).get(f"{TREE}?badge=starved").content.decode()
    queue = world.queues["search-rank-inference"]
    assert {f"inference-q{queue.pk}", f"inference-p{queue.project_id}", f"inference-t{queue.tenant_id}"} <= set(
        keys(page)
    )
    assert "maps-route-inference" not in page


def test_filters_narrow_by_name_card_and_service_type(world) -> None:
    client = client_of(world.admin)
    named = client.get(f"{TREE}?q=ads").content.decode()
    assert "shop-ads-inference" in named
    assert "vision-ocr-inference" not in named
    cards = {row["card"] for row in rows(client, "&card=H200")}
    assert cards == {H200}
    assert "Nothing matches" in client.get(f"{TREE}?q=nobody-is-called-so").content.decode()


def test_a_member_sees_their_tenant_and_no_sum_of_others(world) -> None:
    client = client_of(world.member)
    page = client.get(TREE).content.decode()
    assert "search-training" in page
    assert "research-training" not in page
    root = next(row for row in rows(client) if row["level"] == "service" and row["card"] == H200)
    assert root["quota"] == "", "the sum over all tenants is not theirs to see"
    other = world.queues["research-training"].tenant_id
    assert client.get(f"{TREE}branch/?service_type=training&tenant={other}").status_code == 404
    assert client.get(f"{TREE}branch/?service_type=training&tenant=0").status_code == 404
    figure = json.loads(client.get(f"{TREE}map/?card={H200}").content)
    assert "research-training" not in json.dumps(figure)
    assert "search-training" in json.dumps(figure)


@pytest.fixture
def large(world: story.World) -> story.World:
    """Search has many queues in one project."""
    project = Project.objects.get(slug="search-rank-inference")
    made = Queue.objects.bulk_create(
        Queue(
            cluster=world.cluster, name=f"rank-{n:04}", service_type="inference", tenant=project.tenant, project=project
        )
        for n in range(450)
    )
    card = CardQuota.objects.filter(card_type__name=H200).first().card_type
    CardQuota.objects.bulk_create(
        CardQuota(cluster=world.cluster, card_type=card, service_type="inference", queue=queue, cards=1)
        for queue in made
    )
    return world


def test_a_large_tree_is_fetched_level_by_level(large, subtests) -> None:
    client = client_of(large.admin)
    client.get("/clusters/")
    queue = large.queues["search-rank-inference"]
    tenant = f"service_type=inference&tenant={queue.tenant_id}"
    steps = {
        "tenants": ("", 0),
        "places": (f"branch/?{tenant}", 0),
        "first queues": (f"branch/?{tenant}&project={queue.project_id}", quota_tree.STEP),
        "last queues": (f"branch/?{tenant}&project={queue.project_id}&after=400", 51),
        "one by name": ("?q=rank-0449", 1),
        "unused ones": ("?badge=unused", 450),
    }
    for name, (path, count) in steps.items():
        with subtests.test(name), CaptureQueriesContext(connection) as queries:
            page = client.get(TREE + path).content.decode()
            assert len([key for key in keys(page) if "-q" in key]) == count
            assert len(queries) <= MAX_QUERIES + WRITER
    first = client.get(TREE).content.decode()
    assert "data-branch" in first
    assert "data-live" not in first, "an update would fold what was opened"
    assert "Show more queues" in client.get(TREE + steps["first queues"][0]).content.decode()


def test_the_map_has_the_same_sums(world) -> None:
    client = client_of(world.admin)
    (trace,) = json.loads(client.get(f"{TREE}map/?card={H200}").content)["data"]
    values = dict(zip(trace["ids"], trace["values"], strict=True))
    assert values["inference"] == 28, "what queues have, whatever their tenant could hand on"
    table = client.get(f"{TREE}map/?card={H200}&format=csv").content.decode("utf-8-sig")
    assert "Inference › Shop › Ads › shop-ads-inference,12,10.0,0.0" in table.replace('"', "")
