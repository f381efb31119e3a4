"""How many of a training queue's cards a full flood would take back, and which inference queues lend them."""

from __future__ import annotations

from typing import NamedTuple


class CardTotals(NamedTuple):
    """One card type of a cluster, in milli-cards: what the nodes have, what inference may use, what training uses.

    ``inference_unused``: what the inference queues leave of their quotas, each by itself.
    """

    hardware: int
    inference_quota: int
    training: int
    inference_unused: int = 0

    @property
    def borrowed(self) -> int:
        return max(0, self.training - max(0, self.hardware - self.inference_quota))


def borrowed(allocated: int, total: CardTotals) -> int:
    """A training queue's part of what training borrows, by what it uses itself."""
    return min(allocated, round(total.borrowed * allocated / total.training)) if total.training else 0


def lent(unused: int, total: CardTotals) -> int:
    """An inference queue's part of what training borrows, by what it leaves of its quota."""
    return min(unused, round(total.borrowed * unused / total.inference_unused)) if total.inference_unused else 0
