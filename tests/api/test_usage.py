"""The usage endpoint: a step function at its change points, or resampled; sums of queues."""

import datetime as dt

import pytest

from tests.api.cast import H200, NOON
from tidesched_web.scheduling.models import QueueUsage, UsageChange
from tidesched_web.scheduling.usage_selectors import CardTotals, borrowed, lent
from tidesched_web.scheduling.usage_series import UsagePoint, UsageRow, resampled, summed


def moment(hours):
    return NOON + dt.timedelta(hours=hours)


def text(hours):
    return f"{moment(hours):%Y-%m-%dT%H:%M:%SZ}"


def test_it_starts_with_what_was_true_at_the_beginning(world):
    points = world.client("owner").read("usage/", queue="acme-train", card=H200, to=text(0))
    assert points == [
        {"at": text(-24), "quota": 8.0, "allocated": 3.0, "inqueue": 1.0, "elastic": 0.5},
        {"at": text(-2), "quota": 8.0, "allocated": 6.0, "inqueue": 1.0, "elastic": 0.5},
    ]


def test_a_cluster_is_the_sum_of_the_queues_in_sight(world):
    for reader, allocated in (("owner", [3.75, 7.5]), ("rival", [2.0, 4.0]), ("auditor", [5.75, 11.5])):
        points = world.client(reader).read("usage/", cluster="east", card=H200, to=text(0))
        assert [point["allocated"] for point in points] == allocated, reader


def test_resampled_and_a_gap_is_a_gap(world):
    read = world.client("owner").read
    points = read("usage/", queue="acme-train", step="6h", **{"from": text(-36), "to": text(0)})
    assert [point["at"] for point in points] == [text(-30), text(-24), text(-18), text(-12), text(-6), text(0)]
    assert [point["allocated"] for point in points] == [3, 3, 3, 3, 3, 6]


def test_an_unescaped_plus_of_a_zone_is_understood(world):
    response = world.client("owner").get(f"/api/v1/usage/?queue=acme-train&to={moment(0).isoformat()}")
    assert len(response.json()) == 2


def test_without_a_card_the_sum_is_of_physical_cards(world):
    """Seven slices of a seventh are one card, not seven, and two halves are one."""
    queue, sliced, halved = world.queues["acme-train"], f"{H200}/mig-1g.18gb-mixed", f"{H200}/mps-72g*1/2"
    figures = {"card": sliced, "quota": 14_000, "allocated": 7000, "inqueue": 7000, "elastic": 3500}
    QueueUsage.objects.create(queue=queue, at=NOON, **figures)
    UsageChange.objects.create(wall_at=NOON, at=moment(-1), cluster=queue.cluster, queue=queue, **figures)
    read = world.client("owner").read
    assert [point["allocated"] for point in read("usage/", queue="acme-train", to=text(0))] == [3, 6, 7]
    last = read("usage/", queue="acme-train", to=text(0))[-1]
    assert last == {"at": text(-1), "quota": 10.0, "allocated": 7.0, "inqueue": 2.0, "elastic": 1.0}
    assert [point["allocated"] for point in read("usage/", queue="acme-train", card=sliced, to=text(0))] == [7]
    # What stood before the beginning counts in the same way, and so do sums of queues, at change points and at steps.
    halves = {"card": halved, "quota": 8000, "allocated": 4000, "inqueue": 0, "elastic": 0}
    QueueUsage.objects.create(queue=queue, at=NOON, **halves)
    UsageChange.objects.create(wall_at=NOON, at=moment(-48), cluster=queue.cluster, queue=queue, **halves)
    assert [point["allocated"] for point in read("usage/", queue="acme-train", to=text(0))] == [5, 8, 9]
    whole = read("usage/", cluster="east", to=text(0))[-1]["allocated"]
    assert whole == 7.5 + 1 + 2, "what acme has of H200 at noon, and its slices and halves"
    steps = read("usage/", queue="acme-train", step="1h", **{"from": text(-2), "to": text(0)})
    assert [point["allocated"] for point in steps] == [8, 9, 9]


