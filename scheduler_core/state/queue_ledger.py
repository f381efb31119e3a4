"""What each queue may use and uses: cpu, memory and cards by type."""

import numpy as np

from scheduler_core.model.queue import Queue
from scheduler_core.model.resources import Amount
from scheduler_core.state.axes import CPU, LEDGER_CARDS, MEMORY, Axes
from scheduler_core.state.status import CHARGED, Ints, TaskStatus
from scheduler_core.state.task_table import TaskTable

# Larger than any sum of amounts, and still far from the end of int64.
NO_LIMIT = 2**62


class QueueLedger:
    """One column a queue, in the order of queue names.

    Attributes:
        queues: the queues. index: position by name.
        capability: int64 (D, Q); rows cpu (milli), memory (MiB), then milli-cards by type. ``NO_LIMIT`` = none.
            A card that the quota does not name is 0.
        allocated: int64 (D, Q), bound and running tasks and those that this session binds.
        pipelined: int64 (D, Q), tasks that are promised room.
        inqueue: int64 (D, Q), what admitted gangs still need up to their minimum, choices not included.
        inqueue_choices: per queue, milli-cards by the tuple of card positions of which any will do.
        versions: int64 (Q,), grows with each change of ``allocated`` or ``pipelined``.
        elastic: int64 (D, Q), allocated beyond the minimum of its gang."""

    def __init__(self, queues: tuple[Queue, ...], axes: Axes) -> None:
        self.axes = axes
        self.queues = queues
        self.index = {queue.name: q for q, queue in enumerate(queues)}
        shape = (axes.ledger_rows, len(queues))
        self.capability: Ints = np.zeros(shape, dtype=np.int64)
        for q, queue in enumerate(queues):
            self.capability[CPU, q] = NO_LIMIT if queue.cpu_milli is None else queue.cpu_milli
            self.capability[MEMORY, q] = NO_LIMIT if queue.memory_mib is None else queue.memory_mib
            for name, milli in (queue.card_quota or {}).items():
                card = axes.card_index.get(name)
                if card is not None:
                    self.capability[LEDGER_CARDS + card, q] = milli
        self.allocated: Ints = np.zeros(shape, dtype=np.int64)
        self.pipelined: Ints = np.zeros(shape, dtype=np.int64)
        self.inqueue: Ints = np.zeros(shape, dtype=np.int64)
        self.elastic: Ints = np.zeros(shape, dtype=np.int64)
        self.versions: Ints = np.zeros(len(queues), dtype=np.int64)
        self.inqueue_choices: list[dict[tuple[int, ...], int]] = [{} for _ in queues]

    def __len__(self) -> int:
        return len(self.queues)

    def limit(self, queue: int, row: int) -> int:
        """Capability of one resource; ``NO_LIMIT`` = none."""
        return int(self.capability[row, queue])

    def in_use(self, queue: int, row: int) -> int:
        """Allocated and promised of one resource."""
        return int(self.allocated[row, queue] + self.pipelined[row, queue])

    def amount(self, column: Ints) -> Amount:
        """A column (D,) as cpu, memory and cards."""
        cards = {
            name: milli for name, milli in zip(self.axes.cards, column[LEDGER_CARDS:].tolist(), strict=True) if milli
        }
        return Amount(int(column[CPU]), int(column[MEMORY]), cards)

    def quota(self, queue: int) -> Amount:
        """Capability and card quota as written; no limit on cpu or memory reads 0."""
        spec = self.queues[queue]
        return Amount(
            spec.cpu_milli or 0, spec.memory_mib or 0, {n: m for n, m in (spec.card_quota or {}).items() if m}
        )

    def sums(self, tasks: TaskTable, gang_queue: Ints, charge: Ints) -> tuple[Ints, Ints]:
        """``allocated`` and ``pipelined`` counted again from the tasks, O(tasks). ``gang_queue``: int64 (G,), queue of
        each gang. ``charge``: int64 (3, classes): cpu, memory, milli-cards that a task of each class counts."""
        found = []
        charged = tasks.live & CHARGED[tasks.status]
        promised = tasks.live & (tasks.status == TaskStatus.PIPELINED)
        for chosen in (charged, promised):
            at = np.flatnonzero(chosen & (tasks.gang >= 0))
            queue = gang_queue[tasks.gang[at]]
            at, queue = at[queue >= 0], queue[queue >= 0]
            sums = np.zeros_like(self.capability)
            cls = tasks.cls[at]
            np.add.at(sums[CPU], queue, charge[0, cls])
            np.add.at(sums[MEMORY], queue, charge[1, cls])
            card = tasks.card[at].astype(np.int64)
            with_card = card >= 0
            np.add.at(sums, (LEDGER_CARDS + card[with_card], queue[with_card]), charge[2, cls[with_card]])
            found.append(sums)
        return found[0], found[1]
