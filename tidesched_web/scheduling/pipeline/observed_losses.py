"""Where a gang restarts as a whole (its job says so, or fewer than its minimum stay) all members lose their work."""

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from tidesched_web.engine.cards import card_of
from tidesched_web.engine.gangs import gang_of
from tidesched_web.engine.model import Node, Pod, PodGroup, PodPhase, Snapshot


@dataclass
class Siblings:
    uids: list[str] = field(default_factory=list)
    card_seconds: float = 0.0


def seconds_of(pod: Pod, now: float) -> float:
    """How long the work of a pod has gone on, as the scheduler counts it for its own reclaims."""
    return max(0.0, now - (pod.started if pod.started is not None else pod.created))


def card_seconds(pod: Pod, node: Node | None, now: float) -> float:
    return pod.card.milli / 1000 * seconds_of(pod, now) if pod.card and card_of(pod, node) else 0.0


class Gangs:
    """``first`` is the picture where there is none before, so that members on their way out count as there."""

    def __init__(self, names: Collection[str], picture: Snapshot, *, now: float, first: bool = False) -> None:
        self._now = now
        self._groups: dict[str, PodGroup] = {one.key: one for one in picture.pod_groups if one.key in names}
        self._members: dict[str, list[Pod]] = {}
        self._succeeded: Counter[str] = Counter()
        for pod in picture.pods:
            if not pod.node or (pod.deleted is not None and not first) or (gang := gang_of(pod)) not in names:
                continue
            if not pod.finished:
                self._members.setdefault(gang, []).append(pod)
            elif pod.phase is PodPhase.SUCCEEDED:
                self._succeeded[gang] += 1
        nodes = {pod.node for pods in self._members.values() for pod in pods}
        self._nodes = {node.name: node for node in picture.nodes if node.name in nodes}

    def uids(self) -> list[str]:
        return [pod.uid for pods in self._members.values() for pod in pods]

    def siblings(
        self, gang: str, evicted: Collection[str], before: Collection[str], counted: Collection[str]
    ) -> Siblings:
        """Args are uids: evicted now, evicted ``before``, and those whose work was ``counted`` then."""
        there = [pod for pod in self._members.get(gang, ()) if pod.uid not in before]
        stay = [pod for pod in there if pod.uid not in evicted]
        group = self._groups.get(gang)
        ended = self._succeeded[gang]
        if group is None or not _restarts(group, len(there) + ended, len(stay) + ended):
            return Siblings()
        lose = sorted((pod for pod in stay if pod.uid not in counted), key=lambda pod: pod.key)
        return Siblings([pod.uid for pod in lose], sum(self._lost(lose)))

    def _lost(self, pods: Iterable[Pod]) -> Iterable[float]:
        return (card_seconds(pod, self._nodes.get(pod.node), self._now) for pod in pods)


def _restarts(group: PodGroup, there: int, stay: int) -> bool:
    return group.evicted_policy.fells_gang or stay < group.min_member <= there
