"""Card-hours of a tenant: the last day and week by the cluster's clock, what was not measured, none of others."""

import datetime as dt

import pytest
from django.utils import timezone

from tests.api.cast import A100, H200, NOON
from tidesched_web.clusters.models import Cluster
from tidesched_web.scheduling.card_hours_selectors import card_hours
from tidesched_web.scheduling.models import QueueUsage, TidePoint, UsageRollup

HOUR = dt.timedelta(hours=1)


@pytest.fixture
def acme(world):
    """Half past twelve: of acme-train 8 cards in each hour of three days, of acme-online 2 slices in the last four."""
    east = world.clusters["east"]
    Cluster.objects.filter(pk=east.pk).update(
        clock_rate=0.000001, clock_anchor=NOON + HOUR / 2, clock_wall_anchor=timezone.now()
    )
    for queue, card, used, hours in (
        ("acme-train", H200, 8000, 72),
        ("acme-online", A100, 2000, 4),
        ("rival-train", H200, 4000, 72),
    ):
        row = world.queues[queue]
        QueueUsage.objects.get_or_create(
            queue=row, card=card,
            defaults={"at": NOON, "quota": used, "allocated": used, "inqueue": 0, "elastic": 0},
        )  # fmt: skip
        UsageRollup.objects.bulk_create(
            UsageRollup(
                queue=row, card=card, step_seconds=3600, at=NOON - HOUR * number, quota=used, allocated_mean=used,
                allocated_max=used,
            )
            for number in range(1, hours + 1)
        )  # fmt: skip
    return world


def read(world, who="owner", tenant="acme"):
    return world.client(who).read(f"tenants/{world.tenants[tenant].pk}/card-hours/")


def look(cluster, hours_ago, *, wall_minutes):
    """A session looked at the cluster."""
    TidePoint.objects.create(
        cluster=cluster, at=NOON - HOUR * hours_ago, wall_at=timezone.now() - dt.timedelta(minutes=wall_minutes),
        card=H200, total=0, inference=0, training=0, borrowed=0, foreign=0, idle=0, waiting=0, quota=0,
    )  # fmt: skip


def test_a_day_and_a_week_by_service_type_and_card_type(acme):
    day, week = read(acme)
    assert (day["cluster"]["slug"], day["period"], day["hours"], day["measured_hours"]) == ("east", "24h", 24, 24)
    assert (week["period"], week["hours"], week["measured_hours"]) == ("7d", 168, 72)
    assert (week["start"], week["end"]) == ("2026-02-22T12:00:00Z", "2026-03-01T12:00:00Z")
    online = {"service_type": "inference", "card": A100, "card_hours": 8.0}
    assert day["cards"] == [online, {"service_type": "training", "card": H200, "card_hours": 192.0}]
    assert week["cards"] == [online, {"service_type": "training", "card": H200, "card_hours": 576.0}]


def test_hours_in_which_no_session_ran_are_neither_use_nor_time(acme):
    east = acme.clusters["east"]
    # Nothing between eight and five hours ago by the cluster's clock, and nothing for the last hour.
    for hours_ago, minutes in ((30, 400), (20, 390), (8, 380), (5, 200), (3, 190), (1, 180)):
        look(east, hours_ago, wall_minutes=minutes)
    day, _week = read(acme)
    assert day["measured_hours"] == 20
    assert day["cards"][1]["card_hours"] == 160.0
    assert day["cards"][0]["card_hours"] == 6.0


def test_nothing_measured_is_said_and_is_no_zero(world):
    day, week = read(world)
    assert [(one["measured_hours"], one["cards"]) for one in (day, week)] == [(0, []), (0, [])]


def test_a_stranger_and_a_neighbour_see_nothing_of_it(acme):
    address = f"/api/v1/tenants/{acme.tenants['acme'].pk}/card-hours/"
    for who in ("stranger", "rival"):
        assert acme.client(who).get(address).status_code == 404
    assert acme.client("owner").get(f"{address}?days=3").status_code == 400
    for who in ("owner", "teammate", "admin", "auditor"):
        assert read(acme, who) == read(acme)
    (rivals, _week) = read(acme, "rival", "rival")
    assert [row["card_hours"] for row in rivals["cards"]] == [96.0]


def test_it_is_one_query_for_all_tenants_and_clusters(acme, django_assert_num_queries):
    tenants, clusters = [tenant.pk for tenant in acme.tenants.values()], list(Cluster.objects.all())
    with django_assert_num_queries(1):
        found = card_hours(tenants, clusters)
    assert len(found) == len(tenants) * len(clusters)
    acme_in_east = found[acme.tenants["acme"].pk, acme.clusters["east"].pk]
    assert acme_in_east["24h"].cards[("training", H200)] == 192.0
