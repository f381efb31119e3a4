"""How much of what a node has left could not serve the usual tasks, and how much more that becomes with a new one.

The fragmentation of a node for one task is what is left on its cards that the task could not use: everything where the
task does not fit (cpu, memory, cards), else what is left on cards too full (or of other types) for it. The expected
fragmentation is the mean over a mix of tasks, each weighted by how often it comes. Scores are whole numbers, as in the
source, and many nodes are alike; among those the fullest is taken, in cpu, memory and cards together.
Source: Weng et al., Beware of Fragmentation (FGD), USENIX ATC 2023, sections 3 and 4."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from scheduler_core.algorithms.compiled import compiled_inline, compiled_loop
from scheduler_core.model.resources import MILLI

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

# A change by one whole card moves the score from 50 to 73 (less) or to 26 (more).
_SCALE = 1000.0


class Mix(NamedTuple):
    """Usual tasks, one row each.

    Attributes:
        cpu, memory: int64 (M,), milli-cores and MiB.
        kind: int64 (M,), what it asks of each card that it uses, -1 for a task without cards.
        number: int64 (M,), on how many cards. share: float64 (M,), how often it comes; they add up to 1.
        need: int64 (kinds,), milli-cards of one card. serves: bool (kinds, C), the card types that will do.
        fitting, usable: int64 (kinds,), scratch."""

    cpu: Ints
    memory: Ints
    kind: Ints
    number: Ints
    share: Floats
    need: Ints
    serves: Bools
    fitting: Ints
    usable: Ints

    @classmethod
    def empty(cls, cards: int) -> Mix:
        """No tasks, of so many card types."""
        none: Ints = np.zeros(0, dtype=np.int64)
        shares, serves = np.zeros(0, dtype=np.float64), np.zeros((0, cards), dtype=np.bool_)
        return cls(none, none, none, none, shares, none, serves, none, none)


class Task(NamedTuple):
    """The task that is to be placed: amounts, and its card types, the preferred first."""

    cpu: int
    memory: int
    whole: int
    share: int
    cards: npt.NDArray[np.signedinteger[Any]]


@compiled_loop
def of_one(left: Ints, kind: Ints, size: int, cpu: int, memory: int, mix: Mix) -> float:
    """Expected fragmentation of one node in milli-cards: ``size`` cards with what is left and their types."""
    total = 0
    for card in range(size):
        total += max(left[card], 0)
    if total == 0:
        return 0.0
    for k in range(len(mix.need)):
        fitting, usable, need = 0, 0, mix.need[k]
        for card in range(size):
            if left[card] >= need and mix.serves[k, kind[card]]:
                fitting += 1
                usable += left[card]
        mix.fitting[k], mix.usable[k] = fitting, usable
    expected = 0.0
    for m in range(len(mix.kind)):
        wasted, k = total, mix.kind[m]
        if k >= 0 and cpu >= mix.cpu[m] and memory >= mix.memory[m] and mix.fitting[k] >= mix.number[m]:
            wasted = total - mix.usable[k]
        expected += mix.share[m] * wasted
    return expected


@compiled_loop
def growth_score(before: float, after: float) -> int:
    """0 to 100, whole numbers as the source has them: the less fragmentation grows, the higher."""
    return int(100.0 / (1.0 + np.exp((after - before) / _SCALE)))


@compiled_inline
def fullness(cpu: int, memory: int, cards: int, most: Ints) -> float:
    """0 to 1, below 1: how little is left, against the most that any node has of cpu, memory and milli-cards."""
    return float(3.0 - cpu / most[0] - memory / most[1] - cards / most[2]) / 3.001


@compiled_loop
def best_card(
    left: Ints, kind: Ints, size: int, cpu: int, memory: int, before: float, task: Task, mix: Mix
) -> tuple[int, int]:
    """Score and place (among the gathered cards) of the best card for a share; place -1 where none has room."""
    best, place = -1, -1
    for option in range(len(task.cards)):
        for card in range(size):
            if kind[card] != task.cards[option] or left[card] < task.share or _as_one_before(left, kind, card):
                continue
            left[card] -= task.share
            score = growth_score(before, of_one(left, kind, size, cpu, memory, mix))
            left[card] += task.share
            if score > best:
                best, place = score, card
        if place >= 0:
            break
    return best, place


@compiled_loop
def _as_one_before(left: Ints, kind: Ints, card: int) -> bool:
    """A card before it is of the same type and as full, so that both score alike."""
    for other in range(card):  # noqa: SIM110 - compiled code takes no generator
        if left[other] == left[card] and kind[other] == kind[card]:
            return True
    return False


@compiled_loop
def take_whole(left: Ints, kind: Ints, size: int, task: Task) -> bool:
    """Take entirely free cards of the first type that has enough of them."""
    for option in range(len(task.cards)):
        free = 0
        for card in range(size):
            if kind[card] == task.cards[option] and left[card] >= MILLI:
                free += 1
        if free < task.whole:
            continue
        taken = 0
        for card in range(size):
            if taken < task.whole and kind[card] == task.cards[option] and left[card] >= MILLI:
                left[card] -= MILLI
                taken += 1
        return True
    return False
