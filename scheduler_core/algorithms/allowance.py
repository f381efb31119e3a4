"""How many of a number of pods a limit speaks of, and how many a budget lets go. Source: Kubernetes' disruption
controller and volcano-semantics 4.12 (percentages are rounded up)."""

from collections.abc import Iterable

from scheduler_core.model.disruption import DisruptionBudget
from scheduler_core.model.pod import Pod, PodPhase


def share_of(text: str, total: int) -> int:
    """``"3"``, or ``"25%"`` of ``total`` rounded up. Raises ValueError: neither a number of zero or more nor a
    percentage."""
    digits = text.strip().removesuffix("%")
    if not (digits.isascii() and digits.isdecimal()) or len(digits) > 9:
        raise ValueError(f"{text[:40]!r} is neither a number nor a percentage")
    number = int(digits)
    return -(-number * total // 100) if text.strip().endswith("%") else number


def allowance(budget: DisruptionBudget, pods: Iterable[Pod]) -> int:
    """Evictions that a budget allows now: as its controller has counted them, else as the budget is written, O(pods).
    ``pods``: all pods of the budget's namespace, others may be among them."""
    if budget.allowed is not None:
        return budget.allowed
    covered = [pod for pod in pods if not pod.finished and budget.covers(pod)]
    healthy = sum(1 for pod in covered if pod.phase is PodPhase.RUNNING and pod.deleted is None)
    return may_go(budget.min_available, budget.max_unavailable, expected=len(covered), healthy=healthy)


def may_go(min_available: str, max_unavailable: str, *, expected: int, healthy: int) -> int:
    """Pods that may leave now; a limit on those that are missing goes before one on those that stay; 0 or more."""
    if max_unavailable:
        return max(0, healthy - (expected - share_of(max_unavailable, expected)))
    return max(0, healthy - share_of(min_available, expected)) if min_available else 0
