"""PodDisruptionBudgets: how many pods of a kind may be missing at once."""

import msgspec

from scheduler_core.model.pod import Pod
from scheduler_core.model.selector import LabelSelector, matches


class DisruptionBudget(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """One PodDisruptionBudget, immutable.

    Attributes:
        selector: over the labels of pods of its namespace; None selects nothing, an empty one every pod.
        allowed: ``status.disruptionsAllowed``; None = the object has no status, then the spec is counted out.
        min_available, max_unavailable: as written, a number or a percentage; empty = unset.
        disrupted: pods (names) whose eviction ``status`` counts already."""

    namespace: str
    name: str
    selector: LabelSelector | None = None
    allowed: int | None = None
    min_available: str = ""
    max_unavailable: str = ""
    disrupted: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"

    def covers(self, pod: Pod) -> bool:
        """Whether the pod is one of those that the budget counts."""
        return self.namespace == pod.namespace and self.selector is not None and matches(self.selector, pod.labels)

    def counts_eviction_of(self, pod: Pod) -> bool:
        """Whether one more eviction is counted when the pod goes: it is covered, and ``status`` has not counted it."""
        return pod.name not in self.disrupted and self.covers(pod)
