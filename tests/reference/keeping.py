"""Actions elect, reserve and shuffle in plain loops."""

from __future__ import annotations

from tests.reference.budgets import spared
from tests.reference.quota import renew
from tests.reference.reclaim import SYSTEM_CLASSES
from tests.reference.world import CHARGED, READY, count, lasting_name, members, missing, put, schedulable, valid

# --- elect and reserve -----------------------------------------------------------------------------------------------


def elect(world):
    """Who stands elected, or the next one; it is let in where only the cluster's room kept it out."""
    gang = _elected(world)
    if gang is not None and world["phase"][gang] == "Pending" and world["refused_by"].get(gang) == "room":
        world["phase"][gang] = "Inqueue"
        del world["refused_by"][gang]
        renew(world, gang)


def reserve(world):
    """Lock nodes for whoever stands elected."""
    gang = _elected(world) if "elect" in world["actions"] else _standing(world)
    if gang is None or world["election"] is None:
        return
    found = set()
    for call in world["hooks"].flat("keep"):
        named = call(world, gang, world["election"][1])
        if named is None:
            world["election"] = None
            return
        found |= set(named)
    world["election"] = (gang, tuple(sorted(found)))


def _starves(world, gang):
    if not missing(world, gang) or not schedulable(world, gang):
        return False
    if members(world, gang, "pending") and valid(world, gang):
        return True
    return world["gangs"][gang].waits_for_admission and world["phase"][gang] == "Pending"


def _standing(world):
    if world["election"] is not None:
        gang = world["election"][0]
        if gang in world["gangs"] and _starves(world, gang):
            return gang
        world["election"] = None
    return None


def _elected(world):
    gang = _standing(world)
    if gang is None:
        waiting = [name for name in sorted(world["gangs"]) if _starves(world, name)]
        gang = world["hooks"].first("target", world, waiting) if waiting else None
        if gang is not None:
            world["election"] = (gang, ())
    return gang


# --- shuffle ---------------------------------------------------------------------------------------------------------


def shuffle(world):
    """Evict whom plugins send away, gangs whole where they fall whole."""
    running = [t for _, t in sorted(world["tasks"].items()) if t["status"] == "running" and t["gang"] is not None]
    named = world["hooks"].named("victim_tasks", world, running)
    for gang in sorted({world["tasks"][key]["gang"] for key in named}):
        wanted = [world["tasks"][key] for key in sorted(named) if world["tasks"][key]["gang"] == gang]
        leaving = [] if _kept(world, gang) else _who_falls(world, gang, wanted)
        stays = spared(world, leaving)
        if stays:
            # Members that nobody named only fall with the whole gang.
            alone = all(task["key"] in named for task in leaving)
            leaving = [task for task in leaving if task["key"] not in stays] if alone else []
        for task in leaving:
            put(task, "releasing", task["node"], task["card"], task["indices"])
            world["evictions"].append((task["key"], ""))
        if leaving:
            world["reclaims"].append(("", (gang,)))


def _kept(world, gang):
    group, held = world["gangs"][gang], members(world, gang, *CHARGED)
    return (
        count(world, gang, ("allocated",)) > 0
        or bool(group.spared or {gang, lasting_name(group)} & world["resting"])
        or group.preemptable is False
        or any(t["pod"].namespace == "kube-system" or t["pod"].priority_class in SYSTEM_CLASSES for t in held)
        or all(t["pod"].preemptable is False for t in held)
    )


def _who_falls(world, gang, wanted):
    group, held = world["gangs"][gang], members(world, gang, *CHARGED)
    free = [task for task in wanted if task["pod"].preemptable is not False]
    ends = group.evicted_policy.value in ("AbortJob", "RestartJob", "TerminateJob")
    if not world["falls_whole"] and not ends:
        return free
    spare = max(0, count(world, gang, READY) - group.min_member) if not group.evicted_policy.value else 0
    if len(free) <= spare and all(task["status"] == "running" for task in free):
        return free
    return held if all(task["pod"].preemptable is not False for task in held) else []
