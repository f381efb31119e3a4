"""Plugin ``proportion``: queues share the cluster by weight; what one does not ask for goes to the others.

Extension points: queue_order, victim_queue_order, overused, allocatable, preemptive, reclaimable, unified_evictable,
job_enqueueable, quota_shortfall, queue_deserved, queue_share. The promise that job_enqueued makes upstream is the
ledger's, which the action keeps. No arguments. Units: milli-cores, MiB, thousandths of other resources.
Source: volcano-semantics 4.8.

On purpose different from upstream: a gang without minResources is measured by its pods instead of waved through; what
a gang holds already is not asked for twice; a queue that uses more than it deserves gives back only of what the
reclaimer asks for, so that memory in excess does not cost it cards that it deserves. With ``compatibility: volcano``
as upstream, but that what queues without a gang are guaranteed is shared out to nobody, in both modes."""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from scheduler_core.algorithms.water_filling import Claim, real_capability, water_filling
from scheduler_core.framework.combine import Ballot, Opinion
from scheduler_core.framework.demand import Demand, Shortfall
from scheduler_core.framework.forms import Form, Overused, RowCeilings, RowLimits, ShareKey, StaticKey
from scheduler_core.framework.plugin import Plugin
from scheduler_core.framework.resource_rows import ResourceRows, columns, largest_share, unknown_card, waved
from scheduler_core.framework.session import Session
from scheduler_core.model.reason import ReasonCode
from scheduler_core.model.resources import Amount
from scheduler_core.model.rules import Rule
from scheduler_core.state.task_class import TaskClass


