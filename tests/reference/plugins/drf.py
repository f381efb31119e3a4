"""drf: the smaller dominant share first, among gangs and over a tree of queues."""

from __future__ import annotations

import math
from fractions import Fraction

from tests.reference.world import CHARGED, members


class Drf:
    """Gangs by the largest part that they hold of anything; queues level by level with ``enableHierarchy``."""

    guards = ("reclaimable",)

    def __init__(self, arguments):
        pass

    def gang_order(self, world, gang):
        return (float(_share(world, members(world, gang, *CHARGED, "pipelined"))),)

    def preemptable(self, world, task, candidates):
        mine = _share(world, [*members(world, task["gang"], *CHARGED, "pipelined"), task])
        gone, allowed = {}, set()
        for other in candidates:
            gang = other["gang"]
            if gang == task["gang"]:
                allowed.add(other["key"])
                continue
            gone.setdefault(gang, []).append(other["key"])
            rest = [t for t in members(world, gang, *CHARGED, "pipelined") if t["key"] not in gone[gang]]
            theirs = _share(world, rest)
            if mine < theirs or abs(mine - theirs) <= Fraction(1, 10**6):
                allowed.add(other["key"])
        return allowed

    # --- the tree ----------------------------------------------------------------------------------------------------

    def well_written(self, world, gang):
        return not self.switches.get("hierarchy") or _path(world, world["gangs"][gang].queue) is not None

    def queue_order(self, world, name):
        return (_place(world, _all(world), name),) if self.switches.get("hierarchy") else ()

    def reclaimable(self, world, task, candidates):
        if not self.switches.get("hierarchy"):
            return None
        # Who would hold what, if the move happened.
        holding = _all(world)
        holding[task["gang"]] = [*holding[task["gang"]], task]
        allowed = set()
        for other in candidates:
            before = holding[other["gang"]]
            holding[other["gang"]] = [t for t in before if t is not other]
            mine, theirs = _place(world, holding, task["queue"]), _place(world, holding, other["queue"])
            # On the levels that both have; a tie moves nobody.
            if mine[: len(theirs)] < theirs[: len(mine)]:
                allowed.add(other["key"])
            else:
                holding[other["gang"]] = before
        return allowed


def _all(world):
    return {gang: members(world, gang, *CHARGED, "pipelined") for gang in world["gangs"]}


def _path(world, name):
    """(name, weight) of the places from below the root to the queue; None where it cannot be read."""
    queue = world["queues"][name]
    text, weights = (queue.annotations.get(f"volcano.sh/hierarchy{part}") for part in ("", "-weights"))
    if text is None and weights is None:
        return [(name, float(queue.weight))]
    names, numbers = [part.strip() for part in (text or "").split("/")], []
    for part in (weights or "").split("/"):
        try:
            numbers.append(float(part))
        except ValueError:
            return None
    if names[0] != "root" or not all(names) or len(names) != len(numbers):
        return None
    if not all(0 < number < math.inf for number in numbers):
        return None
    return list(zip(names[1:], numbers[1:], strict=True))


def _place(world, holding, name):
    """Level by level: who can be served before who cannot, then share by weight."""
    ways = {q: _path(world, q) or [(q, float(world["queues"][q].weight))] for q in world["queues"]}
    there = _there(world)
    used = _sums(world, [t for gang, tasks in holding.items() if world["gangs"][gang].queue in ways for t in tasks])
    full = {what for what in there if used.get(what, 0) >= there[what]}
    weight = {}
    for q in sorted(ways):
        for depth in range(1, len(ways[q]) + 1):
            spot = tuple(part for part, _ in ways[q][:depth])
            weight.setdefault(spot, ways[q][depth - 1][1])
    own = [tuple(part for part, _ in ways[name][:depth]) for depth in range(len(ways[name]) + 1)]
    found = []
    for spot in own:
        _, share, saturated = _worth(world, holding, ways, there, full, spot)
        found.append((saturated, round(share / weight.get(spot, 1.0), 9)))
    return tuple(found)


def _worth(world, holding, ways, there, full, spot):
    """(amounts, share, saturated) of a place in the tree: its children scaled down to the poorest that is hungry."""
    parts = []
    for gang, tasks in holding.items():
        queue = world["gangs"][gang].queue
        if queue in ways and tuple(part for part, _ in ways[queue]) == spot:
            held = _sums(world, tasks)
            wanted = _sums(world, [*members(world, gang, *CHARGED, "pipelined"), *members(world, gang, "pending")])
            done = any(wanted.get(w, 0) > 0 and (0 < held.get(w, 0) >= wanted[w] or w in full) for w in there)
            parts.append((held, _part(held, there), done))
    below = {
        tuple(part for part, _ in way[: len(spot) + 1])
        for way in ways.values()
        if len(way) > len(spot) and tuple(part for part, _ in way[: len(spot)]) == spot
    }
    parts += [_worth(world, holding, ways, there, full, child) for child in sorted(below)]
    least = min((share for _, share, saturated in parts if share > 0 and not saturated), default=1.0)
    amounts = {}
    for what in there:
        column = [
            held.get(what, 0) * (1 if saturated else least / share) for held, share, saturated in parts if share > 0
        ]
        amounts[what] = math.fsum(column)
    return amounts, _part(amounts, there), all(saturated for _, _, saturated in parts)


def _part(held, there):
    found = [(held.get(w, 0) / there[w] if there[w] else 1.0) for w in there if held.get(w, 0) > 0]
    return round(max(found, default=0.0), 9)


def _sums(world, tasks):
    """What tasks count; each card type is a resource of its own."""
    held = {}
    for task in tasks:
        card = task["card"] or next(iter(task["choices"]), None)
        parts = {"cpu": task["charge_cpu"], "memory": task["charge_memory"], **({card: task["milli"]} if card else {})}
        for name, count in [*parts.items(), *((n, 1000 * c) for n, c in task["pod"].scalars.items())]:
            held[name] = held.get(name, 0) + count
    return held


def _there(world):
    """What all nodes have."""
    there = dict.fromkeys(("cpu", "memory", *world["resource"]), 0)
    for node in world["nodes"].values():
        parts = {"cpu": node.cpu_milli, "memory": node.memory_mib, **{c.card: 1000 * c.count for c in node.cards}}
        for name, count in [*parts.items(), *((n, 1000 * c) for n, c in node.scalars.items())]:
            there[name] = there.get(name, 0) + count
    return there


def _share(world, tasks):
    held, there = _sums(world, tasks), _there(world)
    shares = [Fraction(held[n], there[n]) if there[n] else Fraction(1) for n in held if held[n] > 0 and n in there]
    return max(shares, default=Fraction(0))
