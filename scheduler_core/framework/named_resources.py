"""Resources by the names that a policy uses, as rows over the nodes: cpu, memory, extended resources, card types."""

from collections.abc import Sequence

import numpy as np

from scheduler_core.framework.session import Session
from scheduler_core.model.resources import MILLI
from scheduler_core.state.axes import CPU, MEMORY
from scheduler_core.state.status import Ints
from scheduler_core.state.task_class import TaskClass

_PLAIN = {"cpu": CPU, "memory": MEMORY}


class NamedResources:
    """Rows for a list of names, in that order.

    A name is ``cpu``, ``memory``, an extended resource (``nvidia.com/gpu`` counts the cards of all types that it
    counts in Kubernetes) or a card type (``NVIDIA-H200``). What no node has is a row of zeros.

    Attributes:
        plain: row of the node table, -1 = none. cards: card types that count together.
        all: int64 (D, N), what the nodes have."""

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

    def request(self, cls: TaskClass) -> Ints:
        asked: Ints = np.zeros(len(self.names), dtype=np.int64)
        for row, (plain, types) in enumerate(zip(self.plain, self.cards, strict=True)):
            if types:
                asked[row] = cls.milli if any(card in types for card in cls.cards) else 0
            elif plain >= 0:
                asked[row] = cls.request[plain]
        return asked
