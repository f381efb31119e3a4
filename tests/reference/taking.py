"""Actions preempt, gangpreempt and gangreclaim in plain loops: who falls for a preemption is found by trying every set.

Preference (contracts): the highest victim level as low as possible (queue priority, then gang priority), least work
lost, fewest gangs, least freed beyond need, names. The gang actions take in the order of semantics 3.6 until it is
enough, and let those go again that turn out not to be needed.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

from tests.reference import session as frame
from tests.reference.placement import place
from tests.reference.quota import renew
from tests.reference.reclaim import SYSTEM_CLASSES, work_lost
from tests.reference.world import (
    CHARGED,
    READY,
    count,
    in_task_order,
    lasting_name,
    members,
    pipelined,
    put,
    ready,
    schedulable,
    short_of_start,
    undo,
    valid,
)

# --- what both kinds share -------------------------------------------------------------------------------------------


def _starves(world, gang):
    """It waits, and it is admitted or only an amount keeps it out."""
    if not members(world, gang, "pending"):
        return False
    if world["phase"][gang] == "Pending":
        if "enqueue" not in world["actions"] or not schedulable(world, gang) or not valid(world, gang):
            return False
    elif not frame._candidate(world, gang):
        return False
    return world["hooks"].first_tier_all("starving", world, gang)


def _may_take(world, task):
    """preemptionPolicy, and nobody weaker already leaves the node it is nominated to."""
    if task["pod"].preemption_policy == "Never":
        return False
    leaving = [
        other
        for other in world["tasks"].values()
        if other["status"] == "releasing" and other["node"] == (task["pod"].nominated_node or None)
    ]
    return all(other["pod"].priority >= task["pod"].priority for other in leaving if other["node"])


def _kept(world, gang):
    """Why nobody of the gang may be taken, whatever plugins say."""
    held = members(world, gang, *CHARGED)
    return (
        count(world, gang, ("allocated",)) > 0
        or bool(world["gangs"][gang].spared or {gang, lasting_name(world["gangs"][gang])} & world["resting"])
        or world["gangs"][gang].preemptable is False
        or any(t["pod"].namespace == "kube-system" or t["pod"].priority_class in SYSTEM_CLASSES for t in held)
        or all(t["pod"].preemptable is False for t in held)
    )


def _outcome(world, gang, tasks, units, *, keep=None):
    """(the gang could run, tasks with a place) after the units have left; undone unless ``keep`` collects it."""
    changes = []
    for task in sorted((t for unit in units for t in unit["tasks"]), key=lambda t: t["key"]):
        changes.append(put(task, "releasing", task["node"], task["card"], task["indices"]))
    placed = None
    if world["phase"][gang] != "Pending" or world["hooks"].vote("enqueueable", world, gang):
        placed = _place_all(world, tasks, changes)
    found = (False, 0) if placed is None else (_runs(world, gang), len(placed))
    if keep is None:
        undo(changes)
        return found
    keep += changes
    return placed or []


def _place_all(world, tasks, changes):
    placed, failed = [], set()
    for task in tasks:
        if task["class"] not in failed:
            if place(world, task, changes):
                placed.append(task)
            else:
                failed.add(task["class"])
    return placed


def _runs(world, gang):
    return pipelined(world, gang) and not short_of_start(world, gang)


def _would_run(world, gang, tasks):
    changes = []
    _place_all(world, tasks, changes)
    answer = _runs(world, gang)
    undo(changes)
    return answer


def _keep(world, gang, units):
    if world["phase"][gang] == "Pending":
        world["phase"][gang] = "Inqueue"
    if not ready(world, gang):
        frame._hold_back(world, gang)
    renew(world, gang)
    for unit in units:
        world["evictions"] += [(task["key"], gang) for task in unit["tasks"]]
    if units:
        world["reclaims"].append((gang, tuple(sorted({unit["gang"] for unit in units}))))


def _unit(world, gang, tasks, spare, *, level, in_cards):
    return {
        "name": f"{gang} {tasks[0]['key']}" if spare else gang,
        "gang": gang,
        "level": level,
        "work": sum(work_lost(world, task) for task in tasks),
        "size": sum(task["milli"] if in_cards else task["pod"].cpu_milli for task in tasks),
        "tasks": tasks,
        "spare": spare,
    }


def _level(world, gang):
    group = world["gangs"][gang]
    return (world["queues"][group.queue].priority, group.priority)


def _go_together(units):
    by_gang = {}
    for unit in units:
        by_gang.setdefault(unit["gang"], []).append(unit)
    return all(
        len(same) == 1 or (all(unit["spare"] for unit in same) and len(same) <= same[0]["spare"])
        for same in by_gang.values()
    )


def _best_set(world, gang, tasks, units):
    """The best set with which most tasks find a place and the gang can run, or None."""
    best = None
    for number in range(1, len(units) + 1):
        for chosen in combinations(units, number):
            if not _go_together(chosen):
                continue
            runs, placed = _outcome(world, gang, tasks, chosen)
            order = (
                -placed,
                max(unit["level"] for unit in chosen),
                sum(unit["work"] for unit in chosen),
                len({unit["gang"] for unit in chosen}),
                sum(unit["size"] for unit in chosen),
                tuple(sorted(unit["name"] for unit in chosen)),
            )
            if runs and placed and (best is None or order < best[0]):
                best = (order, chosen)
    return None if best is None else list(best[1])


def _spare(world, gang):
    group = world["gangs"][gang]
    return 0 if group.evicted_policy.value else max(0, count(world, gang, READY) - group.min_member)


# --- preempt ---------------------------------------------------------------------------------------------------------


def preempt(world):
    """Between gangs of a queue, then between the tasks of one gang."""
    starving = [gang for gang in sorted(world["gangs"]) if _starves(world, gang)]
    turns = frame._Turns(world, starving)
    while (gang := turns.next()) is not None:
        _between(world, gang)
    turns = frame._Turns(world, [gang for gang in starving if members(world, gang, "pending")])
    while (gang := turns.next()) is not None:
        _inside(world, gang)


def _between(world, gang):
    tasks = [task for task in in_task_order(members(world, gang, "pending")) if _may_take(world, task)]
    if not tasks:
        return
    changes = []
    if world["phase"][gang] != "Pending":
        _place_all(world, tasks, changes)
    elif _would_run(world, gang, tasks):
        return
    rest = [task for task in tasks if task["status"] == "pending"]
    placed_any = len(rest) < len(tasks)
    units = _lower_units(world, gang, rest) if rest else []
    chosen = _best_set(world, gang, rest, units) if units else None
    if chosen is not None:
        _outcome(world, gang, rest, chosen, keep=changes)
    elif not (placed_any and _runs(world, gang)):
        undo(changes)
        return
    _keep(world, gang, chosen or [])


def _lower_units(world, preemptor, tasks):
    """Whole gangs of the queue, and single members that a gang can spare, as far as rules and votes let them go."""
    queue = world["gangs"][preemptor].queue
    idle = all(task["best_effort"] for task in tasks)
    gangs = []
    for gang in sorted(world["gangs"]):
        held = members(world, gang, *CHARGED)
        if gang == preemptor or world["gangs"][gang].queue != queue or not held or _kept(world, gang):
            continue
        if not idle or all(task["best_effort"] for task in held):
            gangs.append(gang)
    gangs.sort(key=lambda gang: (*_level(world, gang), gang))
    pool = [
        task
        for gang in gangs
        for task in sorted(
            members(world, gang, *CHARGED), key=lambda t: (t["pod"].priority, work_lost(world, t), t["key"])
        )
    ]
    allowed = world["hooks"].victims("preemptable", world, tasks[0], pool) if pool else set()
    in_cards, found = any(task["milli"] for task in tasks), []
    for gang in gangs:
        held, level = members(world, gang, *CHARGED), _level(world, gang)
        free = [task for task in held if task["pod"].preemptable is not False and task["key"] in allowed]
        if len(free) == len(held):
            found.append(_unit(world, gang, held, 0, level=level, in_cards=in_cards))
        spare = _spare(world, gang)
        if spare:
            singles = [task for task in free if task["status"] == "running"]
            found += [_unit(world, gang, [task], spare, level=level, in_cards=in_cards) for task in singles]
    return found


def _inside(world, gang):
    group = world["gangs"][gang]
    if group.evicted_policy.fells_gang or world["phase"][gang] == "Pending":
        return
    for task in in_task_order(members(world, gang, "pending")):
        if not _may_take(world, task) or task["best_effort"]:
            continue
        held = [t for t in members(world, gang, "bound", "running") if t["pod"].preemptable is not False]
        lower = [t for t in held if t["pod"].priority < task["pod"].priority]
        spare = count(world, gang, READY) - group.min_member
        if not lower or spare <= 0 or _kept(world, gang):
            continue
        lower.sort(key=lambda t: (t["pod"].priority, work_lost(world, t), t["key"]))
        allowed = world["hooks"].victims("preemptable", world, task, lower)
        units = [
            _unit(world, gang, [t], spare, level=(0, t["pod"].priority), in_cards=bool(task["milli"]))
            for t in lower
            if t["key"] in allowed
        ]
        chosen = _best_set(world, gang, [task], units)
        if chosen is not None:
            _outcome(world, gang, [task], chosen, keep=[])
            _keep(world, gang, chosen)


# --- gangpreempt and gangreclaim -------------------------------------------------------------------------------------


def gangpreempt(world):
    """Whole demands from lower gangs of the queue."""
    turns = frame._Turns(world, [gang for gang in sorted(world["gangs"]) if _starves(world, gang)])
    while (gang := turns.next()) is not None:
        _raid(world, gang, across=False)


def gangreclaim(world):
    """Whole demands from other queues."""
    hooks = world["hooks"]
    starving = [g for g in sorted(world["gangs"]) if hooks.all("reclaimer", world, g) and _starves(world, g)]
    turns = frame._Turns(world, starving)
    while (gang := turns.next()) is not None:
        queue = world["gangs"][gang].queue
        if hooks.any("overused", world, queue):
            turns.drop(queue)
        else:
            _raid(world, gang, across=True)


def _raid(world, gang, *, across):
    tasks = _demand(world, gang, across=across)
    if not tasks:
        return
    at_once = _outcome(world, gang, tasks, [])
    if world["phase"][gang] == "Pending" and _would_run(world, gang, tasks):
        return
    parts = _parts(world, gang, tasks, across=across) if at_once[1] < len(tasks) else []
    chosen = _fewest(world, gang, tasks, parts, at_once) if parts else []
    changes = []
    if not _outcome(world, gang, tasks, chosen, keep=changes) or not _runs(world, gang):
        undo(changes)
        return
    _keep(world, gang, chosen)


def _fewest(world, gang, tasks, parts, at_once):
    """Ever more parts until all tasks have a place, then as few of them as bring the same.

    Where a task wants company more is not always better, so the order of trying is part of the rule.
    """

    def brings(some):
        return _outcome(world, gang, tasks, _together(some))

    low, high = 0, 1
    while brings(parts[:high]) < (True, len(tasks)) and high < len(parts):
        low, high = high, min(2 * high, len(parts))
    goal = brings(parts[:high])
    if goal < (True, len(tasks)):
        low = 0
    if goal <= at_once:
        return []
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if brings(parts[:middle]) >= goal else (middle + 1, high)
    chosen = parts[:low]
    for part in reversed(parts[:low]):
        fewer = [other for other in chosen if other is not part]
        if brings(fewer) >= goal:
            chosen = fewer
    return _together(chosen)


def _demand(world, gang, *, across):
    by_class = {}
    for task in in_task_order(members(world, gang, "pending")):
        if _may_take(world, task) and not task["best_effort"]:
            by_class.setdefault(task["class"], []).append(task)
    if not across:
        return [task for alike in by_class.values() for task in alike]
    room = frame._quota_room
    return [task for alike in by_class.values() for task in alike[: room(world, alike[0], len(alike))[0]]]


def _together(parts):
    """A gang that falls whole does not also lose single members."""
    whole = {part["gang"] for part in parts if not part["spare"]}
    return [part for part in parts if not part["spare"] or part["gang"] not in whole]


def _parts(world, taker, tasks, *, across):
    """What each gang can spare, then whole gangs, in the order of taking."""
    own = world["gangs"][taker]
    gangs = []
    for gang in sorted(world["gangs"]):
        group = world["gangs"][gang]
        queue = world["queues"].get(group.queue)
        if gang == taker or queue is None or not members(world, gang, *CHARGED) or _kept(world, gang):
            continue
        if across and group.queue != own.queue and queue.reclaimable:
            gangs.append(gang)
        if not across and group.queue == own.queue and group.priority < own.priority:
            gangs.append(gang)
    pool = [task for gang in gangs for task in members(world, gang, *CHARGED)]
    allowed = world["hooks"].victims("unified_evictable", world, tasks[0], pool) if pool else set()
    found = []
    for gang in gangs:
        held, level = members(world, gang, *CHARGED), _level(world, gang)
        singles = [task for task in _spared(world, gang) if task["key"] in allowed]
        if singles:
            parts = [_unit(world, gang, [task], len(singles), level=level, in_cards=True) for task in singles]
            found.append((False, gang, _worth(world, tasks, singles, singles), parts))
        arguments = world["action_arguments"].get("gangreclaim" if across else "gangpreempt", {})
        whole = arguments.get("allowWholeBundle", True)
        if whole and all(task["key"] in allowed and task["pod"].preemptable is not False for task in held):
            rest = [task for task in held if task not in singles]
            if rest:
                parts = [_unit(world, gang, held, 0, level=level, in_cards=True)]
                found.append((True, gang, _worth(world, tasks, rest, held), parts))
    found.sort(key=lambda entry: (-entry[2], entry[1]))
    found.sort(key=lambda entry: world["hooks"].key("gang_order", world, entry[1]), reverse=True)
    if across:
        found.sort(
            key=lambda entry: frame._queue_order(world, world["gangs"][entry[1]].queue),
            reverse=True,
        )
    found.sort(key=lambda entry: entry[0])
    return [part for entry in found for part in entry[3]]


def _spared(world, gang):
    group = world["gangs"][gang]
    there = count(world, gang, READY)
    if group.evicted_policy.value or (world["falls_whole"] and there < group.min_member):
        return []
    held = members(world, gang, *CHARGED)
    free = sorted(
        (task for task in held if task["pod"].preemptable is not False),
        key=lambda t: (t["pod"].priority, work_lost(world, t), t["key"]),
    )
    if there < group.min_member:
        return free
    spared = []
    for task in free:
        of_role = sum(1 for t in held if t["pod"].role == task["pod"].role and t not in spared)
        if len(spared) < there - group.min_member and of_role > group.min_task_member.get(task["pod"].role, 0):
            spared.append(task)
    return spared


def _worth(world, tasks, local, entire):
    """What of the demand is freed where it can be used, over what the gang holds of the same in all."""
    need = {}
    for task in tasks:
        for what, amount in (
            ("cpu", task["pod"].cpu_milli),
            ("memory", task["pod"].memory_mib),
            (tuple(task["choices"]), task["milli"]),
        ):
            if amount:
                need[what] = need.get(what, 0) + amount
    useful = {name for name in world["nodes"] if any(_curable(world, task, name) for task in tasks)}

    def held(of, what):
        if what in ("cpu", "memory"):
            return sum(t["need"][what] for t in of)
        return sum(t["milli"] for t in of if t["card"] in what)

    here = [task for task in local if task["node"] in useful]
    gain = sum((Fraction(min(held(here, what), n), n) for what, n in need.items()), Fraction(0))
    cost = sum((Fraction(held(entire, what), n) for what, n in need.items()), Fraction(0))
    return gain / cost if cost else Fraction(0)


def _curable(world, task, name):
    """No filter rules the node out for a reason that no eviction changes."""
    return world["hooks"].all("filter", world, task, name)


TAKING = {"preempt": preempt, "gangpreempt": gangpreempt, "gangreclaim": gangreclaim}