class Proportion(Plugin):
    name: ClassVar[str] = "proportion"
    guards: ClassVar[frozenset[str]] = frozenset({"reclaimable", "unified_evictable"})

    def open(self, session: Session) -> None:
        """Take down what each queue may use at most; what it deserves is found when first asked for."""
        super().open(session)
        self.rows = rows = ResourceRows(session)
        queues = session.ledger.queues
        guarantee = [[amount or 0 for amount in rows.written(queue.guarantee)] for queue in queues]
        guaranteed = [sum(column) for column in zip(*guarantee, strict=True)] or [0] * len(rows)
        self._guarantee = guarantee
        self.real = [
            real_capability(rows.total, guaranteed, own, rows.capability(queue))
            for own, queue in zip(guarantee, queues, strict=True)
        ]
        self._deserved: list[list[int]] | None = None

    @property
    def deserved(self) -> list[list[int]]:
        """By queue and row; queues without a gang take no part and keep their guarantee. Made once per session."""
        if self._deserved is None:
            session = self.session
            requested = self.rows.requested()
            found = [list(own) for own in self._guarantee]
            busy = sorted({queue for queue in session.gangs.queue_list if queue >= 0})
            claims = [
                Claim(session.ledger.queues[q].weight, requested[q], self.real[q], self._guarantee[q]) for q in busy
            ]
            idle = [sum(column) for column in zip(*(g for q, g in enumerate(found) if q not in busy), strict=True)]
            shared = [max(0, t - kept) for t, kept in zip(self.rows.total, idle or [0] * len(self.rows), strict=True)]
            for queue, amounts in zip(busy, water_filling(shared, claims), strict=True):
                found[queue] = amounts
            self._deserved = found
        return self._deserved

    def compiled_form(self, point: str) -> Sequence[Form] | None:
        """By what queues deserve, where the ledger has all resources."""
        session, rows = self.session, self.rows
        if point == "preemptive" or not (rows.of_ledger and rows.exact()):
            return None
        if point == "job_enqueueable":
            return [RowCeilings(rows, columns(self.real), rows.spent(), False, waved(session))]
        if point in ("queue_order", "overused", "allocatable"):
            deserved = columns(self.deserved)
            if point == "overused":
                return [Overused(deserved, rows.sums)]
            if point == "allocatable":
                return [RowLimits(rows, deserved)]
            priorities = np.array([-queue.priority for queue in session.ledger.queues], dtype=np.int64)
            return [StaticKey(priorities), ShareKey(deserved, rows.sums)]
        return None

    def queue_order(self, queue: int) -> tuple[int, float]:
        """Higher priority first, then the one with less of what it deserves."""
        return -self.session.ledger.queues[queue].priority, self.queue_share(queue)

    def victim_queue_order(self, queue: int, reclaimer_queue: int) -> tuple[int, float]:
        return self.session.ledger.queues[queue].priority, -self.queue_share(queue)

    def queue_share(self, queue: int) -> float:
        """Largest used part of what the queue deserves."""
        return largest_share(self.rows.used(queue), self.deserved[queue])

    def queue_deserved(self, queue: int) -> Amount:
        return self.rows.amount(self.deserved[queue])

    def job_enqueueable(self, gang: int, demand: Demand) -> Ballot | Shortfall:
        """minimum + allocated + promised - elastic fits the most that the queue may use."""
        session = self.session
        queue = session.queue_of(gang)
        if not session.queue_is_open(queue):
            return Shortfall(code=ReasonCode.QUEUE_CLOSED, resource="", requested=0)
        if session.compat and session.group(gang).min_resources is None:
            return Ballot.PERMIT
        used = zip(self.rows.used(queue), self.rows.elastic([queue]), strict=True)
        name, code = session.ledger.queues[queue].name, ReasonCode.WAITING_FOR_QUOTA
        return (
            self.rows.shortfall(
                code,
                self.rows.minimum(gang, demand),
                self.real[queue],
                [in_use - elastic for in_use, elastic in used],
                self.rows.promised([queue]),
                queue=name,
            )
            or unknown_card(code, demand, name)
            or Ballot.PERMIT
        )

    def quota_shortfall(self, gang: int, demand: Demand, empty: bool = False) -> Shortfall | None:
        """What the queue deserves too little of now, or (``empty``) may never use."""
        queue = self.session.queue_of(gang)
        return self.rows.shortfall(
            ReasonCode.WAITING_FOR_QUOTA, self.rows.minimum(gang, demand),
            self.real[queue] if empty else self.deserved[queue],
            [0] * len(self.rows) if empty else self.rows.used(queue), queue=self.session.ledger.queues[queue].name,
        )  # fmt: skip

    def overused(self, queue: int) -> bool:
        """It has all that it deserves, of everything; a promise must still become a place."""
        rows = zip(self.deserved[queue], self.rows.bound(queue), strict=True)
        return all(deserved <= in_use for deserved, in_use in rows)

    def allocatable(self, queue: int, cls: TaskClass, card: int) -> Shortfall | None:
        """One more task stays within what the queue deserves."""
        if not self.session.queue_is_open(queue):
            return Shortfall(code=ReasonCode.QUEUE_CLOSED, resource="", requested=0)
        return self.rows.shortfall(
            ReasonCode.WAITING_FOR_QUOTA, self.rows.request(cls), self.deserved[queue], self.rows.used(queue),
            queue=self.session.ledger.queues[queue].name,
        )  # fmt: skip

    preemptive = allocatable

    def reclaimable(self, reclaimer: int, candidates: Sequence[int]) -> Opinion:
        """While their queue uses more than it deserves, in the order given."""
        session, rows = self.session, self.rows
        asked = rows.request(session.cluster.class_of(reclaimer))
        left: dict[int, list[int]] = {}
        allowed, refused = [], {}
        for task in candidates:
            queue = session.queue_of(int(session.tasks.gang[task]))
            in_use = left.setdefault(queue, rows.used(queue)) if queue >= 0 else []
            held = rows.of_task(task)
            if queue >= 0 and self._in_excess(queue, in_use, held, asked):
                left[queue] = [a - b for a, b in zip(in_use, held, strict=True)]
                allowed.append(task)
            else:
                refused[task] = Rule.DESERVED.text()
        return Opinion(frozenset(allowed), refused)

    def _in_excess(self, queue: int, in_use: list[int], held: list[int], asked: list[int]) -> bool:
        matters = (
            [True] * len(held) if self.session.compat else [h > 0 and a > 0 for h, a in zip(held, asked, strict=True)]
        )
        rows = zip(in_use, self.deserved[queue], matters, strict=True)
        return any(used > deserved for used, deserved, counts in rows if counts)

    def unified_evictable(self, reclaimer: int, candidates: Sequence[int]) -> Opinion:
        """Inside the reclaimer's queue all candidates, elsewhere as for reclaim; upstream has no opinion."""
        session = self.session
        if session.compat:
            return Opinion(None)
        own = session.queue_of(int(session.tasks.gang[reclaimer]))
        if all(session.queue_of(int(session.tasks.gang[task])) == own for task in candidates):
            return Opinion(frozenset(candidates))
        return self.reclaimable(reclaimer, candidates)
