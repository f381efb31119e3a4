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

    def unified_evictable(self, world, task, candidates):
        gangs, own = world["gangs"], world["gangs"][task["gang"]]
        return {
            other["key"]
            for other in candidates
            if gangs[other["gang"]].queue != own.queue or gangs[other["gang"]].priority < own.priority
        }

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
