"""A level, not an act, and what another manager has set stays. The cluster collects one with its owner."""

from collections.abc import Callable, Mapping

import msgspec

from tidesched_web.clusters.kubernetes import manifests
from tidesched_web.clusters.kubernetes.outcomes import Outcome as Answer
from tidesched_web.engine.model import Pod, PodGroup, Snapshot
from tidesched_web.scheduling.pipeline import timing
from tidesched_web.scheduling.pipeline.sending import Route

# So long the pods of a workload may be away (it is restarted) before its PodGroup is taken away.
EMPTY_SECONDS = 60.0
LOOK_SECONDS = 10.0
# A PodGroup that was made and is not seen, or that was refused, is made again no sooner.
AGAIN_SECONDS = 30.0
MOST_AT_ONCE = 500


class PodGroupBook:
    def __init__(self) -> None:
        self._tried: dict[str, float] = {}
        # What was brought into a PodGroup last: what is different all the same is another manager's.
        self._revised: dict[str, PodGroup] = {}
        self._empty: dict[str, float] = {}
        self._looked_at = float("-inf")

    def send(self, snapshot: Snapshot, route: Route, *, revisions: Mapping[str, PodGroup]) -> int:
        """``revisions``: PodGroups of ours as they would be made now, where that is not how they are."""
        now = timing.monotonic()
        self._tried = {key: at for key, at in self._tried.items() if now - at < AGAIN_SECONDS}
        missing = {
            group.key: group
            for group in snapshot.pod_groups
            if group.made and not group.problem and group.key not in self._tried
        }
        self._revised = {key: group for key, group in self._revised.items() if key in revisions}
        missing |= self._to_revise(snapshot, revisions)
        first = _first_members(snapshot, missing)
        to_make = list(first)[:MOST_AT_ONCE]
        over = self._over(snapshot, now)[:MOST_AT_ONCE]
        if not (to_make or over):
            return 0
        calls = [_make(route, missing[key], first[key]) for key in to_make]
        answers = route.send([*calls, *(_delete(route, group) for group in over)])
        for key, answer in zip(to_make, answers, strict=False):
            if answer.settled:
                self._tried[key] = now
                if key in revisions:
                    self._revised[key] = revisions[key]
        return sum(answer.done for answer in answers)

    def _to_revise(self, snapshot: Snapshot, revisions: Mapping[str, PodGroup]) -> dict[str, PodGroup]:
        wanted = {
            key: group for key, group in revisions.items() if key not in self._tried and self._revised.get(key) != group
        }
        if not wanted:
            return {}
        standing = {group.key: group for group in snapshot.pod_groups if group.key in wanted}
        return {
            key: msgspec.structs.replace(group, submitted=standing[key].waiting_since)
            for key, group in wanted.items()
            if key in standing and not standing[key].made
        }

    def _over(self, snapshot: Snapshot, now: float) -> list[PodGroup]:
        if now - self._looked_at < LOOK_SECONDS:
            return []
        self._looked_at = now
        idle = {
            group.key: group
            for group in snapshot.pod_groups
            if not group.made and group.replicas == 0 and manifests.MADE_FOR in group.annotations
        }
        if idle:
            for pod in snapshot.pods:
                idle.pop(pod.group_key, None)
        self._empty = {key: self._empty.get(key, now) for key in idle}
        return [group for key, group in idle.items() if now - self._empty[key] >= EMPTY_SECONDS]


def _first_members(snapshot: Snapshot, missing: Mapping[str, PodGroup]) -> dict[str, Pod]:
    first: dict[str, Pod] = {}
    if missing:
        for pod in snapshot.pods:
            if not (pod.finished or pod.deleted is not None) and (key := pod.group_key) in missing:
                first.setdefault(key, pod)
    return first


def _make(route: Route, group: PodGroup, pod: Pod) -> Callable[[], Answer]:
    owner = pod.owner
    manifest = manifests.pod_group(
        group.namespace,
        group.name,
        owner=(owner.api_version, owner.kind, owner.name, owner.uid) if owner else ("v1", "Pod", pod.name, pod.uid),
        min_member=group.min_member,
        queue=group.queue,
        priority_class=group.priority_class,
        cpu_milli=group.min_resources.cpu_milli if group.min_resources else 0,
        memory_mib=group.min_resources.memory_mib if group.min_resources else 0,
        scalars=group.min_scalars,
        annotations=group.annotations,
        submitted=group.waiting_since,
    )
    return lambda: route.writes.apply_podgroup(manifest)


def _delete(route: Route, group: PodGroup) -> Callable[[], Answer]:
    return lambda: route.writes.delete_podgroup(group.namespace, group.name, uid=group.uid)
