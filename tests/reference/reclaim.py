"""Who may be taken, and the best set of them: every set is tried.

Preference (contracts): the highest victim level as low as possible (queue priority, then gang priority), least work
lost, fewest gangs, least freed beyond need, names.
"""

from __future__ import annotations

from itertools import combinations

from tests.reference.world import CHARGED, READY, cards_on, count, free, free_cards, lasting_name, members

SYSTEM_CLASSES = ("system-cluster-critical", "system-node-critical")


def units_near(world, reclaimer, task, nodes):
    """Whole gangs, and single members beyond minMember where losing one harms nobody else, that may be taken."""
    found, holding = [], {}
    for gang in sorted(world["gangs"]):
        held = [t for t in members(world, gang, *CHARGED) if t["status"] != "allocated"]
        if not any(t["status"] == "running" and t["node"] in nodes for t in held):
            continue
        if not protected(world, reclaimer, gang, held):
            holding[gang] = held
    asks = members(world, reclaimer, "pending")[0]
    # Those who would be taken first come first: some plugins let only so many go.
    order = sorted(holding, key=lambda gang: _cheapest_first(_unit(world, gang, task, holding[gang], spare=0)))
    allowed = world["hooks"].victims("reclaimable", world, asks, [t for gang in order for t in holding[gang]])
    for gang, held in holding.items():
        free_to_go = [t for t in held if t["pod"].preemptable is not False and t["key"] in allowed]
        if len(free_to_go) == len(held):
            found.append(_unit(world, gang, task, held, spare=0))
        group = world["gangs"][gang]
        spare = max(0, count(world, gang, READY) - group.min_member) if not group.evicted_policy.value else 0
        if spare:
            found += [_unit(world, gang, task, [t], spare=spare) for t in free_to_go if t["status"] == "running"]
    return found


def _cheapest_first(unit):
    return (unit["level"], unit["work"], unit["gang"])


def protected(world, reclaimer, gang, held):
    """The rules that keep a gang, whatever the policy's switches say."""
    group, queue = world["gangs"][gang], world["queues"].get(world["gangs"][gang].queue)
    if queue is None or not queue.reclaimable or group.queue == world["gangs"][reclaimer].queue:
        return True
    if group.preemptable is False or count(world, gang, ("allocated",)):
        return True
    if group.spared or {gang, lasting_name(group)} & world["resting"]:
        return True
    return any(t["pod"].namespace == "kube-system" or t["pod"].priority_class in SYSTEM_CLASSES for t in held)


def _unit(world, gang, task, tasks, *, spare):
    group = world["gangs"][gang]
    return {
        "name": f"{gang} {tasks[0]['key']}" if spare else gang,
        "gang": gang,
        "level": (world["queues"][group.queue].priority, group.priority),
        "work": sum(work_lost(world, t) for t in tasks),
        "size": sum(t["milli"] if task["milli"] else t["pod"].cpu_milli for t in tasks),
        "tasks": tasks,
        "spare": spare,
    }


def work_lost(world, task):
    """Milli-cards times milliseconds since the pod began."""
    began = task["pod"].created if task["pod"].started is None else task["pod"].started
    return max(0, round((world["now"] - began) * 1000)) * task["milli"]


def choose_victims(world, task, units, nodes, quota, size):
    """The best set of units after whose leaving ``size`` equal tasks fit, or None."""
    best = None
    for number in range(1, len(units) + 1):
        for chosen in combinations(units, number):
            if not _compatible(chosen):
                continue
            order = (
                max(unit["level"] for unit in chosen),
                sum(unit["work"] for unit in chosen),
                len({unit["gang"] for unit in chosen}),
                sum(unit["size"] for unit in chosen),
                tuple(sorted(unit["name"] for unit in chosen)),
            )
            if (best is None or order < best[0]) and _room(world, task, chosen, nodes, quota) >= size:
                best = (order, chosen)
    return None if best is None else list(best[1])


def _compatible(chosen):
    by_gang = {}
    for unit in chosen:
        by_gang.setdefault(unit["gang"], []).append(unit)
    return all(
        len(same) == 1 or (all(unit["spare"] for unit in same) and len(same) <= same[0]["spare"])
        for same in by_gang.values()
    )


def breaks_a_gang(world, units):
    """Some gang would lose part of itself, and more than the members that it can spare one by one."""
    for name in {unit["gang"] for unit in units}:
        parts = [unit for unit in units if unit["gang"] == name]
        going = sum(len(unit["tasks"]) for unit in parts)
        spare = count(world, name, READY) - world["gangs"][name].min_member
        if going < count(world, name, CHARGED) and (going > spare or not all(unit["spare"] for unit in parts)):
            return True
    return False


def _room(world, task, chosen, nodes, quota):
    """How many tasks fit on the nodes that the chosen units leave, within the quota of each card type."""
    leaving = [t for unit in chosen for t in unit["tasks"]]
    sums = dict.fromkeys(task["choices"] or [None], 0)
    for name in nodes:
        here = [t for t in leaving if t["node"] == name]
        if not here:
            continue
        left = min(
            (free(world, name, what, future=True) + sum(t["need"].get(what, 0) for t in here)) // amount
            for what, amount in task["need"].items()
            if amount
        )
        left = max(0, left)
        for card in sums:
            if card is None:
                sums[card] += min(left, quota[card])
                continue
            room = free_cards(world, name, card, future=True) if cards_on(world, name, card) else []
            for t in here:
                if t["card"] == card:
                    for index in t["indices"]:
                        room[index] += t["share"] or 1000
            if task["share"]:
                fitting = sum(max(0, milli) // task["share"] for milli in room)
            else:
                fitting = sum(1 for milli in room if milli >= 1000) // task["whole"]
            fitting = min(fitting, left, quota[card])
            left -= fitting
            sums[card] += fitting
    return sum(min(fitting, quota[card]) for card, fitting in sums.items())