def test_a_card_that_a_queue_never_had_has_no_points(world):
    assert world.client("owner").read("usage/", queue="acme-train", card="NVIDIA-L40") == []


def test_thousands_of_changes_are_refused_with_a_hint(world):
    queue = world.queues["acme-train"]
    UsageChange.objects.bulk_create(
        UsageChange(
            wall_at=NOON, at=moment(-1) + dt.timedelta(seconds=second / 4), cluster=queue.cluster, queue=queue,
            card=H200, quota=8000, allocated=second, inqueue=0, elastic=0,
        )
        for second in range(5001)
    )  # fmt: skip
    response = world.client("owner").get(f"/api/v1/usage/?queue={queue.pk}&to={text(0)}")
    assert (response.status_code, response.json()["code"]) == (400, "too_many_points")
    assert len(world.client("owner").read("usage/", queue=queue.pk, step="5m", to=text(0))) == 289


def test_sums_at_the_same_moment_are_one_point_and_no_change_is_none():
    a, b = (1, H200), (2, H200)
    standing = [UsageRow(a, moment(0), 8000, 1000, 0, 0), UsageRow(b, moment(0), 8000, 333, 0, 0)]
    changes = [
        UsageRow(a, moment(1), 8000, 2000, 0, 0),
        UsageRow(b, moment(1), 8000, 334, 0, 0),
        UsageRow(a, moment(2), 8000, 2000, 0, 0),
    ]
    assert [(point.at, point.allocated) for point in summed(standing, changes)] == [
        (moment(0), 1.333),
        (moment(1), 2.334),
    ]


def test_resampling_takes_the_last_value_at_each_step():
    points = [UsagePoint(moment(hours), 0, hours, 0, 0) for hours in (1, 2, 2.5)]
    shown = list(resampled(points, moment(0), moment(4), dt.timedelta(hours=1)))
    assert [(point.at, point.allocated) for point in shown] == [
        (moment(1), 1), (moment(2), 2), (moment(3), 2.5), (moment(4), 2.5),
    ]  # fmt: skip


def test_borrowed_is_what_training_uses_beyond_its_own_part():
    assert borrowed(6000, CardTotals(hardware=16000, inference_quota=12000, training=10000)) == 3600
    assert borrowed(6000, CardTotals(hardware=16000, inference_quota=4000, training=10000)) == 0
    assert borrowed(6000, CardTotals(hardware=4000, inference_quota=12000, training=10000)) == 6000
    assert borrowed(0, CardTotals(hardware=4000, inference_quota=12000, training=0)) == 0


def test_lent_is_what_each_inference_queue_leaves_of_what_training_borrows():
    """Training uses 10 where a full flood leaves 4: 6 are borrowed, of 3 and 9 that two queues do not use."""
    total = CardTotals(hardware=16000, inference_quota=12000, training=10000, inference_unused=12000)
    assert [lent(unused, total) for unused in (3000, 9000, 0)] == [1500, 4500, 0]
    assert lent(3000, total._replace(training=4000)) == 0
    assert lent(0, CardTotals(hardware=4000, inference_quota=0, training=0)) == 0


def test_usage_now_is_the_last_point(world):
    assert QueueUsage.objects.get(queue=world.queues["acme-train"]).allocated == 6000


@pytest.mark.parametrize(
    "query",
    [
        "cluster=%00",
        "cluster=east&card=%00",
        "cluster=east&to=0001-01-01T00:00:00Z",
        "cluster=east&from=9999-12-31T23:59:59-23:00",
        "cluster=east&from=0001-01-01T00:00:00%2B14:00&step=1d",
    ],
)
def test_what_no_table_holds_is_refused(world, query):
    assert world.client("owner").get(f"/api/v1/usage/?{query}").status_code == 400
