"""Which waiting tasks may take from others at all. Source: volcano-semantics 3.4; Kubernetes'
PodEligibleToPreemptOthers."""

from scheduler_core.framework.session import Session
from scheduler_core.state.status import RELEASING


class Eligibility:
    """Answers for one action; what leaves is read once."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._leaving: dict[int, int] | None = None

    def may_take(self, task: int) -> bool:
        """False with preemptionPolicy Never, and while a weaker pod already leaves the node it is nominated to."""
        session = self._session
        pod = session.tasks.pod(task)
        if pod.preemption_policy == "Never":
            return False
        node = session.axes.node_index.get(pod.nominated_node, -1) if pod.nominated_node else -1
        return node < 0 or self._lowest_leaving(node) >= int(session.tasks.priority[task])

    def _lowest_leaving(self, node: int) -> int:
        if self._leaving is None:
            tasks = self._session.tasks
            self._leaving = {}
            for task in (tasks.live & (tasks.status == RELEASING) & (tasks.node >= 0)).nonzero()[0].tolist():
                at, priority = int(tasks.node[task]), int(tasks.priority[task])
                self._leaving[at] = min(priority, self._leaving.get(at, priority))
        return self._leaving.get(node, 1 << 62)
