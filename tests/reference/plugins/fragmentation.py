"""fragmentation: FGD, one node and one card at a time."""

from __future__ import annotations

import math

from tests.reference.world import free, free_cards


class Fragmentation:
    """The node where the least becomes useless; a share on the card where that is so."""

    def __init__(self, arguments):
        self.weight = arguments.get("weight", 1)
        self.popularity = arguments.get("popularity", 95)
        self.mix = None

    def score(self, world, task, name):
        cards = _left(world, name)
        cpu, memory = (free(world, name, what, future=True) for what in ("cpu", "memory"))
        before = self._wasted(world, cards, cpu, memory)
        cpu, memory = cpu - task["need"]["cpu"], memory - task["need"]["memory"]
        if cpu < 0 or memory < 0:
            return 0.0
        if task["share"]:
            best, place = self._best_card(world, task, cards, cpu, memory, task["choices"], before)
            if place is None:
                return 0.0
        else:
            taken = _taken(cards, task)
            if taken is None:
                return 0.0
            best = _mark(before, self._wasted(world, taken, cpu, memory))
        held = sum(milli for _, milli in cards) - task["milli"]
        return (best + _fullness(world, cpu, memory, held)) * float(self.weight)

    def card_choice(self, world, task, card, name):
        if not task["share"]:
            return None
        cards = _left(world, name)
        cpu, memory = (free(world, name, what, future=True) for what in ("cpu", "memory"))
        before = self._wasted(world, cards, cpu, memory)
        rest = cpu - task["need"]["cpu"], memory - task["need"]["memory"]
        _, place = self._best_card(world, task, cards, *rest, [card], before)
        return None if place is None else (sum(1 for kind, _ in cards[:place] if kind == card),)

    def _best_card(self, world, task, cards, cpu, memory, choices, before):
        best, place = -1, None
        for choice in choices:
            for i, (kind, milli) in enumerate(cards):
                if kind == choice and milli >= task["share"]:
                    after = [*cards[:i], (kind, milli - task["share"]), *cards[i + 1 :]]
                    mark = _mark(before, self._wasted(world, after, cpu, memory))
                    if mark > best:
                        best, place = mark, i
            if place is not None:
                break
        return best, place

    def _wasted(self, world, cards, cpu, memory):
        """Milli-cards that a usual task could not use, in the mean."""
        if self.mix is None:
            self.mix = _usual(world, self.popularity)
        there = sum(max(0, milli) for _, milli in cards)
        if not there:
            return 0.0
        expected = 0.0
        for (need_cpu, need_memory, need, number, kinds), share in self.mix:
            wasted = there
            if need and cpu >= need_cpu and memory >= need_memory:
                usable = [milli for kind, milli in cards if kind in kinds and milli >= need]
                if len(usable) >= number:
                    wasted = there - sum(usable)
            expected += share * wasted
        return expected


def _usual(world, percent):
    """The commonest shapes of tasks, each with how often it comes."""
    numbers = {card: number for number, card in enumerate(sorted(world["resource"]))}
    found = {}
    for task in world["tasks"].values():
        if task["status"] in ("succeeded", "failed", "foreign") or (task["impossible"] and not _too_big(world, task)):
            continue
        whole = task["whole"]
        shape = (
            task["need"]["cpu"],
            task["need"]["memory"],
            task["share"] or (1000 if whole else 0),
            whole or (1 if task["share"] else 0),
            tuple(numbers[card] for card in task["choices"]),
        )
        found[shape] = found.get(shape, 0) + 1
    order = sorted(((count, shape) for shape, count in found.items()), reverse=True)
    kept, reached = [], 0
    while reached < sum(found.values()) * percent / 100:
        kept.append(order[len(kept)])
        reached += kept[-1][0]
    names = sorted(world["resource"])
    return [((*shape[:4], {names[i] for i in shape[4]}), count / reached) for count, shape in kept]


def _too_big(world, task):
    """A share of more than a card fits nowhere, but its names are known."""
    return bool(task["choices"] or not task["milli"]) and task["milli"] > 1000 and task["milli"] % 1000 != 0


def _left(world, name):
    """(type, milli-cards left) of every card of the node."""
    return [(card, milli) for card in sorted(world["resource"]) for milli in free_cards(world, name, card, future=True)]


def _taken(cards, task):
    """The cards once whole ones have been taken, of the first type that has enough."""
    if not task["whole"]:
        return cards
    for choice in task["choices"]:
        free_ones = [i for i, (kind, milli) in enumerate(cards) if kind == choice and milli >= 1000]
        if len(free_ones) >= task["whole"]:
            gone = free_ones[: task["whole"]]
            return [(kind, milli - 1000 if i in gone else milli) for i, (kind, milli) in enumerate(cards)]
    return None


def _mark(before, after):
    return int(100.0 / (1.0 + math.exp((after - before) / 1000.0)))


def _fullness(world, cpu, memory, milli):
    nodes = world["nodes"].values()
    most = [
        max(1, *(node.cpu_milli for node in nodes)),
        max(1, *(node.memory_mib for node in nodes)),
        max(1, *(1000 * sum(cards.count for cards in node.cards) for node in nodes)),
    ]
    return (3.0 - cpu / most[0] - memory / most[1] - milli / most[2]) / 3.001
