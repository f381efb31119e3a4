"""coscheduling: pods one by one, bound when their group is complete."""

from __future__ import annotations

from tests.reference.world import READY, VALID, count, members

TIMEOUT = "tidesched.io/schedule-timeout-seconds"


class Coscheduling:
    """Groups stay together."""

    def __init__(self, arguments):
        self.patience = arguments.get("waitSeconds", 60.0)

    def queue_sort(self, world, task):
        group = world["gangs"][task["gang"]]
        return (-task["pod"].priority, -group.priority, group.created, group.key, self._more(world, task))

    def _more(self, world, task):
        """More than its role needs: so many others of it have a place or come first."""
        wanted = world["gangs"][task["gang"]].min_task_member
        mates = [t for t in members(world, task["gang"]) if t["pod"].role == task["pod"].role and t is not task]
        age = (task["pod"].created, task["key"])
        first = [
            t
            for t in mates
            if t["status"] in (*READY, "pipelined") or (t["status"] == "pending" and (t["pod"].created, t["key"]) < age)
        ]
        return bool(wanted) and len(first) >= wanted.get(task["pod"].role, 0)

    def well_written(self, world, gang):
        text = world["gangs"][gang].annotations.get(TIMEOUT)
        alike = len({task["pod"].priority for task in members(world, gang)}) <= 1
        return alike and (text is None or _seconds(text) is not None)

    def pre_filter(self, world, task):
        gang = task["gang"]
        group = world["gangs"][gang]
        if len(_there(world, gang)) + 1 >= group.min_member:
            return None
        if self._late(world, gang):
            return "late"
        valid = members(world, gang, *VALID)
        short = len(valid) < group.min_member or not _roles(world, gang, valid)
        return "short" if short else None

    def permit(self, world, task):
        gang = task["gang"]
        there = _there(world, gang)
        if len(there) >= world["gangs"][gang].min_member and _roles(world, gang, there):
            return "ok"
        if self._late(world, gang):
            return "late"
        limit = _seconds(world["gangs"][gang].annotations.get(TIMEOUT, ""))
        return world["now"] + self.patience if limit is None else world["gangs"][gang].created + limit

    def _late(self, world, gang):
        group = world["gangs"][gang]
        limit = _seconds(group.annotations.get(TIMEOUT, ""))
        return limit is not None and world["now"] >= group.created + limit and count(world, gang, ("pending",)) > 0


def _there(world, gang):
    """Members with a place that nobody has to leave first."""
    return [t for t in members(world, gang, *READY, "pipelined") if t["key"] not in world["backed"]]


def _roles(world, gang, found):
    return all(
        sum(1 for task in found if task["pod"].role == role) >= wanted
        for role, wanted in world["gangs"][gang].min_task_member.items()
    )


def _seconds(text):
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 < value < float("inf") else None
