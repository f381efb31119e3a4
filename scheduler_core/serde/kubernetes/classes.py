"""Priority classes: those of the cluster and those that every cluster has."""

from collections.abc import Iterable

from scheduler_core.model.queue import PriorityClass

SYSTEM_CLASSES = (
    PriorityClass(name="system-cluster-critical", value=2_000_000_000),
    PriorityClass(name="system-node-critical", value=2_000_001_000),
)


class Classes:
    """Values and preemption policies of priority classes."""

    def __init__(self, classes: Iterable[PriorityClass]) -> None:
        self.by_name = {c.name: c for c in (*SYSTEM_CLASSES, *classes)}
        # Kubernetes takes the smallest value where several classes call themselves the default.
        defaults = [c for c in self.by_name.values() if c.global_default]
        self._default = min(defaults, key=lambda c: (c.value, c.name), default=None)
        self.default = self._default.value if self._default is not None else 0

    def value(self, name: str) -> int:
        """The value of class ``name``, or of the global default."""
        known = self.by_name.get(name)
        return self.default if known is None else known.value

    def problem(self, name: str) -> str:
        known = self.by_name.get(name, self._default)
        return f"PriorityClass {known.name}: {known.problem}" if known is not None and known.problem else ""

    def preemption_policy(self, name: str) -> str:
        """That of class ``name``, or of the global default; as the API server writes it on a pod that says nothing."""
        known = self.by_name.get(name, self._default)
        return known.preemption_policy if known is not None else "PreemptLowerPriority"
