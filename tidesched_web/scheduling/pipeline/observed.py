"""Evictions by others: once per pod, with its audit entry; a name that comes later is entered later, and audited."""

import datetime as dt
import time
from collections.abc import Iterable

from django.db import transaction
from django.utils import timezone

from tidesched_web.clusters.kubernetes.client import ApiFailure, KubernetesClient, Unreachable
from tidesched_web.clusters.kubernetes.paths import EVENT
from tidesched_web.clusters.models import ClusterMode
from tidesched_web.engine.cards import card_of
from tidesched_web.engine.gangs import gang_of
from tidesched_web.engine.model import Amount, Pod, Snapshot
from tidesched_web.scheduling.models import Decision, DecisionKind, DecisionState
from tidesched_web.scheduling.pipeline.lease import hold_row
from tidesched_web.scheduling.pipeline.observed_instead import Decided, OwnDecisions
from tidesched_web.scheduling.pipeline.observed_losses import seconds_of
from tidesched_web.scheduling.pipeline.observed_rows import Evicted, Writer
from tidesched_web.scheduling.pipeline.sightings import Sighting, Sightings, gang_by_itself, named_in_event
from tidesched_web.scheduling.pipeline.work import Work

# So long a name is looked for after the eviction, and so often.
NAMED_WITHIN_SECONDS, NAMED_EVERY_SECONDS = 60.0, 3.0
_EVENTS_AT_ONCE = 20
_MODES = (ClusterMode.OBSERVE, ClusterMode.QUOTA)


class Observer:
    def __init__(self, cluster_id: int) -> None:
        self.cluster_id = cluster_id
        self.sightings = Sightings()
        self._own = OwnDecisions()
        self._unnamed: list[Evicted] = []
        self._last: Snapshot | None = None

    def record(self, work: Work) -> int:
        """Write what was seen since the last session; returns how many pods. After a session that sent nothing."""
        taken = self.sightings.take()
        try:
            return self._record(work, taken) if work.cluster.mode in _MODES else 0
        except Exception:
            self.sightings.give_back(taken)
            raise
        finally:
            self._remember(work)

    def _record(self, work: Work, taken: list[Sighting]) -> int:
        before = self._last or work.snapshot
        found = self._without_own(_evicted(taken, work, before)) if taken else []
        edge = time.monotonic() - NAMED_WITHIN_SECONDS
        again = self._unnamed = [one for one in self._unnamed if one.seen_at >= edge]
        self._name([*found, *again], work)
        named = [one for one in again if one.reclaimer]
        if not found and not named:
            return 0
        with transaction.atomic():
            hold_row(work.context.lease)
            written = Writer(work, self._own, before=self._last).write(found, named)
        self._unnamed = [one for one in [*again, *found] if not one.reclaimer and one.row is not None]
        return written

    def _remember(self, work: Work) -> None:
        self._last = work.snapshot
        if work.cluster.mode in _MODES:
            at = work.now.isoformat()
            self._own.note(Decided(work.session.pk, work.session.number, at, work.snapshot, work.result))

    def _without_own(self, found: list[Evicted]) -> list[Evicted]:
        """Evictions that TideSched itself decided on (the mode was another a moment ago) have their reclaim already."""
        uids = [one.sighting.uid for one in found]
        since = timezone.now() - dt.timedelta(days=1)
        evictions = Decision.objects.filter(cluster_id=self.cluster_id, kind=DecisionKind.EVICT, at__gte=since)
        sent = evictions.exclude(state__in=(DecisionState.SUPERSEDED, DecisionState.FAILED))
        own = set(sent.filter(uid__in=uids).values_list("uid", flat=True))
        return [one for one in found if one.sighting.uid not in own]

    # -- for whom ----------------------------------------------------------------------------------------------

    def _name(self, found: Iterable[Evicted], work: Work) -> None:
        nameless = [one for one in found if not one.reclaimer]
        if not nameless:
            return
        told = self._events(nameless, work.context.client)
        nominated = {one.sighting.node: self.sightings.nominated_to(one.sighting.node) for one in nameless}
        gangs = {key: gang for pods in nominated.values() for key, gang in pods.items()}
        keys = {key for key, _uid in told.values() if key} | gangs.keys()
        uids = {uid for _key, uid in told.values() if uid}
        for snapshot in (self._last, work.snapshot):
            for pod in snapshot.pods if snapshot is not None and (keys or uids) else ():
                if pod.key in keys or pod.uid in uids:
                    gangs[pod.key] = gangs[pod.uid] = gang_of(pod) or pod.key
        for one in nameless:
            key, uid = told.get(one.sighting.uid, ("", ""))
            if name := gangs.get(uid) or gangs.get(key) or key:
                one.reclaimer, one.evidence = name, "event"
                continue
            there = {gangs[key] for key in nominated[one.sighting.node]} - {one.gang}
            if one.sighting.node and len(there) == 1:
                one.reclaimer, one.evidence = there.pop(), "nominated"

    def _events(self, nameless: list[Evicted], client: KubernetesClient) -> dict[str, tuple[str, str]]:
        """Whom the events of these pods name, by the victim's uid; asked for some of them now and then."""
        now, found = time.monotonic(), {}
        due = [one for one in nameless if now - one.asked_at >= NAMED_EVERY_SECONDS]
        for one in due[:_EVENTS_AT_ONCE]:
            one.asked_at = now
            query = {"fieldSelector": f"involvedObject.uid={one.sighting.uid}", "limit": 50}
            try:
                events = client.get(EVENT.path(one.sighting.pod.partition("/")[0]), query).get("items") or []
            except (ApiFailure, Unreachable):
                break  # no answer now: asked again, or unknown
            for name in map(named_in_event, events):
                if any(name):
                    found[one.sighting.uid] = name
        return found


def _evicted(taken: list[Sighting], work: Work, before: Snapshot) -> list[Evicted]:
    wanted = {one.uid for one in taken}
    pods: dict[str, Pod] = {}
    for snapshot in (before, work.snapshot):
        pods |= {pod.uid: pod for pod in snapshot.pods if pod.uid in wanted}
    nodes = {node.name: node for node in (*before.nodes, *work.snapshot.nodes)} if pods else {}
    queues = {group.key: group.queue for group in (*before.pod_groups, *work.snapshot.pod_groups)} if pods else {}
    found = []
    for one in taken:
        pod = pods.get(one.uid)
        if pod is None:
            found.append(Evicted(one, gang_by_itself(one)))
            continue
        card = card_of(pod, nodes.get(pod.node))
        amount = Amount(pod.cpu_milli, pod.memory_mib, {card: pod.card.milli} if pod.card and card else {})
        seconds = seconds_of(pod, work.now.timestamp())
        gang = (gang_of(pod) or gang_by_itself(one))[:320]  # pods may name it as they like
        found.append(Evicted(one, gang, queues.get(gang, "")[:253], amount, seconds))
    return found
