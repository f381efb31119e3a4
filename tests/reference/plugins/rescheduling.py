"""rescheduling: pods of busy nodes that idle nodes could take."""

from __future__ import annotations

import re

from tests.reference.world import capacity, cards_on, free, free_cards

KEY = "rescheduling/lowNodeUtilization"
UNITS = {"h": 3600, "m": 60, "s": 1}


class Rescheduling:
    """Low node utilisation."""

    def __init__(self, arguments):
        usual = {"cpu": 20, "memory": 20, "pods": 20}, {"cpu": 50, "memory": 50, "pods": 50}
        self.low, self.high = arguments.get("thresholds", usual[0]), arguments.get("targetThresholds", usual[1])
        period = arguments.get("interval", "5m")
        self.period = sum(int(number) * UNITS[unit] for number, unit in re.findall(r"(\d+)([hms])", period))

    def victim_tasks(self, world, candidates):
        last = world["acted"].get(KEY)
        if last is not None and last + self.period > world["now"]:
            return set()
        names = sorted({*self.low, *self.high})
        used = {(node, what): _used(world, node, what) for node in world["nodes"] for what in names}
        limit = {
            (node, what): _there(world, node, what) * (self.high.get(what, 100) / 100)
            for node in world["nodes"]
            for what in names
        }
        idle = [
            node
            for node in world["nodes"]
            if all(used[node, what] < _there(world, node, what) * part / 100 for what, part in self.low.items())
        ]
        room = {what: float(sum(max(0, limit[node, what] - used[node, what]) for node in idle)) for what in names}
        found = set()
        for node in sorted(world["nodes"]):
            here = [t for t in candidates if t["node"] == node and t["pod"].preemptable is not False]
            # The youngest first; who has not begun goes before.
            here.sort(key=lambda t: (t["pod"].priority, -_began(t), t["key"]))
            for task in here if node not in idle else ():
                if all(used[node, what] <= limit[node, what] for what in names):
                    break
                need = {what: task["milli"] if what == "cards" else task["need"][what] for what in names}
                if any(need[what] > room[what] for what in names):
                    continue
                for what in names:
                    used[node, what] -= need[what]
                    room[what] -= need[what]
                found.add(task["key"])
        if found:
            world["acted"][KEY] = world["now"]
        return found


def _began(task):
    return task["pod"].started if task["pod"].started is not None else float("nan")


def _there(world, node, what):
    if what == "cards":
        return 1000 * sum(cards_on(world, node, card) for card in world["resource"])
    return capacity(world["nodes"][node], what)


def _used(world, node, what):
    if what == "cards":
        left = sum(max(0, m) for card in world["resource"] for m in free_cards(world, node, card, future=True))
        return _there(world, node, what) - left
    return _there(world, node, what) - free(world, node, what, future=True)
