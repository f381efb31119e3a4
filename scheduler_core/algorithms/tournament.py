"""The best of many scores, kept up to date one change at a time: a tournament tree.

``winner`` is int32 (N,): place ``i`` (1 <= i < N) holds the node that wins among the places ``2i`` and ``2i + 1``,
where a place ``p`` >= N is node ``p - N`` itself. The higher score wins, and among equals the lower node.
Finding the best is O(1), a change O(log N) and less where it does not win.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from scheduler_core.algorithms.compiled import compiled, compiled_inline

Index = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]

# The score of a node that is out of the question.
NOWHERE = -np.inf


@compiled_inline
def _match(score: Floats, winner: Index, place: int) -> int:
    """The node that wins at a place, by its two children."""
    size, left, right = score.shape[0], 2 * place, 2 * place + 1
    a = left - size if left >= size else winner[left]
    b = right - size if right >= size else winner[right]
    return a if score[a] > score[b] or (score[a] == score[b] and a < b) else b


@compiled
def play_all(score: Floats, winner: Index) -> None:
    """Set every place from the scores, O(N)."""
    for place in range(score.shape[0] - 1, 0, -1):
        winner[place] = _match(score, winner, place)


@compiled
def change(score: Floats, winner: Index, node: int, value: float) -> None:
    """Give a node another score, O(log N)."""
    if score[node] == value:
        return
    score[node] = value
    place = (score.shape[0] + node) >> 1
    while place >= 1:
        won = _match(score, winner, place)
        if won == winner[place] and won != node:
            return
        winner[place] = won
        place >>= 1


@compiled
def best(score: Floats, winner: Index) -> int:
    """The node with the highest score, the lowest of equals; -1 when all are out of the question."""
    size = score.shape[0]
    if size == 0:
        return -1
    node = winner[1] if size > 1 else 0
    return node if score[node] > NOWHERE else -1
