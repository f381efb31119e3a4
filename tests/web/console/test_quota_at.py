"""Quota at a time: the figures of all queues at a chosen moment, and what the plans change next; read within sight."""

from __future__ import annotations

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.quota_writes import write_tide_plan
from tests.web.console import world as story
from tests.web.console.cast import L40S
from tests.web.console.test_pages import client_of
from tests.web.console.test_tide_plans import LIST, NIGHT
from tidesched_web.quota.models import CardQuota, Queue

pytestmark = pytest.mark.django_db
PAGE = "/clusters/demo/quota-at/"


@pytest.fixture
def world(world) -> story.World:
    document = {"enabled": True, "layers": [NIGHT], "exceptions": {"2026-03-05": "none"}}
    write_tide_plan(cluster=world.cluster, name="nights", document=document, actor="tests")
    return world


def table(world: story.World, query: str = "", who: str = "admin") -> dict[tuple[str, str], tuple[int, int, str]]:
    """(queue, card) → base, quota then, layers; from the CSV of the page, all its rows."""
    answer = client_of(getattr(world, who)).get(f"{PAGE}?format=csv&{query}")
    lines = answer.content.decode().lstrip("\ufeff").splitlines()
    assert lines[0] == "at,queue,service_type,card,base,quota,layers"
    rows = (line.split(",") for line in lines[1:])
    return {(row[1], row[3]): (int(row[4]), int(row[5]), row[6]) for row in rows}


def test_each_queue_has_its_quota_at_the_moment(world) -> None:
    by_day, at_night = table(world, "at=2026-03-04T12:00"), table(world, "at=2026-03-04T23:00")
    assert set(by_day) == set(at_night)
    assert {key: row for key, row in by_day.items() if row[0] != row[1]} == {}
    base = {
        (row.queue.name, row.card_type.name): row.cards
        for row in CardQuota.objects.filter(queue__cluster=world.cluster, cards__gt=0).select_related(
            "queue", "card_type"
        )
    }
    assert {key: row[0] for key, row in at_night.items() if row[0]} == base
    gives, gets = ("search-suggest-inference", L40S), ("maps-route-inference", L40S)
    others = {key: row for key, row in at_night.items() if row[0] != row[1]}
    assert others == {
        gives: (base[gives], base[gives] - 4, "nights: night"),
        gets: (base.get(gets, 0), base.get(gets, 0) + 6, "nights: night"),
    }
    assert table(world, "at=2026-03-04T23:00&figures=other") == others
    assert set(table(world, f"at=2026-03-04T23:00&q=MAPS-route&card={L40S}")) == {gets}
    assert table(world, "at=2026-03-05T23:00") == by_day, "an exception of the plan"


def test_the_page_says_what_is_open(world) -> None:
    client = client_of(world.admin)
    page = client.get(f"{PAGE}?at=2026-03-04T23:00&figures=other").content.decode()
    assert "At 2026-03-04 23:00 UTC nights: night is open. 2 figures here are another than the base." in page
    assert "−4" in page
    assert "+6" in page
    assert "What inference still uses at that moment stays with it" in page
    page = client.get(f"{PAGE}?at=2026-03-04T12:00").content.decode()
    assert "At 2026-03-04 12:00 UTC no layer of a plan is open: the base holds." in page
    assert "What inference still uses" not in page, "it is over"
    page = client.get(f"{PAGE}?at=23:00").content.decode()
    assert "The filter At (UTC) is left out" in page
    assert "At 2026-03-04 20:15 UTC" in page, "the cluster's present"
    assert "No figure matches" in client.get(f"{PAGE}?q=nothing-like-it").content.decode()


def test_without_a_moment_what_inference_uses_stays_with_it(world) -> None:
    sent = table(world)
    page = client_of(world.admin).get(LIST).content.decode()
    part = page.partition('id="turned-title"')[2].partition("</section>")[0]
    said = [int(figure) for figure in re.findall(r"<strong>(\d+)</strong>", part)]
    assert said == [quota for base, quota, _layers in sent.values() if quota != base]


def test_the_page_shows_queues_in_sight_alone(world) -> None:
    mine = {queue for queue, _card in table(world, "at=2026-03-04T23:00", "member")}
    everything = {queue for queue, _card in table(world, "at=2026-03-04T23:00")}
    assert mine
    assert mine < everything
    assert not mine & {queue for queue, _card in table(world, "at=2026-03-04T23:00", "stranger")}
    page = client_of(world.member).get(f"{PAGE}?at=2026-03-04T23:00").content.decode()
    assert [queue for queue in everything - mine if f">{queue}<" in page] == []


def test_the_list_of_plans_says_what_changes_next(world) -> None:
    page = client_of(world.admin).get(LIST).content.decode()
    part = page.partition('id="next-title"')[2].partition("</section>")[0]
    links = re.findall(r'href="(/clusters/demo/quota-at/[^"]*)">([^<]*)<', part)
    assert links[0] == ("/clusters/demo/quota-at/?at=2026-03-05T06%3A00&amp;figures=other", "2026-03-05 06:00:00 UTC")
    assert links[1][1] == "2026-03-06 18:00:00 UTC", "the night of the exception does not open"
    words = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", part))
    assert "closes: nights: night" in words
    assert "opens: nights: night" in words
    gone = client_of(world.stranger).get(LIST).content.decode()
    assert 'id="next-title"' not in gone


def test_a_plan_that_is_always_open_changes_nothing_at_midnight(world) -> None:
    always = {**NIGHT, "start": "00:00", "end": "24:00"}
    write_tide_plan(cluster=world.cluster, name="nights", document={"enabled": True, "layers": [always]}, actor="tests")
    page = client_of(world.admin).get(LIST).content.decode()
    assert 'id="next-title"' not in page
    assert "2026-03-05 00:00" not in page


def test_as_many_statements_for_many_queues_as_for_few(world) -> None:
    def statements() -> int:
        client = client_of(world.admin)
        client.get(PAGE)
        with CaptureQueriesContext(connection) as queries:
            client.get(f"{PAGE}?at=2026-03-04T23:00")
        return len(queries)

    before = statements()
    like = Queue.objects.filter(service_type="inference").first()
    made = [
        Queue(
            cluster=world.cluster,
            name=f"more-{number}",
            service_type="inference",
            tenant=like.tenant,
            project=like.project,
        )
        for number in range(30)
    ]
    Queue.objects.bulk_create(made)
    assert statements() == before
