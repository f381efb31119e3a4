"""Which cards of its node each task holds, as bits that compiled code can read and write."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import numpy as np

from scheduler_core.model.cards import WORD_BITS
from scheduler_core.state.status import Ints


class CardSets:
    """A set of card numbers (places on the task's node, within its card type) for each task slot. Reads and writes like
    a list of sorted tuples. ``words``: int64 (slots, W); task ``t`` holds card ``i`` when bit ``i % 63`` of ``words[t,
    i // 63]`` is set. W is 1 unless a node has more than 63 cards of one type."""

    def __init__(self, capacity: int, words: int = 1) -> None:
        self.words: Ints = np.zeros((capacity, words), dtype=np.int64)

    def __len__(self) -> int:
        return len(self.words)

    @property
    def most(self) -> int:
        """How many cards a set can hold."""
        return int(self.words.shape[1]) * WORD_BITS

    def __getitem__(self, task: int) -> tuple[int, ...]:
        return cards_of_words(*self.words[task].tolist())

    def __setitem__(self, task: int, cards: Iterable[int]) -> None:
        row = [0] * self.words.shape[1]
        for card in cards:
            row[card // WORD_BITS] |= 1 << card % WORD_BITS
        self.words[task] = row

    def copy(self) -> CardSets:
        other = object.__new__(CardSets)
        other.words = self.words.copy()
        return other

    def grow(self, more: int) -> None:
        self.words = np.concatenate([self.words, np.zeros((more, self.words.shape[1]), dtype=np.int64)])


def words_for(cards: int) -> int:
    """How many words it takes for nodes with up to ``cards`` cards of one type; at least one."""
    return max(1, -(-cards // WORD_BITS))


@lru_cache(maxsize=4096)
def cards_of_words(*words: int) -> tuple[int, ...]:
    """Numbers of the bits that are set, ascending."""
    found = []
    for place, word in enumerate(words):
        bits = word
        while bits:
            low = bits & -bits
            found.append(place * WORD_BITS + low.bit_length() - 1)
            bits ^= low
    return tuple(found)
