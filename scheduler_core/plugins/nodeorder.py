"""Plugin ``nodeorder``: which of the nodes that fit is best.

Extension point: node_order. Score = sum of weight x score (0 to 100).
Source: volcano-semantics 4.6. Scores that look at other pods, images or spread constraints are not built yet; their
weights are refused by name unless they are 0.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from scheduler_core.algorithms.scoring import balanced, least_requested, most_requested, normalised
from scheduler_core.framework.plugin import Argument, Plugin
from scheduler_core.framework.session import Session
from scheduler_core.model.resources import MILLI
from scheduler_core.state.axes import CPU, MEMORY
from scheduler_core.state.status import Floats, Ints
from scheduler_core.state.task_class import TaskClass

Where = slice | np.ndarray[tuple[int], np.dtype[np.intp]]


def _weight(name: str, default: int, doc: str) -> Argument:
    return Argument(name=f"{name}.weight", type="int", default=default, minimum=0, maximum=1_000_000, doc=doc)


class NodeOrder(Plugin):
    """Sum of weighted node scores."""

    name: ClassVar[str] = "nodeorder"
    arguments: ClassVar[tuple[Argument, ...]] = (
        _weight("leastrequested", 1, "nodes with much free cpu and memory"),
        _weight("mostrequested", 0, "nodes with little free cpu and memory"),
        _weight("nodeaffinity", 2, "nodes that the pod prefers"),
        _weight("balancedresource", 1, "nodes whose cpu, memory and cards are used evenly"),
        _weight("tainttoleration", 3, "nodes with few PreferNoSchedule taints"),
    )
    not_built: ClassVar[tuple[str, ...]] = ("podaffinity.weight", "imagelocality.weight", "podtopologyspread.weight")

    def open(self, session: Session) -> None:
        """Read the weights."""
        super().open(session)
        self._index = session.node_index
        self._weights = {name.removesuffix(".weight"): int(value) for name, value in self.values.items()}
        self._static: dict[object, Floats] = {}
        self._card_total: Ints = session.cards.count.sum(axis=0).astype(np.int64) * MILLI

    def node_order(self, cls: TaskClass, where: Where) -> Floats:
        """Score of the nodes at ``where``; float64."""
        weights, nodes = self._weights, self.session.nodes
        rows = [CPU, MEMORY]
        allocatable = nodes.allocatable[rows][:, where]
        requested = allocatable - nodes.future[rows][:, where] + cls.request[rows][:, None]
        score: Floats = self._fixed(cls)[where].copy()
        if weights["leastrequested"]:
            score += weights["leastrequested"] * least_requested(allocatable, requested)
        if weights["mostrequested"]:
            score += weights["mostrequested"] * most_requested(allocatable, requested)
        if weights["balancedresource"]:
            total = self._card_total[where]
            cards = total - self.session.cards.left_future[:, where].sum(axis=0) + cls.milli
            score += weights["balancedresource"] * balanced(
                np.vstack([allocatable, total]), np.vstack([requested, cards])
            )
        return score

    def _fixed(self, cls: TaskClass) -> Floats:
        """The part that no placement changes: preferred nodes and soft taints."""
        key = (cls.preferred, cls.tolerations)
        fixed = self._static.get(key)
        if fixed is None:
            fixed = np.zeros(len(self.session.nodes), dtype=np.float64)
            if cls.preferred and self._weights["nodeaffinity"]:
                raw: Ints = np.zeros(len(fixed), dtype=np.int64)
                for preference in cls.preferred:
                    raw += preference.weight * self._index.term(preference.term)
                fixed += self._weights["nodeaffinity"] * normalised(raw)
            if self._weights["tainttoleration"]:
                raw = self._index.intolerable(cls.tolerations, preferred=True)
                fixed += self._weights["tainttoleration"] * normalised(raw, reverse=True)
            self._static[key] = fixed
        return fixed
