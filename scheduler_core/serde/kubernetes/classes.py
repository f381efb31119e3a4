"""Priority classes: those of the cluster and those that every cluster has."""

from __future__ import annotations

from collections.abc import Iterable

from scheduler_core.model.queue import PriorityClass

SYSTEM_CLASSES = (
    PriorityClass(name="system-cluster-critical", value=2_000_000_000),
    PriorityClass(name="system-node-critical", value=2_000_001_000),
)


class Classes:
    """Values of priority classes."""

    def __init__(self, classes: Iterable[PriorityClass]) -> None:
        self.by_name = {c.name: c for c in (*SYSTEM_CLASSES, *classes)}
        # Kubernetes takes the smallest value where several classes call themselves the default.
        self.default = min((c.value for c in self.by_name.values() if c.global_default), default=0)

    def value(self, name: str) -> int:
        """The value of class ``name``, or of the global default."""
        known = self.by_name.get(name)
        return self.default if known is None else known.value
