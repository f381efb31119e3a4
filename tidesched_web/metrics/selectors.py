"""Gauges of what the tables hold now: by the selectors that pages and REST ask, so that the figures are the same."""

import datetime as dt
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

from django.db.models import Count, FloatField, OuterRef, QuerySet, Subquery
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast

from tidesched_web.clusters.connection_selectors import reached_clusters
from tidesched_web.clusters.models import Cluster, Counted
from tidesched_web.clusters.selectors import card_names, visible_clusters, visible_nodes
from tidesched_web.common import alive
from tidesched_web.jobs.models import Job, JobState
from tidesched_web.metrics.families import Key
from tidesched_web.quota.drift_selectors import visible_drift
from tidesched_web.quota.models import DriftState
from tidesched_web.quota.selectors import visible_queues
from tidesched_web.scheduling.cluster_selectors import EVERYTHING
from tidesched_web.scheduling.models import Session
from tidesched_web.scheduling.pipeline.usage import TIDE_HEARTBEAT
from tidesched_web.scheduling.selectors import tide_points, visible_alerts
from tidesched_web.scheduling.usage_selectors import usage_now
from tidesched_web.workloads.selectors import that_wait, visible_gangs, with_free_cards

Sample = tuple[Key, float]
_END = dt.datetime.max.replace(tzinfo=dt.UTC)
_TIDE = ("inference", "training", "borrowed", "idle", "foreign", "waiting")
_OF_QUEUE = ("quota", "allocated", "inqueue", "borrowed", "lent")


def gauges() -> Iterator[Sample]:
    newest = Session.objects.filter(cluster=OuterRef("pk"), finished_at__isnull=False).order_by("-id")
    for cluster in visible_clusters(EVERYTHING).annotate(ended_at=Subquery(newest.values("finished_at")[:1])):
        if cluster.ended_at is None:
            continue  # what a demo was given as its past is not of now
        yield ("tidesched_last_session_timestamp_seconds", cluster.slug), cluster.ended_at.timestamp()
        points = tide_points(cluster, _END)
        written_at = max((point.wall_at for point in points), default=_END)
        for point in points:
            if written_at - point.wall_at > 2 * TIDE_HEARTBEAT:
                continue  # no node has had such a card since, and no gang asks for one
            figures = {"hardware": point.total} | {kind: getattr(point, kind) for kind in _TIDE}
            for kind, milli in figures.items():
                yield ("tidesched_cards", cluster.slug, point.card, kind), milli / 1000
        yield from _nodes(cluster)
    yield from _queues()
    gangs = visible_gangs(EVERYTHING)
    yield from _numbers("tidesched_gangs", gangs.filter(gone_at__isnull=True), "cluster__slug", "queue__name", "state")
    yield from _numbers("tidesched_waiting_gangs", that_wait(gangs), "cluster__slug", "queue__name", "reason_code")
    drifts = visible_drift(EVERYTHING).filter(state=DriftState.OPEN)
    yield from _numbers("tidesched_drift_objects", drifts, "cluster__slug", "kind")
    alerts = visible_alerts(EVERYTHING).filter(resolved_at__isnull=True)
    yield from _numbers("tidesched_alerts", alerts, "code", "severity")
    yield from _numbers("tidesched_jobs_waiting", Job.objects.filter(state=JobState.QUEUED), "kind")


def _numbers(name: str, rows: QuerySet[Any], *labels: str) -> Iterator[Sample]:
    for *values, number in rows.order_by().values_list(*labels).annotate(n=Count("pk")):
        yield (name, *(value or "" for value in values)), number


def _queues() -> Iterator[Sample]:
    queues = list(visible_queues(EVERYTHING).select_related("cluster"))
    used = usage_now(queues)
    for queue in queues:
        for card, figures in used[queue.pk].items():
            for kind in _OF_QUEUE:
                yield ("tidesched_queue_cards", queue.cluster.slug, queue.name, card, kind), figures[kind]


def _nodes(cluster: Cluster) -> Iterator[Sample]:
    nodes = visible_nodes(EVERYTHING).filter(cluster=cluster, gone_at__isnull=True)
    for card in card_names(cluster):
        has = Cast(KeyTextTransform(card, "cards"), FloatField())
        there = with_free_cards(nodes.filter(cards__has_key=card), cluster, card).annotate(has=has)
        kinds = Counter(
            "full" if free <= 0 else "free" if free >= 1000 * cards else "partial"
            for free, cards in there.order_by().values_list("free", "has")
            if cards > 0
        )
        for kind in ("free", "partial", "full") if kinds else ():
            yield ("tidesched_nodes", cluster.slug, card, kind), kinds[kind]


def watch_lags() -> Iterator[Sample]:
    for cluster in reached_clusters():
        for kind, at in alive.watches_heard(cluster.pk).items():
            yield ("tidesched_watch_lag_seconds", cluster.slug, kind), max(0.0, time.time() - at)


def counted() -> Iterator[Sample]:
    for slug, (name, *labels), figure in Counted.objects.values_list("cluster__slug", "key", "figure").order_by("key"):
        yield (name, slug, *labels), figure
