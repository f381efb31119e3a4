"""Plugin ``capacity``: each queue has a ceiling, a line that it deserves and a part that stays free for it.

Extension points: queue_order, victim_queue_order, allocatable, preemptive, reclaimable, unified_evictable,
job_enqueueable, job_problem, quota_shortfall, queue_deserved, queue_share. Argument: ancestorReclaimLevel. With
``enableHierarchy`` queues form a tree by ``spec.parent``. Units: milli-cores, MiB, thousandths of other resources.
Source: volcano-semantics 4.9.

On purpose different from upstream, all against taking back and forth: a queue takes back only what keeps it at what it
deserves of everything that it asks for and names (upstream: of one such resource); a victim's queue must be beyond its
line in something that is asked for and that the victim gives. A parent that does not exist stops the gangs below it,
with the reason, and is a veto for victims there (upstream: the walk stops, and the next tier hands out victims); what a
child names above its parent is cut. A guarantee is kept from all who borrow together (upstream: from each alone). A
gang without minResources is measured by its pods; of equal branches the older one goes first (upstream: the one with
the oldest queue that gangs use). With ``compatibility: volcano`` as upstream."""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from scheduler_core.algorithms.hierarchy import QueueTree
from scheduler_core.algorithms.queue_entitlements import (
    Written,
    below_guarantee,
    beyond_line,
    entitlements,
    free_of_others,
    within_line,
)
from scheduler_core.framework.combine import Ballot, Opinion
from scheduler_core.framework.demand import Demand, Shortfall
from scheduler_core.framework.forms import Form, RowCeilings, RowLimits, ShareKey, StaticKey, Suspects
from scheduler_core.framework.plugin import Argument, Plugin, number
from scheduler_core.framework.resource_rows import ResourceRows, columns, largest_share, unknown_card, waved
from scheduler_core.framework.session import Session
from scheduler_core.model.reason import ReasonCode
from scheduler_core.model.resources import Amount
from scheduler_core.model.rules import Rule
from scheduler_core.state.queue_ledger import NO_LIMIT
from scheduler_core.state.status import Ints
from scheduler_core.state.task_class import TaskClass

Level = tuple[float, bool, float, str]


