"""conformance: system pods are no victims."""

from __future__ import annotations

SYSTEM_CLASSES = ("system-cluster-critical", "system-node-critical")


class Conformance:
    """Everybody but the system's own."""

    guards = ("reclaimable", "preemptable", "unified_evictable")

    def __init__(self, arguments):
        pass

    def reclaimable(self, world, task, candidates):
        return {other["key"] for other in candidates if not is_system(other)}

    preemptable = unified_evictable = reclaimable


def is_system(task):
    """kube-system, or one of the two critical classes."""
    return task["pod"].namespace == "kube-system" or task["pod"].priority_class in SYSTEM_CLASSES
