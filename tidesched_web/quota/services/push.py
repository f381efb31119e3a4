"""What is there is read first, then what it should be, and only what differs is written: whichever of two pushes comes
last, the newer figure stays. No transaction is open while the cluster is asked; the answer is written only where the
row is still of the version that was pushed.
"""

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from django.db.models import F, Q
from django.utils import timezone

from tidesched_web.clusters.connection_selectors import reached_clusters, same_server
from tidesched_web.clusters.credentials import UNUSABLE
from tidesched_web.clusters.kubernetes.client import ApiFailure, Json, KubernetesClient, Unreachable
from tidesched_web.clusters.kubernetes.installation_lease import lease_of
from tidesched_web.clusters.kubernetes.outcomes import OutcomeKind
from tidesched_web.clusters.kubernetes.paths import COMMAND, PRIORITY_CLASS, QUEUE, Kind
from tidesched_web.clusters.kubernetes.pressure import run_all
from tidesched_web.clusters.kubernetes.writes import ClusterWrites
from tidesched_web.clusters.models import Cluster, ClusterMode
from tidesched_web.quota.drift_selectors import asked_again
from tidesched_web.quota.manifest import class_manifest, queue_manifest
from tidesched_web.quota.models import PriorityClass, Queue, QueueState, SyncState, TideAnswer
from tidesched_web.quota.push_selectors import limited_cards
from tidesched_web.quota.selectors import queue_grants, queues_with_gangs, with_card_quota
from tidesched_web.quota.services.limits import push_limits_anew
from tidesched_web.quota.services.push_marks import Pushed, count_pushes, mark_away, mark_pushed
from tidesched_web.quota.services.push_object import OVERTAKEN, Aim, bring
from tidesched_web.quota.services.tide_steps import Turned, note_steps
from tidesched_web.quota.tide_selectors import clusters_with_tide, effective_now, tide_due

_log = logging.getLogger(__name__)

# Closed as far as people are concerned, and not yet empty: looked at again until it is.
DRAINS = Q(state=QueueState.CLOSED, live_state=QueueState.CLOSING)
# Refused by the cluster, which would say so again: sent again after a while, or with the next edit.
REFUSED = Q(sync_state=SyncState.FAILED)
PARALLEL_PUSHES = 12
# So many objects are sent before what came of them is written.
BATCH = 500
# More than so many are read with one list, fewer one by one.
_READ_SINGLY = 8
_PAGE = 500
# Between reading and writing others may write too: so often an object is looked at.
_LOOKS = 5
# What is known of a row before its object was read.
_CHOSEN_BY = ("name", "version", "sync_state", "sync_error")

Forced = Collection[tuple[str, str]]


@dataclass
class PushReport:
    """``unreachable`` holds the failure that ended it early; the rest stays pending."""

    pushed: int = 0
    written: int = 0
    refused: dict[str, str] = field(default_factory=dict)
    unreachable: str = ""


def push_cluster(
    *,
    cluster: Cluster,
    everything: bool = False,
    queues_named: Collection[str] | None = None,
    classes_named: Collection[str] | None = None,
    client: KubernetesClient | None = None,
) -> PushReport:
    """With names, nothing but those is looked at, also what rests after a refusal."""
    report = PushReport()
    if cluster.mode == ClusterMode.OBSERVE or cluster.disconnected_at is not None:
        return report
    classes = PriorityClass.objects.filter(cluster=cluster).order_by("name")
    queues = Queue.objects.filter(cluster=cluster).order_by("name")
    if not everything:
        # What was changed by hand waits for a person, or for an edit of its own.
        settled = Q(sync_state=SyncState.IN_STEP) | (
            Q(sync_state=SyncState.DRIFTED) & Q(pushed_version__gte=F("version"))
        )
        classes = classes.exclude(settled)
        queues = queues.filter(~settled | Q(pk__in=tide_due(cluster)) | DRAINS)
    if queues_named is not None or classes_named is not None:
        classes = classes.filter(name__in=classes_named or ())
        queues = queues.filter(name__in=queues_named or ())
    elif not everything:
        asked = [name for _kind, name in asked_again(cluster)]
        rests = REFUSED & Q(retry_at__gt=timezone.now()) & ~Q(name__in=asked)
        classes, queues = classes.exclude(rests), queues.exclude(rests)
    chosen_classes, chosen_queues = list(classes.only(*_CHOSEN_BY)), list(queues.only(*_CHOSEN_BY))
    if chosen_classes or chosen_queues:
        try:
            used = client or KubernetesClient.for_cluster(cluster)
        except UNUSABLE as error:
            report.unreachable = str(error)
            _wait(cluster, [*chosen_classes, *chosen_queues], report.unreachable)
            return report
        try:
            _Push(cluster, used, report).run(chosen_classes, chosen_queues)
        finally:
            if client is None:
                used.close()
    return report


