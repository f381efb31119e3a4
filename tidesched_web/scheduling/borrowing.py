"""How many of a training queue's cards a full flood would take back."""

from __future__ import annotations

from typing import NamedTuple


class CardTotals(NamedTuple):
    """One card type of a cluster, in milli-cards: what the nodes have, what inference may use, what training uses."""

    hardware: int
    inference_quota: int
    training: int


def borrowed(allocated: int, total: CardTotals) -> int:
    """A queue's part of what training borrows (its use beyond hardware − Σ inference quota), by what it uses itself."""
    beyond = max(0, total.training - max(0, total.hardware - total.inference_quota))
    return min(allocated, round(beyond * allocated / total.training)) if total.training else 0
