"""The queue of pods of the per-pod cycle: who is due in a session, and who is put aside how."""

from __future__ import annotations

from tests.reference.world import HOLDING

WAITS = {"podInitialBackoffSeconds": 1.0, "podMaxBackoffSeconds": 10.0, "podMaxInUnschedulableSeconds": 300.0}


class QueuedPods:
    """Pods that were tried before, by name: [where, attempts, when, node that is being cleared for it]."""

    def __init__(self, world, waiting):
        self.now, self.aside = world["now"], {}
        given = {**WAITS, **world["action_arguments"].get("allocate", {})}
        self.first, self.most, self.leftover = (float(given[name]) for name in WAITS)
        entries = {entry.pod: entry for entry in world["memory"].queue} if world["memory"] else {}
        looks, room = world["before"] or ({}, None)
        now_looks, now_room = seen(world)
        for task in waiting:
            entry = entries.get(task["key"])
            if entry is None:
                self.aside[task["key"]] = ["active", 0, 0.0, ""]
                continue
            where, since = entry.where.value, self.now - entry.tried
            rested = since >= self._wait(entry.attempts)
            changed = looks.get(task["key"]) != now_looks[task["key"]] or room != now_room
            if where == "unschedulable" and (changed or since >= self.leftover):
                where = "active" if rested or since >= self.leftover else "backoff"
            if where == "backoff" and rested:
                where = "active"
            self.aside[task["key"]] = [where, entry.attempts, entry.tried, entry.nominated]

    def _wait(self, attempts):
        return min(self.most, self.first * 2.0 ** (attempts - 1)) if attempts else 0.0

    def due(self, task):
        return self.aside[task["key"]][0] == "active"

    def take(self, task):
        self.attempts, self.node = self.aside.pop(task["key"])[1::2]

    def put_aside(self, task, node):
        """It found no place; where somebody leaves for it (on ``node``), others may find one too."""
        self.aside[task["key"]] = ["unschedulable", self.attempts + 1, self.now, node or self.node]
        if node is not None:
            for entry in self.aside.values():
                if entry[0] == "unschedulable":
                    entry[0] = "active" if self.now - entry[2] >= self._wait(entry[1]) else "backoff"

    def entries(self):
        return {pod: tuple(entry) for pod, entry in sorted(self.aside.items())}


def seen(world):
    """(pods as far as they decide where they may be, what there is and who holds how much of it)."""
    looks = {
        task["key"]: tuple(
            getattr(task["pod"], name)
            for name in (
                "priority", "cpu_milli", "memory_mib", "scalars", "card", "labels", "annotations", "node_selector",
                "required_nodes", "preferred_nodes", "tolerations", "host_ports", "relations",
            )
        )
        for task in world["tasks"].values()
    }  # fmt: skip
    there = [
        (node.name, node.cpu_milli, node.memory_mib, node.pods, node.cards, sorted(node.scalars.items()))
        for _, node in sorted(world["nodes"].items())
    ]
    held = {}
    for task in world["tasks"].values():
        if task["status"] in HOLDING and task["node"]:
            for what, amount in task["need"].items():
                for kind in ("used", "releasing") if task["status"] == "releasing" else ("used",):
                    spot = (task["node"], kind, what)
                    held[spot] = held.get(spot, 0) + amount
            for index in task["indices"]:
                spot = (task["node"], task["card"], index)
                held[spot] = held.get(spot, 0) + (task["share"] or 1000)
    quota = [(q.name, q.cpu_milli, q.memory_mib, q.card_quota) for _, q in sorted(world["queues"].items())]
    return looks, (there, {spot: amount for spot, amount in held.items() if amount}, quota)
