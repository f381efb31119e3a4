from collections.abc import Callable

from tidesched_web.clusters.kubernetes.outcomes import Outcome as Answer
from tidesched_web.engine.model import Pod, Result, Snapshot
from tidesched_web.scheduling.pipeline import timing
from tidesched_web.scheduling.pipeline.sending import Route

# A nomination that is gone may come again with the next session; it is taken back once it stays away.
TAKE_BACK_SECONDS = 10.0
MOST_AT_ONCE = 200


class NominationBook:
    def __init__(self) -> None:
        self._told: dict[str, str] = {}
        self._wanted_at: dict[str, float] = {}

    def send(self, result: Result, snapshot: Snapshot, route: Route) -> int:
        now = timing.monotonic()
        wanted = {bind.pod: bind.node for bind in result.pipelined}
        changes: list[tuple[Pod, str]] = []
        told: dict[str, str] = {}
        wanted_at: dict[str, float] = {}
        for pod in snapshot.pods:
            if pod.node or pod.scheduler not in snapshot.schedulers:
                continue
            node = wanted.get(pod.key)
            known = self._told.get(pod.uid, pod.nominated_node)
            if node is None and not known:
                continue
            told[pod.uid] = known
            wanted_at[pod.uid] = now if node is not None else self._wanted_at.get(pod.uid, now)
            if node is None and now - wanted_at[pod.uid] < TAKE_BACK_SECONDS:
                continue
            if known != (node or ""):
                changes.append((pod, node or ""))
        del changes[MOST_AT_ONCE:]
        self._told, self._wanted_at = told, wanted_at
        answers = route.send([_call(route, pod, node) for pod, node in changes]) if changes else []
        for (pod, node), answer in zip(changes, answers, strict=True):
            if answer.settled:
                self._told[pod.uid] = node
        return sum(answer.done for answer in answers)


def _call(route: Route, pod: Pod, node: str) -> Callable[[], Answer]:
    return lambda: route.writes.nominate_node(pod.namespace, pod.name, uid=pod.uid, node=node)
