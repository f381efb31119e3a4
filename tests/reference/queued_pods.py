"""The queue of pods of the per-pod cycle: who is due in a session, and who is put aside how."""

from __future__ import annotations

from tests.reference.world import HOLDING, members

WAITS = {"podInitialBackoffSeconds": 1.0, "podMaxBackoffSeconds": 10.0, "podMaxInUnschedulableSeconds": 300.0}


class QueuedPods:
    """Pods that were tried before, by name: [where, attempts, when, node that is being cleared for it]."""

    def __init__(self, world, waiting):
        self.now, self.aside = world["now"], {}
        given = {**WAITS, **world["action_arguments"].get("allocate", {})}
        self.first, self.most, self.leftover = (float(given[name]) for name in WAITS)
        entries = {entry.pod: entry for entry in world["memory"].queue} if world["memory"] else {}
        looks, before = world["before"] or ({}, {})
        now_looks, now = seen(world)
        happened = {event for event, there in now.items() if before.get(event) != there}
        happened |= {"pod"} if world["lost"] else set()
        self.moved = False
        for task in waiting:
            entry = entries.get(task["key"])
            if entry is None and task["key"] in world["lost"]:
                self.aside[task["key"]] = ["backoff", max(1, world["lost"][task["key"]]), self.now, ""]
                continue
            if entry is None:
                self.aside[task["key"]] = ["active", 0, 0.0, ""]
                continue
            where, since = entry.where.value, self.now - entry.tried
            rested = since >= self._wait(entry.attempts)
            changed = looks.get(task["key"]) != now_looks[task["key"]] or happened & waits_for(task["pod"])
            if where == "unschedulable" and (changed or since >= self.leftover):
                where = "active" if rested or since >= self.leftover else "backoff"
            if where == "backoff" and rested:
                where = "active"
            self.aside[task["key"]] = [where, entry.attempts, entry.tried, entry.nominated]
        for task in waiting:
            if task["gang"] in world["too_late"]:
                self.rest(task)

    def _wait(self, attempts):
        return min(self.most, self.first * 2.0 ** (attempts - 1)) if attempts else 0.0

    def due(self, task):
        return self.aside[task["key"]][0] == "active"

    def take(self, task):
        self.attempts, self.node = self.aside.pop(task["key"])[1::2]
        self.moved = False

    def lose(self, task, attempts):
        """It gives up a place that it kept: others may have it, and it comes back later."""
        self.aside.setdefault(task["key"], ["backoff", max(1, attempts), self.now, ""])
        self.moved = True
        self._wake()

    def rest(self, task):
        """Its group ran out of time."""
        entry = self.aside.get(task["key"])
        if entry is not None and (entry[0] != "backoff" or entry[2] < self.now):
            self.aside[task["key"]] = ["backoff", entry[1] + 1, self.now, entry[3]]

    def put_aside(self, task, node):
        """It found no place; where somebody leaves for it (on ``node``), others may find one too."""
        where = "backoff" if self.moved else "unschedulable"
        self.aside[task["key"]] = [where, self.attempts + 1, self.now, node or self.node]
        if node is not None:
            self._wake()

    def _wake(self):
        for entry in self.aside.values():
            if entry[0] == "unschedulable":
                entry[0] = "active" if self.now - entry[2] >= self._wait(entry[1]) else "backoff"

    def entries(self):
        return {pod: tuple(entry) for pod, entry in sorted(self.aside.items())}


def waits_for(pod):
    """What can help a pod; what it does not ask for keeps it from nothing."""
    found = {"node", "taint", "pod", "queue", "policy"}
    found |= {"label"} if pod.node_selector or pod.required_nodes or pod.relations or pod.claims else set()
    return found | ({"company"} if pod.relations else set()) | ({"volume"} if pod.claims else set())


def seen(world):
    """(pods as far as they and their gangs decide where they may be, what there is of each kind)."""
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
    for key, task in world["tasks"].items():
        group = world["gangs"].get(task["gang"])
        if group is not None:
            mates = sorted(other["key"] for other in members(world, task["gang"]))
            looks[key] += (group.queue, group.min_member, group.min_task_member, group.annotations, tuple(mates))
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
    nodes = [node for _, node in sorted(world["nodes"].items())]
    snapshot = world["snapshot"]
    return looks, {
        "node": there,
        "label": [(node.name, node.labels) for node in nodes],
        "taint": [(node.name, node.taints, node.unschedulable) for node in nodes],
        "pod": (
            {spot: amount for spot, amount in held.items() if amount},
            [(pod.key, pod.relations) for pod in snapshot.pods if pod.node and pod.relations],
        ),
        "company": (
            [(pod.key, pod.node, pod.labels) for pod in snapshot.pods if pod.node and pod.labels],
            snapshot.namespaces,
        ),
        "volume": (snapshot.claims, snapshot.volumes, snapshot.storage_classes),
        "queue": [queue for _, queue in sorted(world["queues"].items())],
        "policy": world["policy"],
    }
