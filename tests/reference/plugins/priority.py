"""priority: the higher first."""

from __future__ import annotations

from tests.reference.world import members


class Priority:
    """Orders by priority; only the stronger preempts."""

    def __init__(self, arguments):
        pass

    def task_order(self, world, task):
        return (-task["pod"].priority,)

    def gang_order(self, world, gang):
        return (-world["gangs"][gang].priority,)

    def starving(self, world, gang):
        return bool(members(world, gang, "pending"))

    def preemptable(self, world, task, candidates):
        allowed = set()
        for other in candidates:
            if other["gang"] == task["gang"]:
                lower = other["pod"].priority < task["pod"].priority
            else:
                lower = world["gangs"][other["gang"]].priority < world["gangs"][task["gang"]].priority
            if lower:
                allowed.add(other["key"])
        return allowed