class Capacity(Plugin):
    name: ClassVar[str] = "capacity"
    guards: ClassVar[frozenset[str]] = frozenset({"reclaimable", "unified_evictable"})
    arguments: ClassVar[tuple[Argument, ...]] = (
        number(
            "ancestorReclaimLevel", 0, (0, 100),
            "so many ancestors lend their line to a queue that takes back, and must be beyond it above a victim",
        ),
    )  # fmt: skip

    def open(self, session: Session) -> None:
        """Work out the tree and what each queue of it may have."""
        super().open(session)
        self.rows = rows = ResourceRows(session)
        queues = session.ledger.queues
        hierarchical = self.switches.get("hierarchy", False)
        self.tree = QueueTree([q.name for q in queues], [q.parent for q in queues], hierarchical=hierarchical)
        written = [
            Written(q.name, rows.capability(q), rows.written(q.guarantee), rows.written(q.deserved)) for q in queues
        ]
        self.lines = entitlements(self.tree, rows.total, written)
        self.compares_queues = hierarchical or any(map(any, self.lines.guarantee))
        self._level: int = self.values["ancestorReclaimLevel"]
        self._below = [self.tree.below(q) for q in range(len(queues))]
        root = self.tree.root
        if root >= 0:
            self._below[root] = list(range(len(queues)))
        self._above = [root] if root >= 0 and any(amount is not None for amount in written[root].capability) else []
        self._levels: dict[int, Level] = {}
        self._seen: Ints | None = None

    def compiled_form(self, point: str) -> Sequence[Form] | None:
        """By the lines of the queues, where there is no tree and the ledger has all resources."""
        session, rows, ledger = self.session, self.rows, self.session.ledger
        if point == "job_problem" and not self.compares_queues and not self.tree.problems:
            return [Suspects(np.zeros(len(session.gangs), dtype=np.bool_))]
        if self.compares_queues or self.tree.problems or not (rows.of_ledger and rows.exact()):
            return None
        if point == "job_enqueueable":
            return [RowCeilings(rows, columns(self.lines.real), rows.spent(), False, waved(session))]
        if point == "allocatable":
            return [RowLimits(rows, columns(self.lines.real))]
        if point == "queue_order":
            named = [any(line is not None for line in of_queue) for of_queue in self.lines.deserved]
            limits = columns([[NO_LIMIT if n is None else n for n in of_queue] for of_queue in self.lines.deserved])
            born = sorted(range(len(ledger)), key=lambda q: (ledger.queues[q].created, ledger.queues[q].name))
            place: Ints = np.argsort(np.array(born, dtype=np.int64))
            return [
                StaticKey(np.array([-queue.priority for queue in ledger.queues], dtype=np.int64)),
                ShareKey(limits, rows.sums, np.array([0.0 if one else 1.0 for one in named])),
                StaticKey(np.array([not one for one in named], dtype=np.int64)),
                StaticKey(place),
            ]
        return None

    # Orders -------------------------------------------------------------------------------------------------------

    def queue_order(self, queue: int) -> tuple[int, tuple[Level, ...]]:
        """Higher priority first, then by the branches below the common ancestor: the smaller share of its line."""
        return -self.session.ledger.queues[queue].priority, tuple(self._place(q) for q in self.tree.path(queue))

    def victim_queue_order(self, queue: int, reclaimer_queue: int) -> tuple[object, ...]:
        """Queues nearest in the tree first, then the other way round than they are served."""
        levels = tuple((-share, not unnamed) for share, unnamed, _, _ in map(self._place, self.tree.path(queue)))
        return -self.tree.common(queue, reclaimer_queue), self.session.ledger.queues[queue].priority, levels

    def _place(self, queue: int) -> Level:
        """Of a branch: share, whether it deserves nothing by name, then creation and name; kept until usage changes."""
        versions = self.session.ledger.versions
        if self._seen is None or not np.array_equal(self._seen, versions):
            self._levels, self._seen = {}, np.array(versions, dtype=np.int64)
        known = self._levels.get(queue)
        if known is None:
            spec = self.session.ledger.queues[queue]
            unnamed = all(line is None for line in self.lines.deserved[queue])
            born = self._first_leaf(queue) if self.session.compat else (spec.created, spec.name)
            known = self._levels[queue] = (self.queue_share(queue), unnamed, *born)
        return known

    def _first_leaf(self, queue: int) -> tuple[float, str]:
        """Upstream does not look at who of two equal branches is older: the oldest of the queues that gangs use is."""
        queues = self.session.ledger.queues
        leaves = [q for q in self._below[queue] if self.tree.leaf(q)] or [queue]
        return min((queues[q].created, queues[q].name) for q in leaves)

    def queue_share(self, queue: int) -> float:
        """Largest used part of its line; 1 for a queue without one."""
        line = self.lines.deserved[queue]
        if all(amount is None for amount in line):
            return 1.0
        return largest_share(self._used(queue), line)

    def queue_deserved(self, queue: int) -> Amount:
        return self.rows.amount(self.lines.deserved[queue])

    def _used(self, queue: int) -> list[int]:
        """In use in a queue and all below it."""
        return self.rows.used(self._below[queue])

    # Admission ----------------------------------------------------------------------------------------------------

    def job_problem(self, gang: int) -> str | None:
        """A place in the tree that cannot be used."""
        queue = self.session.queue_of(gang)
        if queue in self.tree.problems:
            return f"queue {self.session.ledger.queues[queue].name}: {self.tree.problems[queue]}"
        if self.session.compat and self.tree.problems:
            return min(self.tree.problems.values())
        if not self.tree.leaf(queue):
            return f"queue {self.session.ledger.queues[queue].name} has queues below it; gangs use one of those"
        return None

    def job_enqueueable(self, gang: int, demand: Demand) -> Ballot | Shortfall:
        """minimum + allocated + promised - elastic fits the ceilings of the queue and of all above it."""
        session, rows = self.session, self.rows
        queue = session.queue_of(gang)
        closed = self._closed(queue)
        if closed is not None:
            return closed
        if not self.tree.leaf(queue) or queue in self.tree.problems:
            return Ballot.REJECT
        if session.compat and session.group(gang).min_resources is None:
            return Ballot.PERMIT
        asked = rows.minimum(gang, demand)
        for at in self._ceilings(queue):
            below = self._below[at]
            used = [a - b for a, b in zip(rows.used(below), rows.elastic(below), strict=True)]
            short = self._shortfall(at, asked, self.lines.real[at], used, rows.promised(below))
            if short is not None:
                return short
        return unknown_card(ReasonCode.WAITING_FOR_QUOTA, demand, session.ledger.queues[queue].name) or Ballot.PERMIT

    def quota_shortfall(self, gang: int, demand: Demand, empty: bool = False) -> Shortfall | None:
        """What the ceilings lack now, or (``empty``) if nothing were used."""
        asked = self.rows.minimum(gang, demand)
        for at in self._ceilings(self.session.queue_of(gang)):
            used, most = ([0] * len(self.rows), self.lines.real[at]) if empty else (self._used(at), self._most(at))
            short = self._shortfall(at, asked, most, used)
            if short is not None:
                return short
        return None

    def _shortfall(
        self, queue: int, asked: list[int], limits: list[int], used: list[int], promised: list[int] | None = None
    ) -> Shortfall | None:
        name = self.session.ledger.queues[queue].name
        return self.rows.shortfall(ReasonCode.WAITING_FOR_QUOTA, asked, limits, used, promised, queue=name)

    def _closed(self, queue: int) -> Shortfall | None:
        """A queue takes new work while it and all above it are open."""
        if queue >= 0 and all(self.session.queue_is_open(at) for at in self.tree.path(queue)):
            return None
        return Shortfall(code=ReasonCode.QUEUE_CLOSED, resource="", requested=0)

    # Allocation ---------------------------------------------------------------------------------------------------

    def allocatable(self, queue: int, cls: TaskClass, card: int) -> Shortfall | None:
        """One more task stays below the ceilings of the queue and of all above it."""
        closed = self._closed(queue)
        if closed is not None:
            return closed
        return self._below_ceilings(queue, cls, taking_back=False)

    def _below_ceilings(self, queue: int, cls: TaskClass, *, taking_back: bool) -> Shortfall | None:
        """``taking_back``: what others have borrowed of a guarantee is about to go."""
        asked = self.rows.request(cls)
        for at in self._ceilings(queue):
            most = self.lines.real[at] if taking_back else self._most(at)
            short = self._shortfall(at, asked, most, self._used(at))
            if short is not None:
                return short
        return None

    def _ceilings(self, queue: int) -> list[int]:
        """The queue and all above it, the root where a ceiling of all queues together is written on it."""
        return self.tree.path(queue)[::-1] + self._above

    def _most(self, queue: int) -> list[int]:
        """The most that a queue may use now: its ceiling, and no part of what its siblings are guaranteed."""
        real, guarantee, root = self.lines.real, self.lines.guarantee, self.tree.root
        above = self.tree.parent[queue]
        siblings = self.tree.children[above] if above >= 0 else self.tree.top
        others = [sibling for sibling in siblings if sibling != queue]
        if queue == root or not any(any(guarantee[sibling]) for sibling in others):
            return real[queue]
        room = real[above] if above >= 0 else real[root] if root >= 0 else self.rows.total
        held = [(self._used(sibling), guarantee[sibling]) for sibling in others]
        return list(map(min, real[queue], free_of_others(room, held, guarantee[queue])))

    def preemptive(self, queue: int, cls: TaskClass, card: int) -> Shortfall | None:
        """And within the line of the queue, or of one of the ancestors that may lend theirs."""
        short = self._closed(queue) or self._below_ceilings(queue, cls, taking_back=True)
        if short is not None:
            return short
        asked = self.rows.request(cls)
        near = self.tree.path(queue)[::-1][: self._level + 1]
        if any(within_line(asked, self._used(at), self.lines.deserved[at], one=self.session.compat) for at in near):
            return None
        used, line = self._used(queue), self.lines.deserved[queue]
        limits = [amount or 0 for amount in line]
        return self._shortfall(queue, asked, limits, used)

    # Victims ------------------------------------------------------------------------------------------------------

    def reclaimable(self, reclaimer: int, candidates: Sequence[int]) -> Opinion:
        """Those whose queue stays above its guarantee and was beyond its line, in the order given."""
        session, rows = self.session, self.rows
        tasks = session.tasks
        own = session.queue_of(int(tasks.gang[reclaimer]))
        if own in self.tree.problems or (session.compat and self.tree.problems):
            return Opinion(frozenset(), dict.fromkeys(candidates, Rule.TREE_BROKEN.text()))
        asked = rows.request(session.cluster.class_of(reclaimer))
        left: dict[int, list[int]] = {}
        allowed, refused = [], {}
        for task in candidates:
            queue = session.queue_of(int(tasks.gang[task]))
            held = rows.of_task(task)
            rule = self._rule(queue, own, held, asked, left)
            if rule is not None:
                refused[task] = rule
                continue
            allowed.append(task)
            for at in self.tree.path(queue):
                left[at] = [a - b for a, b in zip(left.get(at) or self._used(at), held, strict=True)]
        return Opinion(frozenset(allowed), refused)

    def _rule(self, queue: int, own: int, held: list[int], asked: list[int], left: dict[int, list[int]]) -> str | None:
        if queue < 0 or queue in self.tree.problems:
            return Rule.QUEUE_UNUSABLE.text()
        if not any(have > 0 and want > 0 for have, want in zip(held, asked, strict=True)):
            return Rule.NOTHING_ASKED_FOR.text()
        path = self.tree.path(queue)
        # The queue itself, and of those above it the ones that are not the reclaimer's too, as far as the level says.
        tested = path[self.tree.common(queue, own) :][::-1][: self._level + 1] or [queue]
        for at in tested:
            used = left.get(at) or self._used(at)
            if below_guarantee(used, self.lines.guarantee[at], held):
                return Rule.BELOW_GUARANTEE.text()
            if not beyond_line(used, self.lines.deserved[at], held, asked, other=self.session.compat):
                return Rule.DESERVED.text()
        return None

    def unified_evictable(self, reclaimer: int, candidates: Sequence[int]) -> Opinion:
        """Inside the reclaimer's queue all candidates, elsewhere as for reclaim."""
        session = self.session
        own = session.queue_of(int(session.tasks.gang[reclaimer]))
        if all(session.queue_of(int(session.tasks.gang[task])) == own for task in candidates):
            return Opinion(frozenset(candidates))
        return self.reclaimable(reclaimer, candidates)
