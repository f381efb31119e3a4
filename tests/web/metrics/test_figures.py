"""After the same session `/metrics`, REST and the tables tell the same, and each row is counted once."""

from __future__ import annotations

import datetime as dt
import re
from collections import Counter
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from tests.architecture import sources
from tests.cluster.objects import CARD
from tests.web.metrics.scrape import labels, scraped
from tests.web.pipeline.stage import Stage
from tidesched_web.clusters.models import Cluster, Counted
from tidesched_web.common import alive
from tidesched_web.front.health import connect
from tidesched_web.metrics import families, services
from tidesched_web.metrics.models import Cursor
from tidesched_web.quota.services.push import push_cluster
from tidesched_web.scheduling import retention
from tidesched_web.scheduling.models import Alert, Reclaim, ReclaimVictim, Session, TidePoint
from tidesched_web.workloads.models import Gang, GangEvent

# What is folded into the table of counters.
COUNTED = [
    f"{name}_count" if told.bounds else name
    for name, told in families.ALL.items()
    if (told.bounds or name.endswith("_total")) and "route" not in told.labels
]
MOVED = labels(cluster="stage", from_queue="train", to_queue="serve", card=CARD)


@pytest.fixture
def tide(stage: Stage) -> Stage:
    """Training has all cards; a service takes some back, and training is made anew and waits."""
    stage.train("job", pods=4, cards=4)
    stage.sessions_until(lambda: stage.running("job") == 4)
    stage.serve("web", replicas=2, cards=4)
    stage.sessions_until(lambda: Reclaim.objects.filter(state="done").exists())
    stage.sessions_until(lambda: GangEvent.objects.filter(kind="restarted").exists())
    return stage


def counted(*key: str) -> float:
    return Counted.objects.get(key=[*key]).figure


def read(client: Client, path: str) -> list[dict[str, Any]]:
    found = client.get(f"/api/v1/{path}").json()
    assert found["next"] is None
    return list(found["results"])


def test_the_figures_are_those_of_rest(tide: Stage, scraper: Client) -> None:
    told = scraped(scraper)
    queues = {
        labels(cluster="stage", queue=queue["name"], card=card, kind=kind): figures[kind]
        for queue in read(scraper, "queues/")
        for card, figures in queue["usage"].items()
        for kind in ("quota", "allocated", "inqueue", "borrowed", "lent")
    }
    assert told["tidesched_queue_cards"] == queues
    gangs = [gang | {"queue": gang["queue"]["name"], "cluster": "stage"} for gang in read(scraper, "gangs/")]
    states = Counter(labels(**{name: gang[name] for name in ("cluster", "queue", "state")}) for gang in gangs)
    assert told["tidesched_gangs"] == states
    reasons = [
        labels(cluster="stage", queue=gang["queue"], reason=gang["reason"]["code"]) for gang in gangs if gang["reason"]
    ]
    assert told["tidesched_waiting_gangs"] == Counter(reasons)
    reclaims = read(scraper, "reclaims/")
    assert told["tidesched_reclaims_total"] == {MOVED: len(reclaims)}
    taken = sum(victim["cards"][CARD] for reclaim in reclaims for victim in reclaim["victims"])
    assert told["tidesched_reclaimed_cards_total"] == {MOVED: taken} == {MOVED: 16}
    assert told["tidesched_work_lost_card_seconds_total"][MOVED] == pytest.approx(
        sum(reclaim["work_lost_card_seconds"] for reclaim in reclaims)
    )
    sessions = read(scraper, "sessions/")
    assert told["tidesched_sessions_total"] == {labels(cluster="stage", result="done"): len(sessions)}
    newest = dt.datetime.fromisoformat(sessions[0]["finished_at"])
    assert told["tidesched_last_session_timestamp_seconds"] == {labels(cluster="stage"): newest.timestamp()}


def test_the_tide_and_the_nodes_are_those_of_the_newest_session(tide: Stage, scraper: Client) -> None:
    point = TidePoint.objects.latest("id")
    gone = point.wall_at - dt.timedelta(minutes=11)
    TidePoint.objects.create(
        cluster=tide.cluster, at=gone, wall_at=gone, card="GONE", total=8, inference=0, training=0, borrowed=0,
        foreign=0, idle=8, waiting=0,
    )  # fmt: skip
    told = scraped(scraper)
    kinds = ("inference", "training", "borrowed", "idle", "foreign", "waiting")
    figures = {"hardware": point.total} | {kind: getattr(point, kind) for kind in kinds}
    assert told["tidesched_cards"] == {
        labels(cluster="stage", card=CARD, kind=kind): milli / 1000 for kind, milli in figures.items()
    }
    assert point.total == 16_000
    assert point.inference == 8_000
    of_nodes = {
        kind: told["tidesched_nodes"][labels(cluster="stage", card=CARD, kind=kind)]
        for kind in ("free", "partial", "full")
    }
    held = {pod["spec"]["nodeName"] for pod in tide.pods("web")}
    full = 1 if len(held) == 1 else 0
    assert of_nodes == {"free": full, "partial": 2 - 2 * full, "full": full}


