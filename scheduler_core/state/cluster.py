"""All tables of one session together, and the one operation that changes them."""

import msgspec
import numpy as np

from scheduler_core.model.resources import MILLI
from scheduler_core.model.snapshot import Snapshot
from scheduler_core.state.axes import CPU, LEDGER_CARDS, MEMORY
from scheduler_core.state.gang_table import GangTable
from scheduler_core.state.queue_ledger import QueueLedger
from scheduler_core.state.status import CHARGED, HOLDS, Index, Ints, TaskStatus
from scheduler_core.state.task_class import TaskClass
from scheduler_core.state.workspace import Workspace


class Place(msgspec.Struct, frozen=True, gc=False):
    """Status of a task and where it is: enough to put it back exactly."""

    status: TaskStatus
    node: int = -1
    card: int = -1
    indices: tuple[int, ...] = ()


class Cluster:
    """Node, card, task and gang tables and the queue ledger of one session. Every change goes through :meth:`move`, so
    that the tables never disagree."""

    def __init__(self, snapshot: Snapshot, workspace: Workspace) -> None:
        workspace.load(snapshot)
        self.workspace = workspace
        self.axes, self.classes = workspace.axes, workspace.classes
        self.nodes, self.cards = workspace.lend()
        self.tasks = workspace.tasks.copy()
        self.ledger = QueueLedger(snapshot.queues, self.axes)
        groups = snapshot.pod_groups
        queue_of = self.ledger.index
        rows = workspace.gangs
        at: Index = np.array([queue_of.get(name, -1) for name in rows.queue_names] or [-1], dtype=np.int32)
        queue: Index = at[rows.queue_ids]
        self.gangs = GangTable(groups, rows, workspace.members, queue, self.tasks)
        # int64 (3, classes): cpu, memory and milli-cards that count against the queue.
        self.charge: Ints = self.classes.amounts.copy()

    def load_ledger(self) -> None:
        """Sum the ledger; called once the charges are final, before any move. O(gangs), and their members where the
        charges are others than in the session before."""
        gangs, ledger = self.gangs, self.ledger
        ledger.allocated[:] = self.workspace.members.use(
            self.charge, self.workspace.tasks, gangs.numbers, gangs.queue, len(ledger)
        )
        # A snapshot knows no promises.
        ledger.pipelined[:] = 0

    def class_of(self, task: int) -> TaskClass:
        return self.classes[int(self.tasks.cls[task])]

    def place_of(self, task: int) -> Place:
        tasks = self.tasks
        return Place(
            TaskStatus(int(tasks.status[task])), int(tasks.node[task]), int(tasks.card[task]), tasks.indices[task]
        )

    def move(self, task: int, place: Place) -> Place:
        """Put a task elsewhere and return where it was, O(R + cards of the nodes)."""
        before = self.place_of(task)
        self._apply(task, before, -1)
        tasks = self.tasks
        tasks.status[task], tasks.node[task], tasks.card[task] = place.status, place.node, place.card
        tasks.indices[task] = place.indices
        self._apply(task, place, 1)
        for at in {(before.node, before.card): None, (place.node, place.card): None}:
            node, card = at
            if node >= 0:
                if card >= 0:
                    self.cards.refresh(card, node)
                self.nodes.refresh(node)
        return before

    def _apply(self, task: int, place: Place, sign: int) -> None:
        status, node, card = place.status, place.node, place.card
        cls = self.class_of(task)
        promised = status is TaskStatus.PIPELINED
        if node >= 0 and (promised or HOLDS[status]):
            request = cls.request if sign > 0 else -cls.request
            each = sign * (cls.share or MILLI)
            if card >= 0:
                first = self.cards.start_list[card][node]
                rows = [first + i for i in place.indices]
            else:
                rows = []
            if promised:
                self.nodes.pipelined[:, node] += request
                for row in rows:
                    self.cards.pipelined[row] += each
            else:
                leaving = status is TaskStatus.RELEASING
                self.nodes.used[:, node] += request
                if leaving:
                    self.nodes.releasing[:, node] += request
                for row in rows:
                    self.cards.used[row] += each
                    if leaving:
                        self.cards.releasing[row] += each
        gang = int(self.tasks.gang[task])
        if gang < 0:
            return
        self.gangs.adjust(status, gang, sign)
        queue = self.gangs.queue_list[gang]
        if queue < 0 or not (promised or CHARGED[status]):
            return
        self.ledger.versions[queue] += 1
        column = self.ledger.pipelined if promised else self.ledger.allocated
        index = cls.index
        column[CPU, queue] += sign * self.charge[0, index]
        column[MEMORY, queue] += sign * self.charge[1, index]
        if card >= 0:
            column[LEDGER_CARDS + card, queue] += sign * self.charge[2, index]