def push_pending() -> dict[str, PushReport]:
    for cluster in reached_clusters().exclude(mode=ClusterMode.OBSERVE):
        push_limits_anew(cluster)
    pending, rests = Q(sync_state=SyncState.PENDING), REFUSED & Q(retry_at__gt=timezone.now())
    queues = Queue.objects.filter(pending | DRAINS | REFUSED).exclude(rests).values("cluster_id")
    classes = PriorityClass.objects.filter(pending | REFUSED).exclude(rests).values("cluster_id")
    clusters = reached_clusters().exclude(mode=ClusterMode.OBSERVE).order_by("slug")
    waiting = set(clusters.filter(Q(pk__in=queues) | Q(pk__in=classes)))
    turned = {cluster for cluster in clusters.filter(pk__in=clusters_with_tide()) if tide_due(cluster)}
    reports = {}
    for cluster in [one for one in clusters if one in waiting | turned]:
        try:
            reports[cluster.slug] = push_cluster(cluster=cluster)
        except Exception:  # noqa: BLE001 - one cluster that fails must not keep the others from being pushed to
            _log.exception("cluster %s could not be pushed to; it is tried again", cluster.slug)
    return reports


def _wait(cluster: Cluster, rows: Sequence[PriorityClass | Queue], error: str) -> None:
    mark_away(rows, error)
    count_pushes(cluster, {"unreachable": len(rows)})
    names = [row.name for row in rows if isinstance(row, Queue)]
    due = Queue.objects.filter(pk__in=tide_due(cluster), name__in=names) if names else Queue.objects.none()
    turned = list(with_card_quota(due))
    effective = effective_now(cluster, turned) if turned else {}
    note_steps(cluster, [Turned(row, effective[row.pk], TideAnswer.PENDING, error[:2000]) for row in turned])


