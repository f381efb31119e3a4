from collections.abc import Callable, Mapping, Sequence

from tidesched_web.clusters.kubernetes.cache import GangCounts
from tidesched_web.clusters.kubernetes.outcomes import Outcome as Answer
from tidesched_web.engine.model import Pod, PodGroup, PodPhase, Snapshot
from tidesched_web.scheduling.pipeline import timing
from tidesched_web.scheduling.pipeline.pod_reasons import PodChanges
from tidesched_web.scheduling.pipeline.sending import Route

# The pods of a gang start one after another: who looks at the count can wait, the API server need not hear of each.
LOOK_SECONDS = 5.0
MOST_AT_ONCE = 500
# The same count that is not seen to stay is written again no sooner.
AGAIN_SECONDS = 60.0
_FIELDS = {PodPhase.RUNNING: 0, PodPhase.SUCCEEDED: 1, PodPhase.FAILED: 2}


class GangCountBook:
    """A level: brought to what the pods show, every few seconds. The other count of another controller stays."""

    def __init__(self) -> None:
        self._looked_at = float("-inf")
        self._told: dict[str, tuple[GangCounts, float]] = {}
        self._counted = Counted()

    def send(
        self, snapshot: Snapshot, route: Route, *, pods: Sequence[Pod], shown: Callable[[], Mapping[str, GangCounts]]
    ) -> int:
        """``pods`` are those of the watch alone, without assumptions: its editions say what has changed."""
        # With each session: only the last few editions know how they differ.
        true = self._counted.follow(pods)
        now = timing.monotonic()
        if now - self._looked_at < LOOK_SECONDS:
            return 0
        self._looked_at = now
        known, none = shown(), GangCounts()
        self._told = {key: told for key, told in self._told.items() if now - told[1] < AGAIN_SECONDS}
        moved: list[tuple[PodGroup, GangCounts]] = []
        for group in snapshot.pod_groups:
            counts = true.get(group.key, none)
            if group.made or known.get(group.key, none) == counts:
                continue
            if group.key not in self._told or self._told[group.key][0] != counts:
                moved.append((group, counts))
        del moved[MOST_AT_ONCE:]
        answers = route.send([_patch(route, group, counts) for group, counts in moved]) if moved else []
        for (group, counts), answer in zip(moved, answers, strict=True):
            if answer.settled:
                self._told[group.key] = (counts, now)
        return sum(answer.done for answer in answers)


class Counted:
    def __init__(self) -> None:
        self._changes = PodChanges()
        self._places: dict[str, tuple[str, int]] = {}
        self._counts: dict[str, GangCounts] = {}

    def follow(self, pods: Sequence[Pod]) -> Mapping[str, GangCounts]:
        anew, changes = self._changes.follow(pods)
        if anew:
            self._places, self._counts = {}, {}
        for key, pod in changes:
            self._put(key, pod)
        return self._counts

    def _put(self, key: str, pod: Pod | None) -> None:
        place = _place(pod) if pod is not None else None
        before = self._places.pop(key, None)
        if place is not None:
            self._places[key] = place
        if before == place:
            return
        if before is not None:
            self._add(*before, -1)
        if place is not None:
            self._add(*place, 1)

    def _add(self, gang: str, field: int, by: int) -> None:
        found = list(self._counts.get(gang, GangCounts()))
        found[field] += by
        if any(found):
            self._counts[gang] = GangCounts(*found)
        else:
            self._counts.pop(gang, None)


def _place(pod: Pod) -> tuple[str, int] | None:
    field = _FIELDS.get(pod.phase)
    if field is None or (field == 0 and pod.deleted is not None) or not (key := pod.group_key):
        return None
    return key, field


def _patch(route: Route, group: PodGroup, counts: GangCounts) -> Callable[[], Answer]:
    return lambda: route.writes.patch_podgroup_counts(
        group.namespace, group.name, uid=group.uid, counts=counts._asdict()
    )
