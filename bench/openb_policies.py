"""The six placement policies that the FGD paper compares, as plugins of the engine.

Scores are whole numbers of 0 to 100 and ties go to the first node, as in the paper's program. Node and task are
compared in milli-cores of a node of 128 cores and milli-cards of a node of 8 cards.
Source: Weng et al., Beware of Fragmentation, USENIX ATC 2023, section 6; scores as in its published artifact.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import numpy as np

from scheduler_core.framework.extension_points import Where
from scheduler_core.framework.plugin import Plugin
from scheduler_core.framework.session import Session
from scheduler_core.plugins.fragmentation import Fragmentation
from scheduler_core.state.axes import CPU
from scheduler_core.state.status import ALLOCATED, Floats, Ints
from scheduler_core.state.task_class import TaskClass

MOST_CPU, MOST_CARDS = 128_000, 8_000


class _OnNodes(Plugin):
    """What a score needs of the nodes."""

    def _left(self, where: Where) -> tuple[Ints, Ints]:
        """int64 (n,): milli-cores left, milli-cards left."""
        return self.session.nodes.now[CPU, where], self.session.cards.left_now[:, where].sum(axis=0)


class RandomFit(_OnNodes):
    """Any node that fits, any card that fits, all equally likely."""

    name: ClassVar[str] = "openb-random"

    def open(self, session: Session) -> None:
        """Begin to draw from the session's seed."""
        super().open(session)
        self._rng = np.random.default_rng(session.seed)

    def task_node_order(self, task: int) -> Floats:
        """A draw for each node: the highest among those that fit is as likely to be any of them."""
        return self._rng.random(len(self.session.nodes))

    def card_choice(self, cls: TaskClass, card: int, node: int) -> tuple[int, ...] | None:
        """A draw among the cards with room for a share."""
        if not cls.share:
            return None
        fitting = [i for i, free in enumerate(self.session.cards.free_now(card, node)) if free >= cls.share]
        return (fitting[int(self._rng.integers(len(fitting)))],)


class DotProduct(_OnNodes):
    """Tetris turned round: the node whose room is least like the task."""

    name: ClassVar[str] = "openb-dot-product"

    def node_order(self, cls: TaskClass, where: Where) -> Floats:
        """100 x (1 - mean over cpu and cards of left x request, each as a share of the largest node)."""
        cpu, cards = self._left(where)
        product = cpu / MOST_CPU * (cls.cpu_milli / MOST_CPU) + cards / MOST_CARDS * (cls.milli / MOST_CARDS)
        return np.trunc(100.0 * (1.0 - product / 2))


class BestFit(_OnNodes):
    """The node with the least left of cpu and cards together."""

    name: ClassVar[str] = "openb-best-fit"

    def node_order(self, cls: TaskClass, where: Where) -> Floats:
        """100 x (1 - mean of what is left after the task, as shares of the largest node)."""
        cpu, cards = self._left(where)
        left = (cpu - cls.cpu_milli) / MOST_CPU * 0.5 + (cards - cls.milli) / MOST_CARDS * 0.5
        return np.trunc((1.0 - left) * 100.0)


class GpuPacking(_OnNodes):
    """Cards in use before free cards of a node in use before free nodes."""

    name: ClassVar[str] = "openb-gpu-packing"

    def node_order(self, cls: TaskClass, where: Where) -> Floats:
        """Above 50 on cards in use, 33 to 50 on free cards of a node in use, else less the more cards it has free."""
        table = self.session.cards
        at = np.arange(len(self.session.nodes))[where]
        score = np.zeros(len(at), dtype=np.float64)
        if not cls.milli:
            return score
        for i, node in enumerate(at.tolist()):
            free = [milli for card in table.types_on[node] for milli in table.free_now(card, node)]
            whole = sum(1 for milli in free if milli == 1000)
            if whole == len(free):
                score[i] = max(33 - whole, whole)
                continue
            need, number = (cls.share, 1) if cls.share else (1000, cls.whole)
            taken = sorted(milli for milli in free if milli >= need)[:number]
            fresh = sum(1 for milli in taken if milli == 1000)
            score[i] = max(50 - fresh, 33) if fresh else max(100 - sum(m * 100 // 1000 for m in taken) // 10, 50)
        return score


class GpuClustering(_OnNodes):
    """Tasks that ask for as many cards beside their like."""

    name: ClassVar[str] = "openb-gpu-clustering"

    def open(self, session: Session) -> None:
        """Give each way of asking for cards a number; 0 asks for none."""
        super().open(session)
        ways = [1 if cls.share else cls.whole + 1 if cls.whole else 0 for cls in session.cluster.classes.classes]
        self._way: Ints = np.array(ways, dtype=np.int64)

    def node_order(self, cls: TaskClass, where: Where) -> Floats:
        """75 beside its like alone, 50 beside others too, 25 on a free node, 0 beside others; +25 the fuller."""
        session, ways = self.session, int(self._way.max()) + 1
        at = np.arange(len(session.nodes))[where]
        if not cls.milli:
            return np.zeros(len(at), dtype=np.float64)
        tasks = session.tasks
        held = (tasks.status == ALLOCATED) & tasks.live
        key = tasks.node[held].astype(np.int64) * ways + self._way[tasks.cls[held]]
        beside = np.bincount(key, minlength=ways * len(session.nodes)).reshape(-1, ways)[at, 1:] > 0
        kinds, like = beside.sum(axis=1), beside[:, self._way[cls.index] - 1]
        base = np.where(like, np.where(kinds == 1, 75, 50), np.where(kinds == 0, 25, 0))
        _, left = self._left(where)
        score: Floats = (base + 25 * (MOST_CARDS - left) // MOST_CARDS).astype(np.float64)
        return score


POLICIES: dict[str, Callable[[], Plugin]] = {
    "Random": lambda: RandomFit({}),
    "DotProd": lambda: DotProduct({}),
    "GpuClustering": lambda: GpuClustering({}),
    "GpuPacking": lambda: GpuPacking({}),
    "BestFit": lambda: BestFit({}),
    "FGD": lambda: Fragmentation({}),
}