class _Push:
    """One push to one cluster: classes first, since queues may speak of them."""

    def __init__(self, cluster: Cluster, client: KubernetesClient, report: PushReport) -> None:
        self.cluster, self.client, self.report = cluster, client, report
        self.lease = lease_of(cluster.pk, cluster.api_url)
        self.writes = ClusterWrites(client, lease=self.lease)

    def run(self, classes: Sequence[PriorityClass], queues: Sequence[Queue]) -> None:
        forced = asked_again(self.cluster)
        waiting: dict[tuple[str, str], PriorityClass | Queue] = {}
        waiting |= {(PRIORITY_CLASS.name, row.name): row for row in classes}
        waiting |= {(QUEUE.name, row.name): row for row in queues}
        try:
            twin = same_server(self.cluster.server_uid, but=self.cluster.pk)
            if twin is not None and twin.pk < self.cluster.pk:
                raise Unreachable(f"This cluster is connected as {twin.name} already.", maybe_done=False)
            if not self.lease.held(self.client):
                raise Unreachable(self.lease.why or "The cluster's Lease was not answered in time.", maybe_done=False)
            if classes:
                self._bring(PRIORITY_CLASS, [row.name for row in classes], forced, waiting)
            if queues and not self.report.unreachable:
                self._bring(QUEUE, [row.name for row in queues], forced, waiting)
        except (ApiFailure, Unreachable) as error:
            self.report.unreachable = str(error)
        if self.report.unreachable:
            _wait(self.cluster, list(waiting.values()), self.report.unreachable)

    def _bring(
        self, kind: Kind, names: Sequence[str], forced: Forced, waiting: dict[tuple[str, str], PriorityClass | Queue]
    ) -> None:
        """Read what is there, then what it should be, and send batch by batch; what was sent leaves ``waiting``."""
        live = self._read(kind, names)
        lines = self._lines(kind, names, forced)
        for start in range(0, len(lines), BATCH):
            batch = lines[start : start + BATCH]
            self._send(kind, batch, live, forced)
            for one in batch:
                waiting.pop((kind.name, one.row.name), None)
            if self.report.unreachable:
                return

    def _lines(self, kind: Kind, names: Sequence[str], forced: Forced) -> list[Pushed]:
        if kind is PRIORITY_CLASS:
            classes = PriorityClass.objects.filter(cluster=self.cluster, name__in=names).order_by("name")
            return [self._class(row, forced) for row in classes]
        queues = (
            with_card_quota(Queue.objects.filter(cluster=self.cluster, name__in=names))
            .select_related("tenant", "project", "business_line")
            .annotate(granted=queue_grants())
            .order_by("name")
        )
        return self._queues(list(queues), forced)

    def _class(self, row: PriorityClass, forced: Forced) -> Pushed:
        return Pushed(row, Aim(class_manifest(row), forced=(PRIORITY_CLASS.name, row.name) in forced))

    def _queues(self, rows: Sequence[Queue], forced: Forced) -> list[Pushed]:
        # In mode schedule TideSched alone keeps a queue's state, even where Volcano's kinds are installed.
        runs = self.cluster.mode == ClusterMode.QUOTA and self.client.serves(COMMAND.group_version, COMMAND.plural)
        effective = effective_now(self.cluster, list(rows))
        counted_by = limited_cards(self.cluster)
        inhabited = queues_with_gangs(row.pk for row in rows if row.state == QueueState.CLOSED)
        return [
            Pushed(
                row,
                Aim(
                    queue_manifest(row, effective[row.pk], counted_by),
                    forced=(QUEUE.name, row.name) in forced,
                    wants_open=row.state == QueueState.OPEN,
                    by_command=runs,
                    inhabited=row.pk in inhabited,
                ),
                effective[row.pk],
            )
            for row in rows
        ]

    def _read(self, kind: Kind, names: Sequence[str]) -> dict[str, Json]:
        if len(names) <= _READ_SINGLY:
            paths = [kind.path(name=name) for name in names]
            outcomes = run_all([partial(self.client.send, "GET", path) for path in paths])
            for outcome in outcomes:
                if outcome.kind not in (OutcomeKind.DONE, OutcomeKind.GONE):
                    raise Unreachable(f"{outcome.reason}: {outcome.message}", maybe_done=False)
            return {outcome.body["metadata"]["name"]: outcome.body for outcome in outcomes if outcome.body}
        wanted, found = set(names), dict[str, Json]()
        query: dict[str, object] = {"limit": _PAGE}
        while True:
            page = self.client.get(kind.path(), query)
            found |= {one["metadata"]["name"]: one for one in page["items"] if one["metadata"]["name"] in wanted}
            if not page["metadata"].get("continue"):
                return found
            query["continue"] = page["metadata"]["continue"]

    def _send(self, kind: Kind, batch: Sequence[Pushed], live: Mapping[str, Json], forced: Forced) -> None:
        """Send a batch; what others wrote meanwhile is read again, and what it should be too."""
        sent: dict[str, Pushed] = {}
        lines = batch
        for _ in range(_LOOKS):
            calls = [partial(bring, self.writes, one.aim, live.get(one.row.name)) for one in lines]
            for one, outcome in zip(lines, run_all(calls, parallel=PARALLEL_PUSHES), strict=True):
                one.outcome, sent[one.row.name] = outcome, one
            overtaken = [one.row.name for one in lines if one.outcome.reason == OVERTAKEN]
            if not overtaken:
                break
            try:
                live = self._read(kind, overtaken)
            except (ApiFailure, Unreachable) as error:
                self.report.unreachable = str(error)
                break
            lines = self._lines(kind, overtaken, forced)
        for one in sent.values():
            self._count(one)
        mark_pushed(self.cluster, list(sent.values()))

    def _count(self, one: Pushed) -> None:
        outcome = one.outcome
        if outcome.done:
            self.report.pushed += 1
            self.report.written += outcome.reason != "Unchanged"
        elif outcome.kind is OutcomeKind.UNREACHABLE:
            self.report.unreachable = self.report.unreachable or outcome.message or outcome.reason
        elif outcome.reason != OVERTAKEN:
            self.report.refused[f"{one.kind} {one.row.name}"] = f"{outcome.reason}: {outcome.message}"
