"""Nothing grows without bound, and what is thrown away is what says least."""

from __future__ import annotations

import datetime as dt

import pytest
from django.db import connection
from django.utils import timezone

from tests.web.pipeline.stage import Stage
from tidesched_web.common import partitions
from tidesched_web.scheduling import retention, rollups
from tidesched_web.scheduling.models import (
    Decision,
    Reclaim,
    Session,
    SessionInput,
    TidePoint,
    UsageChange,
    UsageRollup,
)
from tidesched_web.workloads.models import Gang, GangEvent


def test_a_round_on_a_living_cluster_keeps_everything_below_the_limits(stage: Stage) -> None:
    stage.train("job", pods=4)
    stage.sessions_until(lambda: stage.running("job") == 4)
    before = Session.objects.count()
    retention.run()
    assert retention.run()["partitions_made"] == 0, "those of the days to come are there"
    assert Session.objects.count() == before
    assert Gang.objects.count() == 1


def test_sessions_that_acted_outlive_those_that_did_not(stage: Stage, settings) -> None:
    stage.train("job", pods=4)
    stage.sessions_until(lambda: stage.running("job") == 4)
    acted = Session.objects.filter(counts__binds__gt=0).get()
    for _ in range(12):
        stage.session()
    settings.RETENTION_SESSIONS = 5
    retention.run()
    retention.run()
    kept = list(Session.objects.order_by("-id").values_list("number", flat=True))
    assert len(kept) <= 5 + 1 + 1  # the newest, the one that acted, and the one whose full input others refer to
    assert acted.number in kept
    assert stage.session().number == kept[0] + 1


def test_inputs_stay_inside_their_budget(stage: Stage) -> None:
    stage.train("job", pods=8)
    stage.sessions_until(lambda: stage.running("job") == 8)
    assert stage.context is not None
    for _ in range(6):
        stage.context.inputs._since = 1000  # a full one each time
        stage.session()
    size = SessionInput.objects.latest("id").size
    stage.cluster.input_bytes_budget = int(size * 2.5)
    stage.cluster.save()
    retention.run()
    assert sum(SessionInput.objects.values_list("size", flat=True)) <= size * 2.5
    assert SessionInput.objects.filter(session=Session.objects.latest("id")).exists()
    stage.session()


def test_rows_beyond_their_number_go_the_oldest_first(stage: Stage, settings) -> None:
    settings.RETENTION_TIDE_POINTS, settings.RETENTION_GONE_GANGS, settings.RETENTION_RECLAIMS = 20, 3, 2
    now = timezone.now()
    figures = {"total": 1, "inference": 0, "training": 0, "borrowed": 0, "foreign": 0, "idle": 1, "waiting": 0}
    TidePoint.objects.bulk_create(
        TidePoint(cluster=stage.cluster, card="A", at=now + dt.timedelta(seconds=n), wall_at=now, **figures)
        for n in range(100)
    )
    Gang.objects.bulk_create(
        Gang(
            cluster=stage.cluster, namespace="a", name=f"g{n}", uid=str(n), queue_name="q", service_type="training",
            phase="Completed", submitted_at=now, seen_at=now, gone_at=now + dt.timedelta(seconds=n),
        )
        for n in range(10)
    )  # fmt: skip
    gang = Gang.objects.get(name="g9")
    GangEvent.objects.bulk_create(GangEvent(gang=gang, kind="reason", at=now, wall_at=now) for _ in range(300))
    session = stage.session()
    Reclaim.objects.bulk_create(
        Reclaim(
            cluster=stage.cluster, session=session, at=now, wall_at=now, action="reclaim", reclaimer=f"a/{n}",
            queue_name="q", needed={}, freed={}, rule="r", state="done",
        )
        for n in range(5)
    )  # fmt: skip
    retention.run()
    assert TidePoint.objects.filter(card="A").count() <= 20
    assert set(Gang.objects.values_list("name", flat=True)) == {"g7", "g8", "g9"}
    assert set(Reclaim.objects.values_list("reclaimer", flat=True)) == {"a/3", "a/4"}
    assert GangEvent.objects.count() <= settings.RETENTION_TIMELINE_POINTS


@pytest.mark.django_db(transaction=True)
def test_partitions_are_dropped_by_bytes_and_rows_that_came_early_stay(settings) -> None:
    settings.RETENTION_DECISION_BYTES = 0
    now = timezone.now()
    Decision.objects.create(
        at=now, cluster_id=1, session_id=1, epoch=1, kind="bind", gang="a/b", target="a/c"
    )  # before its partition
    old = now - dt.timedelta(days=40)
    partitions.ensure("scheduling_decision", hours=24, ahead=3, now=old)
    Decision.objects.create(at=old, cluster_id=1, session_id=1, epoch=1, kind="bind", gang="a/b", target="a/d")
    retention.run()
    assert list(Decision.objects.values_list("target", flat=True)) == ["a/c"]
    assert len(partitions.names("scheduling_decision")) <= retention.KEPT_PARTITIONS
    with connection.cursor() as cursor:
        for name in partitions.names("scheduling_decision") + partitions.names("scheduling_usagechange"):
            cursor.execute(f'DROP TABLE "{name}"')


def test_usage_is_rolled_up_by_the_time_that_it_lasted(stage: Stage) -> None:
    queue = stage.cluster.queues.get(name="train")
    start = dt.datetime(2026, 3, 1, 10, 30, tzinfo=dt.UTC)
    wall = timezone.now()
    for minutes, allocated in ((0, 8000), (45, 0), (60, 4000), (160, 2000)):
        UsageChange.objects.create(
            wall_at=wall, at=start + dt.timedelta(minutes=minutes), cluster=stage.cluster, queue=queue, card="A",
            quota=16000, allocated=allocated, inqueue=0, elastic=0,
        )  # fmt: skip
    assert rollups.roll_up(stage.cluster.pk) > 0
    found = {row.at.hour: (row.allocated_mean, row.allocated_max) for row in UsageRollup.objects.order_by("at")}
    assert found[10] == (8000, 8000)  # from half past ten on
    assert found[11] == (pytest.approx(8000 * 15 / 60 + 4000 * 30 / 60), 8000)
    assert found[12] == (4000, 4000)
    assert rollups.roll_up(stage.cluster.pk) == 0
