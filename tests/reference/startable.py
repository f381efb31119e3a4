"""Which gangs could start now: each minimum on the first nodes by name, one pod after the other, on room of its own."""

from __future__ import annotations

import math

from tests.reference.placement import admitted
from tests.reference.world import (
    CHARGED,
    capacity,
    free,
    free_cards,
    in_task_order,
    members,
    missing,
)


class DryRun:
    """Free room of every node and card, and what training holds beside it, written down once and then used up."""

    def __init__(self, world):
        self.world = world
        self.free, self.held = {}, {}
        for name, node in world["nodes"].items():
            for what in ("cpu", "memory", "pods", *node.scalars):
                self.free[name, what] = free(world, name, what, future=True)
            for card in world["resource"]:
                for index, left in enumerate(free_cards(world, name, card, future=True)):
                    self.free[name, card, index] = left
        for task in world["tasks"].values():
            if task["node"] is None or task["status"] not in CHARGED or not _lets_go(world, task["queue"]):
                continue
            for what in ("cpu", "memory", "pods", *world["nodes"][task["node"]].scalars):
                self._hold((task["node"], what), task["need"].get(what, 0))
            for index in task["indices"]:
                self._hold((task["node"], task["card"], index), task["share"] or 1000)

    def _hold(self, where, amount):
        self.held[where] = self.held.get(where, 0) + amount

    def could(self, gang):
        """True when the gang's minimum has room."""
        pods = _pods(self.world, gang)
        if pods is None:
            return False
        if self._placed(pods, dict(self.free)) is not None:
            return True
        return self._takes_back(gang) and self._placed(pods, self._both()) is not None

    def take(self, gang):
        """The same, and the room is used up."""
        if not self.could(gang):
            return False
        pods = _pods(self.world, gang)
        after = self._placed(pods, dict(self.free))
        if after is not None:
            self.free = after
            return True
        both = self._placed(pods, self._both())
        self.free = {where: min(left, both[where]) for where, left in self.free.items()}
        self.held = {where: both[where] - self.free[where] for where in self.free}
        return True

    def _takes_back(self, gang):
        return "reclaim" in self.world["actions"] and self.world["hooks"].all("reclaimer", self.world, gang)

    def _both(self):
        return {where: left + self.held.get(where, 0) for where, left in self.free.items()}

    def _placed(self, pods, room):
        return room if all(self._place(pod, room) for pod in pods) else None

    def _place(self, pod, room):
        for name in sorted(self.world["nodes"]):
            if pod["task"] is not None and not admitted(self.world, pod["task"], name):
                continue
            node = self.world["nodes"][name]
            if any(room.get((name, what), capacity(node, what)) < much for what, much in pod["need"].items() if much):
                continue
            cards = self._cards(pod, name, room)
            if cards is None:
                continue
            for what, much in pod["need"].items():
                if much:
                    room[name, what] -= much
            for where in cards:
                room[where] -= pod["milli"] if pod["milli"] % 1000 else 1000
            return True
        return False

    def _cards(self, pod, name, room):
        """Which single cards of the node the pod takes; None when they have no room."""
        if not pod["milli"]:
            return []
        each, number = (pod["milli"], 1) if pod["milli"] % 1000 else (1000, pod["milli"] // 1000)
        for card in pod["choices"]:
            fitting = [where for where, left in room.items() if where[:2] == (name, card) and left >= each]
            if len(fitting) >= number:
                return sorted(fitting)[:number]
        return None


def _lets_go(world, queue):
    spec = world["queues"].get(queue)
    return spec is not None and spec.reclaimable and spec.service_type != "inference"


def _pods(world, gang):
    """The pods that make the gang's minimum; None when one of them fits nowhere at all."""
    wanted = missing(world, gang)
    group = world["gangs"][gang]
    waiting = in_task_order(members(world, gang, "pending"))
    if wanted and len(waiting) < wanted and (group.min_resources is not None or group.card_request):
        return _declared(world, group, wanted)
    tasks = waiting[:wanted]
    if any(task["impossible"] for task in tasks):
        return None
    return [{"task": task, "need": task["need"], "milli": task["milli"], "choices": task["choices"]} for task in tasks]


def _declared(world, group, wanted):
    """Pods that are not made yet: equal parts of what the PodGroup asks for, rounded up."""
    need = {"cpu": 0, "memory": 0, "pods": 1}
    if group.min_resources is not None:
        need["cpu"] = math.ceil(group.min_resources.cpu_milli / wanted)
        need["memory"] = math.ceil(group.min_resources.memory_mib / wanted)
    pods = []
    for name, milli in sorted(group.card_request.items()):
        choices = [part for part in name.split("|") if part in world["resource"]]
        if not milli:
            continue
        if not choices:
            return None
        if milli >= 1000 * wanted:
            number, each = wanted, 1000 * math.ceil(milli / (1000 * wanted))
        elif milli % 1000 == 0:
            number, each = milli // 1000, 1000
        else:
            number, each = wanted, math.ceil(milli / wanted)
        pods += [{"task": None, "need": need, "milli": each, "choices": choices}] * number
    return pods or [{"task": None, "need": need, "milli": 0, "choices": []}] * wanted
