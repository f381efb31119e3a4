"""PodDisruptionBudgets: who may not leave any more."""

from __future__ import annotations

from tests.reference.nodes import holds


def spared(world, tasks):
    """Keys of those who may not leave if the ones before them do."""
    gone = [t["pod"] for t in world["tasks"].values() if t["status"] == "releasing" and t["pod"].deleted is None]
    kept = set()
    for task in tasks:
        pod = task["pod"]
        if all(_used(budget, gone) < _allowed(world, budget) for budget in world["budgets"] if _counts(budget, pod)):
            gone.append(pod)
        else:
            kept.add(task["key"])
    return kept


def _covers(budget, pod):
    if budget.namespace != pod.namespace or budget.selector is None:
        return False
    return all(holds(line, pod.labels.get(line.key)) for line in budget.selector)


def _counts(budget, pod):
    return _covers(budget, pod) and pod.name not in budget.disrupted


def _used(budget, gone):
    return sum(1 for pod in gone if _counts(budget, pod))


def _allowed(world, budget):
    if budget.allowed is not None:
        return budget.allowed
    pods = [t["pod"] for t in world["tasks"].values() if _covers(budget, t["pod"])]
    pods = [pod for pod in pods if pod.phase.value not in ("Succeeded", "Failed")]
    healthy = sum(1 for pod in pods if pod.phase.value == "Running" and pod.deleted is None)
    if budget.max_unavailable:
        return max(0, _part(budget.max_unavailable, len(pods)) - (len(pods) - healthy))
    return max(0, healthy - _part(budget.min_available, len(pods))) if budget.min_available else 0


def _part(text, total):
    if text.endswith("%"):
        return (int(text[:-1]) * total + 99) // 100
    return int(text)
