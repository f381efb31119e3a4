"""drf: the smaller dominant share first; without the tree."""

from __future__ import annotations

from fractions import Fraction

from tests.reference.world import CHARGED, members


class Drf:
    """Gangs by the largest part that they hold of anything."""

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


def _share(world, tasks):
    """Each card type is a resource of its own."""
    held, there = {}, {}
    for task in tasks:
        card = task["card"] or next(iter(task["choices"]), None)
        parts = {"cpu": task["charge_cpu"], "memory": task["charge_memory"], **({card: task["milli"]} if card else {})}
        for name, count in [*parts.items(), *((n, 1000 * c) for n, c in task["pod"].scalars.items())]:
            held[name] = held.get(name, 0) + count
    for node in world["nodes"].values():
        parts = {"cpu": node.cpu_milli, "memory": node.memory_mib, **{c.card: 1000 * c.count for c in node.cards}}
        for name, count in [*parts.items(), *((n, 1000 * c) for n, c in node.scalars.items())]:
            there[name] = there.get(name, 0) + count
    shares = [Fraction(held[n], there[n]) if there[n] else Fraction(1) for n in held if held[n] > 0 and n in there]
    return max(shares, default=Fraction(0))
