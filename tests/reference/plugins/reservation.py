"""reservation: for whom nodes are kept, and which."""

from __future__ import annotations

from tests.reference.placement import admitted
from tests.reference.world import (
    HOLDING,
    capacity,
    cards_on,
    free,
    free_cards,
    in_task_order,
    members,
    missing,
    service_type,
    waiting_since,
)


class Reservation:
    """The highest priority, then the longest waiting; nodes that will do once what ends has ended."""

    def __init__(self, arguments):
        self.patience = arguments.get("waitingSeconds", 0.0)

    def target(self, world, gangs):
        for gang in sorted(gangs, key=lambda g: (-world["gangs"][g].priority, waiting_since(world, g), g)):
            if world["now"] - waiting_since(world, gang) >= self.patience and self.keep(world, gang, ()) is not None:
                return gang
        return None

    def keep(self, world, gang, kept):
        if self._over_quota(world, gang):
            return None
        needs = {}
        for task in in_task_order(members(world, gang, "pending"))[: missing(world, gang)]:
            needs.setdefault(task["class"], []).append(task)
        needs = list(needs.values())
        if not needs:
            return []
        order = []
        for name in world["nodes"]:
            may = [admitted(world, tasks[0], name) for tasks in needs]
            empty, idle = self._empty(world, name, needs), self._idle(world, name, needs)
            counts = [len(tasks) for tasks in needs]
            in_all = sum(_served(empty, needs, counts, may))
            if in_all:
                cards = {card for tasks in needs for card in tasks[0]["choices"]}
                left = sum(max(0, m) for card in cards for m in free_cards(world, name, card, future=True))
                at_once = sum(_served(idle, needs, counts, may))
                order.append(((name not in kept, -at_once, -left, -in_all, name), empty, may))
        left, chosen = [len(tasks) for tasks in needs], []
        for key, empty, may in sorted(order, key=lambda entry: entry[0]):
            done = _served(empty, needs, left, may)
            if any(done):
                chosen.append(key[-1])
                left = [a - b for a, b in zip(left, done, strict=True)]
        return None if any(left) else chosen

    def task_filter(self, world, task, name):
        if world["election"] is None or not world["election"][1] or task["gang"] == world["election"][0]:
            return True
        gang, nodes = world["election"]
        return gang not in world["gangs"] or not missing(world, gang) or name not in nodes

    def enqueueable(self, world, gang):
        return 1 if world["election"] is not None and world["election"][0] == gang else 0

    def _over_quota(self, world, gang):
        if world["hooks"].first("quota_left", world, gang) is False:
            return True
        alike = {task["class"]: task for task in members(world, gang, "pending")}
        return any(
            not any(world["hooks"].all("allowed", world, task, card) for card in task["choices"] or [None])
            for task in alike.values()
        )

    def _idle(self, world, name, needs):
        """What is free once all that leaves has left: resources, and entirely free cards by type."""
        room = {what: free(world, name, what, future=True) for what in _names(needs)}
        cards = {
            card: sum(1 for milli in free_cards(world, name, card, future=True) if milli >= 1000)
            for card in world["resource"]
        }
        return room, cards

    def _empty(self, world, name, needs):
        """What is free once everything has ended that ends by itself."""
        stays = []
        for task in world["tasks"].values():
            if task["node"] == name and task["status"] in (*HOLDING, "pipelined"):
                ends = task["gang"] is not None and service_type(world, task["gang"]) != "inference"
                if not ends or task["status"] == "pipelined":
                    stays.append(task)
        node = world["nodes"][name]
        room = {what: capacity(node, what) - sum(t["need"].get(what, 0) for t in stays) for what in _names(needs)}
        cards = {}
        for card in world["resource"]:
            touched = {index for t in stays if t["card"] == card for index in t["indices"]}
            cards[card] = cards_on(world, name, card) - len(touched)
        return room, cards


def _names(needs):
    return {what for tasks in needs for what in tasks[0]["need"]}


def _served(room, needs, most, may):
    """How many of each need find room together, one need after the other; shares on cards of their own."""
    free_now, cards = dict(room[0]), dict(room[1])
    found = []
    for tasks, limit, let_in in zip(needs, most, may, strict=True):
        task = tasks[0]
        fits = limit if let_in else 0
        for what, amount in task["need"].items():
            if amount:
                fits = min(fits, max(0, free_now[what]) // amount)
        if task["milli"]:
            fits = _on_cards(task, cards, fits)
        for what, amount in task["need"].items():
            free_now[what] -= fits * amount
        found.append(fits)
    return found


def _on_cards(task, cards, most):
    done = 0
    for card in task["choices"]:
        here = 0
        if task["share"]:
            on_one = 1000 // task["share"]
            here = min(most - done, cards[card] * on_one)
            cards[card] -= (max(0, here) + on_one - 1) // on_one
        else:
            here = min(most - done, cards[card] // task["whole"])
            cards[card] -= max(0, here) * task["whole"]
        done += max(0, here)
    return done