def test_times_are_those_between_the_points_of_the_timeline(tide: Stage, scraper: Client) -> None:
    """The gang that was evicted is made anew, with the points of its life before: these are not counted again."""
    told = scraped(scraper)
    at = {(event.gang.name, event.kind): event.at for event in GangEvent.objects.order_by("-id").select_related("gang")}
    for gang, service_type in (("job", "training"), ("web", "inference")):
        waited = (at[gang, "running"] - at[gang, "submitted"]).total_seconds()
        of = labels(cluster="stage", service_type=service_type, card=CARD)
        assert told["tidesched_time_to_running_seconds_count"][of] == 1
        assert told["tidesched_time_to_running_seconds_sum"][of] == pytest.approx(waited)
        bucket = next(bound for bound in families.ALL["tidesched_time_to_running_seconds"].bounds if bound >= waited)
        assert told["tidesched_time_to_running_seconds_bucket"][tuple(sorted((*of, ("le", str(bucket)))))] == 1


def test_rows_are_counted_once_whatever_becomes_of_them(tide: Stage, scraper: Client, settings: Any) -> None:
    before = scraped(scraper)
    assert {name: scraped(scraper)[name] for name in COUNTED if name in before} == {
        name: before[name] for name in COUNTED if name in before
    }
    settings.RETENTION_SESSIONS = settings.RETENTION_SESSIONS_WITH_DECISIONS = settings.RETENTION_RECLAIMS = 0
    settings.RETENTION_TIMELINE_POINTS = 1
    retention.run()
    assert not Reclaim.objects.exists()
    after = scraped(scraper)
    for name in COUNTED:
        for of, figure in before.get(name, {}).items():
            assert after[name][of] == figure, (name, of)
    tide.session()
    more = scraped(scraper)["tidesched_sessions_total"]
    assert more == {of: figure + 1 for of, figure in before["tidesched_sessions_total"].items()}


def test_what_has_not_ended_is_counted_when_it_has(tide: Stage) -> None:
    services.fold()

    def done() -> float:
        return counted("tidesched_sessions_total", "done")

    under_way = Session.objects.create(
        cluster=tide.cluster, number=1000, epoch=1, state="sending", mode="schedule", now=timezone.now(),
        started_at=timezone.now(), engine_version="", result_hash="",
    )  # fmt: skip
    reclaim = Reclaim.objects.latest("id")
    late = Reclaim.objects.create(
        cluster=tide.cluster, session=under_way, at=reclaim.at, wall_at=reclaim.wall_at, action="reclaim",
        state="evicting", reclaimer="work/web", queue_name="serve", needed={}, freed={}, rule="",
    )  # fmt: skip
    ReclaimVictim.objects.create(
        reclaim=late, gang="work/a", queue_name="train", cards={CARD: 2, "B": 6}, work_lost_card_seconds=80
    )
    newer = Session.objects.create(
        cluster=tide.cluster, number=1001, epoch=1, state="done", mode="schedule", now=timezone.now(),
        started_at=timezone.now(), finished_at=timezone.now(), engine_version="", result_hash="", counts={"pods": 1},
    )  # fmt: skip
    services.fold()
    first = done()
    assert first == Session.objects.exclude(pk=under_way.pk).count(), "the newer one, not the one before it"
    Session.objects.filter(pk=under_way.pk).update(state="failed", finished_at=timezone.now())
    Reclaim.objects.filter(pk=late.pk).update(state="promised")
    services.fold()
    services.fold()
    assert done() == first
    assert counted("tidesched_sessions_total", "failed") == 1
    assert counted("tidesched_work_lost_card_seconds_total", "train", "serve", "B") == 60
    assert newer.pk > under_way.pk


