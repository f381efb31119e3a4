"""What upstream's capacity-card counts otherwise than it should, for ``compatibility: volcano``. Source:
volcano-semantics 4.10, defects a, d, e, k and n by their letters."""

import numpy as np

from scheduler_core.framework.demand import Demand
from scheduler_core.framework.quota import Book
from scheduler_core.framework.session import Session
from scheduler_core.state.axes import CPU, LEDGER_CARDS, MEMORY
from scheduler_core.state.queue_ledger import NO_LIMIT
from scheduler_core.state.status import CHARGED, PIPELINED, Ints
from scheduler_core.state.task_class import TaskClass


class UpstreamCards:
    """The ledger of one session as upstream keeps it. ``lines``: int64 (D, Q), what a queue deserves, of which its
    share is a part; ``NO_LIMIT`` = not named. ``early``: int64 (D, Q), what was summed before the flag was read (a).
    ``kept``: int64 (D, Q), promises to gangs that another plugin refused (e)."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.lines = self._deserved()
        self.early: Ints = np.zeros_like(self.lines)
        self.kept: Ints = np.zeros_like(self.lines)
        self._choices: np.ndarray[tuple[int], np.dtype[np.bool_]] = np.array(
            [len(cls.names) > 1 for cls in session.cluster.classes.classes], dtype=np.bool_
        )

    def count_before_the_flag(self) -> None:
        """(a) cardUnlimitedCpuMemory is read after the queues were summed: cpu and memory of card tasks are in it."""
        session, tasks = self._session, self._session.tasks
        for task in np.flatnonzero(tasks.live & CHARGED[tasks.status] & (tasks.gang >= 0)).tolist():
            queue, cls = session.queue_of(int(tasks.gang[task])), session.cluster.class_of(task)
            if queue >= 0 and cls.milli:
                self.early[CPU, queue] += cls.cpu_milli
                self.early[MEMORY, queue] += cls.memory_mib

    def literal(self, queue: int) -> Ints:
        """(d) int64 (D,): promised choices of a queue, by card; they have a name of their own (``A|B``)."""
        session, tasks = self._session, self._session.tasks
        found: Ints = np.zeros(session.axes.ledger_rows, dtype=np.int64)
        promised = tasks.live & (tasks.status == PIPELINED) & (tasks.gang >= 0) & (tasks.card >= 0)
        for task in np.flatnonzero(promised).tolist():
            if self._choices[tasks.cls[task]] and session.queue_of(int(tasks.gang[task])) == queue:
                found[LEDGER_CARDS + int(tasks.card[task])] += session.cluster.class_of(task).milli
        return found

    def in_use(self, queue: int, row: int) -> int:
        """Allocated and promised of one resource, promised choices aside."""
        return self._session.ledger.in_use(queue, row) + int(self.early[row, queue] - self.literal(queue)[row])

    def correct(self, book: Book, queue: int, *, admission: bool) -> None:
        """Bring the quota of a queue to what upstream takes for it."""
        off = (self.early[:, queue] - self.literal(queue)).tolist()
        book.used = [used + more for used, more in zip(book.used, off, strict=True)]
        if admission:
            kept = self.kept[:, queue].tolist()
            book.promised = [promised + more for promised, more in zip(book.promised, kept, strict=True)]

    def keep_promise(self, gang: int, demand: Demand) -> None:
        """(e) What the vote has let in stays promised for the session, although another plugin refuses the gang."""
        queue = self._session.queue_of(gang)
        self.kept[CPU, queue] += demand.cpu_milli
        self.kept[MEMORY, queue] += demand.memory_mib
        for choice, milli in demand.cards.items():
            if len(choice) == 1:
                self.kept[LEDGER_CARDS + choice[0], queue] += milli

    def share(self, queue: int) -> float:
        """(k) Largest used part of what the queue deserves: cards by quota, cpu and memory where named."""
        ledger, share = self._session.ledger, 0.0
        used = ledger.allocated[:, queue] + ledger.pipelined[:, queue] + self.early[:, queue] - self.literal(queue)
        for in_use, line in zip(used.tolist(), self.lines[:, queue].tolist(), strict=True):
            if in_use > 0 and line < NO_LIMIT:
                share = max(share, in_use / line if line else 1.0)
        return share

    def room(self, queue: int, cls: TaskClass) -> bool:
        """(c, n) Whether one of the cards of a choice has quota, whichever is then taken; for a task that was placed
        and taken back it is the card of that node that counts."""
        rows = {LEDGER_CARDS + self.asked_as(card) for card in cls.cards}
        return any(self.in_use(queue, row) + cls.milli <= self._session.ledger.limit(queue, row) for row in rows)

    def asked_as(self, card: int) -> int:
        """(n) The card type that a request for one of its cards is counted as."""
        session = self._session
        return session.stale_cards.get(session.asked_task, card)

    def _deserved(self) -> Ints:
        """Cards by quota; cpu and memory of ``deserved``, at most what is left when all guarantees are kept."""
        session, ledger = self._session, self._session.ledger
        lines = ledger.capability.copy()
        for row, name in ((CPU, "cpu"), (MEMORY, "memory")):
            total = int(session.nodes.allocatable[row].sum())
            kept = [queue.guarantee.get(name, 0) for queue in ledger.queues]
            for q, queue in enumerate(ledger.queues):
                most = min(max(0, total - sum(kept)) + kept[q], ledger.limit(q, row))
                line = queue.deserved.get(name)
                lines[row, q] = NO_LIMIT if line is None else max(min(line, most), kept[q])
        return lines
