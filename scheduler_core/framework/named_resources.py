"""Resources by the names that a policy uses, as rows over the nodes: cpu, memory, extended resources, card types."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from scheduler_core.framework.session import Session
from scheduler_core.model.resources import MILLI
from scheduler_core.state.axes import CPU, MEMORY
from scheduler_core.state.status import Ints
from scheduler_core.state.task_class import TaskClass

Where = slice | np.ndarray[tuple[int], np.dtype[np.intp]]

_PLAIN = {"cpu": CPU, "memory": MEMORY}


class NamedResources:
    """Rows for a list of names, in that order.

    A name is ``cpu``, ``memory``, an extended resource (``nvidia.com/gpu`` counts the cards of all types that it
    counts in Kubernetes) or a card type (``NVIDIA-H200``). What no node has is a row of zeros.

    Attributes:
        plain: row of the node table, -1 = none. cards: card types that count together.
        all: int64 (D, N), what the nodes have.
    """

    def __init__(self, session: Session, names: Sequence[str]) -> None:
        self._session, self.names = session, tuple(names)
        axes = session.axes
        self.plain = [_PLAIN.get(name, axes.scalar_index.get(name, -1)) for name in self.names]
        self.cards: list[list[int]] = []
        for name in self.names:
            one = [axes.card_index[name]] if name in axes.card_index else []
            self.cards.append(one or list(axes.cards_of_resource.get(name, ())))
        shape = (len(self.names), len(session.nodes))
        self.all: Ints = np.zeros(shape, dtype=np.int64)
        for row, (plain, cards) in enumerate(zip(self.plain, self.cards, strict=True)):
            if cards:
                self.all[row] = session.cards.count[cards].sum(axis=0).astype(np.int64) * MILLI
            elif plain >= 0:
                self.all[row] = session.nodes.allocatable[plain]

    def capacity(self, where: Where) -> Ints:
        """int64 (D, n): what the nodes at ``where`` have."""
        return self.all[:, where]

    def used(self, where: Where) -> Ints:
        """int64 (D, n): what is taken once all that leaves has left and all promises are kept.

        With ``compatibility: volcano``, as upstream counts: what leaves still counts, promises do not.
        """
        session = self._session
        nodes, cards = session.nodes, session.cards
        capacity = self.all[:, where]
        used: Ints = np.zeros(capacity.shape, dtype=np.int64)
        for row, (plain, types) in enumerate(zip(self.plain, self.cards, strict=True)):
            if types:
                left = cards.left_now if session.compat else cards.left_future
                used[row] = capacity[row] - left[types][:, where].sum(axis=0)
            elif plain >= 0:
                used[row] = nodes.used[plain, where] if session.compat else capacity[row] - nodes.future[plain, where]
        return used

    def request(self, cls: TaskClass) -> Ints:
        """int64 (D,): what a task of the class asks for."""
        asked: Ints = np.zeros(len(self.names), dtype=np.int64)
        for row, (plain, types) in enumerate(zip(self.plain, self.cards, strict=True)):
            if types:
                asked[row] = cls.milli if any(card in types for card in cls.cards) else 0
            elif plain >= 0:
                asked[row] = cls.request[plain]
        return asked
