"""A tenant's use over time: sums of its queues in physical cards, gaps where no session ran, and nothing of others."""

from __future__ import annotations

import csv
import datetime as dt
import io
from itertools import pairwise

import pytest
from django.utils import timezone

from tests.web.console import world as story
from tests.web.console.cast import H200
from tests.web.console.test_pages import client_of
from tidesched_web.accounts.models import User
from tidesched_web.console import tenant_use
from tidesched_web.quota.models import Queue
from tidesched_web.scheduling.models import QueueUsage, TidePoint, UsageChange

pytestmark = pytest.mark.django_db
URL = "/clusters/demo/tenants/search/use/"


@pytest.fixture
def world(world) -> story.World:
    """The story, with a record of ten hours: the first six measured, two of silence, two measured again."""
    UsageChange.objects.all().delete()
    TidePoint.objects.all().delete()
    end = world.cluster.clock()
    for queue in world.queues.values():
        QueueUsage.objects.filter(queue=queue).delete()
    for minutes in (*range(0, 361, 10), *range(480, 601, 10)):
        at = end - dt.timedelta(minutes=600 - minutes)
        TidePoint.objects.create(
            cluster=world.cluster, at=at, wall_at=timezone.now() - (end - at), card=H200, total=48000, inference=0,
            training=0, borrowed=0, foreign=0, idle=48000, waiting=0, quota=0,
        )  # fmt: skip
    for queue, card, steps in (
        ("search-rank-inference", H200, ((600, 16, 4), (300, 16, 12), (60, 20, 2))),
        ("search-training", H200, ((600, 24, 8), (60, 24, 20))),
        ("search-suggest-inference", story.MPS, ((600, 4, 4),)),
        ("research-training", H200, ((600, 40, 40),)),
    ):
        for ago, quota, used in steps:
            UsageChange.objects.create(
                wall_at=timezone.now(), at=end - dt.timedelta(minutes=ago), cluster=world.cluster,
                queue=world.queues[queue], card=card, quota=1000 * quota, allocated=1000 * used, inqueue=0, elastic=0,
            )  # fmt: skip
        QueueUsage.objects.create(
            queue=world.queues[queue], card=card, at=end, quota=1000 * quota, allocated=1000 * used, inqueue=0,
            elastic=0,
        )  # fmt: skip
    return world


def table(user: User, card: str = "") -> list[dict[str, str]]:
    answer = client_of(user).get(URL, {"format": "csv", "card": card})
    assert answer.status_code == 200
    return list(csv.DictReader(io.StringIO(answer.content.decode("utf-8-sig"))))


def test_it_adds_up_the_tenants_queues_in_physical_cards_and_leaves_gaps(world) -> None:
    rows = table(world.member)
    figures = [[float(value) for value in list(row.values())[1:]] for row in rows]
    # Quota, in use, inference, training: two shares of an MPS card are one.
    assert figures[0] == [42, 14, 6, 8]
    assert [42, 22, 14, 8] in figures
    assert figures[-1] == [46, 24, 4, 20]
    assert {tuple(row) for row in figures} == {(42, 14, 6, 8), (42, 22, 14, 8), (46, 24, 4, 20)}
    moments = [dt.datetime.fromisoformat(row["time (UTC)"]) for row in rows]
    steps = {later - earlier for earlier, later in pairwise(moments)}
    assert max(steps) > dt.timedelta(hours=1, minutes=30), "two hours were not measured"
    assert min(steps) == tenant_use.STEP
    assert len(steps) == 2


def test_one_card_type_is_counted_as_it_is(world) -> None:
    rows = table(world.member, story.MPS)
    assert {(float(row["quota (slices)"]), float(row["inference"])) for row in rows} == {(4, 4)}
    assert table(world.member, "no such card") == []


def test_it_is_on_the_home_of_its_people_and_closed_to_others(world) -> None:
    page = client_of(world.member).get("/").content.decode()
    assert f'data-figure="{URL}"' in page
    assert "What did Search use of its quota in demo?" in page
    for user in (world.stranger, world.newcomer):
        assert client_of(user).get(URL).status_code == 404
        assert URL not in client_of(user).get("/").content.decode()
    for user in (world.auditor, world.admin):
        assert client_of(user).get(URL).status_code == 200
    figure = client_of(world.member).get(URL).json()
    assert {trace["name"] for trace in figure["data"]} == {"Inference", "Training", "Quota"}
    assert sum(trace["name"] == "Quota" for trace in figure["data"]) == 2, "each stretch between gaps is its own"


def test_the_picture_costs_as_much_whatever_the_sessions_were(world, django_assert_max_num_queries) -> None:
    queue = Queue.objects.get(name="search-training")
    end = world.cluster.clock()
    UsageChange.objects.bulk_create(
        UsageChange(
            wall_at=timezone.now(), at=end - dt.timedelta(seconds=5 * number + 60), cluster=world.cluster, queue=queue,
            card=H200, quota=24000, allocated=1000 * (number % 9), inqueue=0, elastic=0,
        )
        for number in range(500)
    )  # fmt: skip
    client = client_of(world.member)
    client.get(URL, {"format": "csv"})
    with django_assert_max_num_queries(6):
        rows = client.get(URL, {"format": "csv"}).content.decode().splitlines()
    assert len(rows) < 60
