"""Disruption budgets of a whole reclaim: in a dry run each pod passes by itself, although all together do not."""

from collections import Counter
from collections.abc import Sequence

from tidesched_web.engine.model import DisruptionBudget, Snapshot, allowance
from tidesched_web.scheduling.pipeline.decisions import Draft


class Budgets:
    """What the PodDisruptionBudgets of a snapshot allow: as their controller has counted, else as they are written."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._budgets = snapshot.disruption_budgets
        namespaces = {budget.namespace for budget in self._budgets}
        # Rare where gangs run, so that mostly no pod is looked at.
        self._pods = {pod.key: pod for pod in snapshot.pods if pod.namespace in namespaces} if namespaces else {}
        self._allowed: dict[str, int] = {}

    def forbids(self, drafts: Sequence[Draft]) -> tuple[Draft, str] | None:
        used: Counter[str] = Counter()
        for draft in drafts:
            pod = self._pods.get(draft.target)
            if pod is None:
                continue
            for budget in self._budgets:
                if not budget.counts_eviction_of(pod):
                    continue
                used[budget.key] += 1
                allowed = self._allowance(budget)
                if used[budget.key] > allowed:
                    why = f"allows {allowed} disruptions, and {len(drafts)} pods have to leave together"
                    return draft, f"PodDisruptionBudget {budget.key} {why}"
        return None

    def _allowance(self, budget: DisruptionBudget) -> int:
        if budget.key not in self._allowed:
            self._allowed[budget.key] = allowance(budget, self._pods.values())
        return self._allowed[budget.key]
