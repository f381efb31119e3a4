"""gang: all or nothing."""

from __future__ import annotations

from tests.reference.world import READY, VALID, count, members


class Gang:
    """minMember, in all and by role."""

    keeps_minimum = True

    def __init__(self, arguments):
        pass

    def valid(self, world, gang):
        return count(world, gang, VALID) >= world["gangs"][gang].min_member and _roles_enough(world, gang, VALID)

    def gang_order(self, world, gang):
        return (self.ready(world, gang),)

    def ready(self, world, gang):
        """minMember is reached, also by role; waiting members that ask for nothing count."""
        return _enough(world, gang, READY) and _roles_enough(world, gang, READY)

    def pipelined(self, world, gang):
        """minMember would be reached once what leaves has left."""
        statuses = (*READY, "pipelined")
        return 1 if _enough(world, gang, statuses) and _roles_enough(world, gang, statuses) else -1

    def starving(self, world, gang):
        return bool(members(world, gang, "pending"))

    def reclaimable(self, world, task, candidates):
        return None if world["falls_whole"] else _surplus(world, candidates)

    preemptable = reclaimable


def _surplus(world, candidates):
    """Members above minMember, in the order given."""
    left, allowed = {}, set()
    for task in candidates:
        gang = task["gang"]
        ready = left.get(gang, count(world, gang, READY))
        if ready > world["gangs"][gang].min_member:
            left[gang] = ready - 1
            allowed.add(task["key"])
    return allowed


def _enough(world, gang, statuses):
    idle = sum(1 for task in members(world, gang, "pending") if task["best_effort"])
    return count(world, gang, statuses) + idle >= world["gangs"][gang].min_member


def _roles_enough(world, gang, statuses):
    group = world["gangs"][gang]
    roles = group.min_task_member
    if group.min_member < sum(roles.values()):
        return True
    for role, wanted in roles.items():
        have = sum(
            1
            for task in members(world, gang)
            if task["pod"].role == role
            and (task["status"] in statuses or (task["status"] == "pending" and task["best_effort"]))
        )
        if have < wanted:
            return False
    return True