def test_points_that_another_cluster_has_written_are_passed_and_own_ones_are_not(tide: Stage) -> None:
    """Of an idle cluster the cursor follows; while a session is under way it stays where its own points end."""
    services.fold()
    cursor = Cursor.objects.get()
    assert cursor.event == GangEvent.objects.latest("id").pk
    Session.objects.filter(pk=cursor.session).update(finished_at=None)
    Cursor.objects.update(open_sessions=[cursor.session])
    gang = Gang.objects.first()
    other = Cluster.objects.create(name="other", slug="other", api_url="https://other")
    Gang.objects.filter(pk=gang.pk).update(cluster=other)
    GangEvent.objects.create(gang=gang, kind="reason", at=timezone.now(), wall_at=timezone.now())
    services.fold()
    assert Cursor.objects.get(cluster=tide.cluster).event == cursor.event
    Session.objects.filter(pk=cursor.session).update(finished_at=timezone.now())
    services.fold()
    assert Cursor.objects.get(cluster=tide.cluster).event == GangEvent.objects.latest("id").pk


def test_beyond_the_most_sets_of_labels_queues_are_told_together(tide: Stage, monkeypatch: Any) -> None:
    monkeypatch.setattr(services, "MOST_SETS", 3)
    session = Session.objects.latest("id")
    for number in range(5):
        row = Reclaim.objects.create(
            cluster=tide.cluster, session=session, at=session.now, wall_at=session.now, action="reclaim", state="done",
            reclaimer="work/web", queue_name=f"q{number}", needed={}, freed={}, rule="",
        )  # fmt: skip
        ReclaimVictim.objects.create(reclaim=row, gang="work/a", queue_name="train", cards={CARD: 1})
    services.fold()
    rows = Counted.objects.filter(key__0="tidesched_reclaims_total").values_list("key", "figure")
    assert len(rows) == 4, "one of the stage, two more, and all others together"
    assert counted("tidesched_reclaims_total", services.OTHER, services.OTHER, CARD) == 3


def test_one_process_counts_and_the_others_leave_it_to_it(tide: Stage) -> None:
    with connect() as other, other.transaction():
        other.execute(services._ALONE)
        services.fold()
        assert not Counted.objects.exists()
    services.fold()
    assert Counted.objects.exists()


def documented() -> dict[str, tuple[str, str]]:
    """Metric → its type and its labels, as docs/metrics.md has them."""
    found, last = dict[str, tuple[str, str]](), ""
    page = (sources.ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    for names, kind, of in re.findall(r"^\| (`tidesched_\w+`) \| (\w+) \| ([^|]*)\|", page, re.MULTILINE):
        last = of if "the same" not in of else last
        found[names.strip("`")] = kind, " ".join(re.findall(r"`(\w+)`", last))
    return found


def test_every_name_is_there_with_its_labels(tide: Stage, scraper: Client) -> None:
    """Those of docs/metrics.md; a metric without a sample has its name and type all the same."""
    now = timezone.now()
    Alert.objects.create(cluster=tide.cluster, key="a", severity="warning", code="drift", message="", raised_at=now)
    assert tide.context is not None
    alive.watched[tide.cluster.pk] = tide.context.cache.ages
    alive.tell_watches()
    push_cluster(cluster=tide.cluster, everything=True)
    pushed = push_cluster(cluster=tide.cluster, everything=True)
    scraper.get("/api/v1/queues/")
    text = scraper.get("/metrics").content.decode()
    assert documented() == {
        name: (kind, families.ALL[name].labels) for name, kind in re.findall(r"# TYPE (\w+) (\w+)", text)
    }
    told = scraped(scraper)
    unseen = {"tidesched_drift_objects", "tidesched_run_seconds", "tidesched_jobs_waiting"}
    for name, family in families.ALL.items():
        sample = f"{name}_count" if family.bounds else name
        if name not in unseen:
            assert {frozenset(dict(of)) for of in told[sample]} == {frozenset(family.labels.split())}, name
    assert told["tidesched_alerts"] == {labels(code="drift", severity="warning"): 1}
    assert labels(cluster="stage", kind="Pod") in told["tidesched_watch_lag_seconds"]
    assert told["tidesched_push_total"][labels(cluster="stage", result="unchanged")] >= pushed.pushed > 0
    asked = labels(method="GET", route="api:queues-list", status="200")
    assert told["tidesched_http_requests_total"][asked] >= 1


def test_a_queue_that_there_is_not_is_no_label(tide: Stage, scraper: Client) -> None:
    gang = Gang.objects.filter(gone_at=None, queue__name="serve").get()
    Gang.objects.filter(pk=gang.pk).update(queue=None, queue_name="invented")
    told = scraped(scraper)["tidesched_gangs"]
    assert {dict(of)["queue"] for of in told} == {"", "train"}


def test_what_is_not_known_is_not_told(stage: Stage, scraper: Client) -> None:
    told = scraped(scraper)
    of_cluster = {name for name, samples in told.items() if any(dict(of).get("cluster") for of in samples)}
    assert of_cluster == set()
