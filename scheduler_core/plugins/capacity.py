"""Plugin ``capacity``: each queue has a ceiling, a line that it deserves and a part that stays free for it.

Extension points: queue_order, victim_queue_order, allocatable, preemptive, reclaimable, unified_evictable,
job_enqueueable, job_problem, quota_shortfall, queue_deserved, queue_share. Argument: ancestorReclaimLevel. With
``enableHierarchy`` queues form a tree by ``spec.parent``. Units: milli-cores, MiB, thousandths of other resources.
Source: volcano-semantics 4.9.

On purpose different from upstream, all against taking back and forth: a queue takes back only what keeps it at what it
deserves of everything that it asks for and names (upstream: of one such resource); a victim's queue must be beyond its
line in something that is asked for and that the victim gives. A parent that does not exist stops the gangs below it,
with the reason, and is a veto for victims there (upstream: the walk stops, and the next tier hands out victims); what a
child names above its parent is cut. A gang without minResources is measured by its pods; of equal branches the older
one goes first (upstream: the one with the oldest queue that gangs use). With ``compatibility: volcano`` as upstream.

In both modes a guarantee is kept from all who borrow together, on every level of the tree (upstream: from each alone,
among siblings). A queue that stays within its line is no borrower of what others use beyond theirs: where the policy
has an action that takes back, that counts as free for it."""

from collections.abc import Iterator, Sequence
from typing import ClassVar

import numpy as np

from scheduler_core.algorithms.hierarchy import QueueTree
from scheduler_core.algorithms.queue_entitlements import (
    Written,
    added,
    below_guarantee,
    beyond_line,
    entitlements,
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
        self._guaranteed = any(map(any, self.lines.guarantee))
        self.compares_queues = hierarchical or self._guaranteed
        self._level: int = self.values["ancestorReclaimLevel"]
        self._below = [self.tree.below(q) for q in range(len(queues))]
        root = self.tree.root
        if root >= 0:
            self._below[root] = list(range(len(queues)))
        self._above = [root] if root >= 0 and any(amount is not None for amount in written[root].capability) else []
        self._takes_back = not {"reclaim", "gangreclaim"}.isdisjoint(session.policy.actions)
        self._levels: dict[int, Level] = {}
        self._counts: dict[tuple[int, bool], list[int]] = {}
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
        self._forget_old()
        known = self._levels.get(queue)
        if known is None:
            spec = self.session.ledger.queues[queue]
            unnamed = all(line is None for line in self.lines.deserved[queue])
            born = self._first_leaf(queue) if self.session.compat else (spec.created, spec.name)
            known = self._levels[queue] = (self.queue_share(queue), unnamed, *born)
        return known

    def _forget_old(self) -> None:
        versions = self.session.ledger.versions
        if self._seen is None or not np.array_equal(self._seen, versions):
            self._levels, self._counts, self._seen = {}, {}, np.array(versions, dtype=np.int64)

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
        above = [at for at in (*self.tree.path(queue)[-2::-1], self.tree.root) if at >= 0]
        for known in (self.session.ledger.queues[at] for at in above):
            if known.problem:
                return f"queue {known.name} above it: {known.problem}"
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
        queue, asked = self.session.queue_of(gang), self.rows.minimum(gang, demand)
        if not empty:
            return self._below_ceilings(queue, asked)
        for at in self._ceilings(queue):
            short = self._shortfall(at, asked, self.lines.real[at], [0] * len(self.rows))
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
        return self._closed(queue) or self._below_ceilings(queue, self.rows.request(cls))

    def _below_ceilings(self, queue: int, asked: list[int]) -> Shortfall | None:
        for at, most, used in self._limits(queue, asked):
            short = self._shortfall(at, asked, most, used)
            if short is not None:
                return short
        return None

    def _ceilings(self, queue: int) -> list[int]:
        """The queue and all above it, the root where a ceiling of all queues together is written on it."""
        return self.tree.path(queue)[::-1] + self._above

    def _limits(self, queue: int, asked: list[int]) -> Iterator[tuple[int, list[int], list[int]]]:
        """The queue and each above it: the most that it may use now, and what it uses. The most is its ceiling, and no
        part of what is guaranteed beside it or to other branches inside it; what is within a guarantee is no loan."""
        real, guarantee, tree = self.lines.real, self.lines.guarantee, self.tree
        entitled = self._guaranteed and self._takes_back and self._entitled(queue, asked)
        none = promised = [0] * len(asked)
        safe, held = [False] * len(asked), self._used(queue)
        self._forget_old()
        for at in self._ceilings(queue):
            most, used, above = real[at], self._used(at), tree.parent[at]
            if self._guaranteed and at != tree.root:
                siblings = [other for other in (tree.children[above] if above >= 0 else tree.top) if other != at]
                beside = added(none, *(self._count(other, entitled) for other in siblings))
                promised = added(promised, *(guarantee[other] for other in siblings))
                room = real[above] if above >= 0 else real[tree.root] if tree.root >= 0 else self.rows.total
                most, least = list(most), guarantee[at]
                for row, want in enumerate(asked):
                    if promised[row] and not safe[row]:
                        lent = max(room[row] - beside[row], least[row]) - (held[row] - used[row])
                        most[row] = min(most[row], lent)
                    safe[row] |= held[row] + want <= least[row]
                held = added(held, beside, self.rows.used(above) if above >= 0 else none)
            yield at, most, used

    def _count(self, queue: int, entitled: bool) -> list[int]:
        """What a queue keeps from others: of it and of each below it the larger of its guarantee and what is used."""
        if not entitled and not any(self.lines.guarantee[queue]):
            return self._used(queue)
        known = self._counts.get((queue, entitled))
        if known is None:
            used, spec = self.rows.used(queue), self.session.ledger.queues[queue]
            if entitled and spec.reclaimable:
                used = [min(use, line or 0) for use, line in zip(used, self.lines.deserved[queue], strict=True)]
            parts = added(used, *(self._count(child, entitled) for child in self.tree.children[queue]))
            known = self._counts[queue, entitled] = list(map(max, parts, self.lines.guarantee[queue]))
        return known

    def preemptive(self, queue: int, cls: TaskClass, card: int) -> Shortfall | None:
        """And within the line of the queue, or of one of the ancestors that may lend theirs."""
        asked = self.rows.request(cls)
        short = self._closed(queue) or self._below_ceilings(queue, asked)
        if short is not None or self._entitled(queue, asked):
            return short
        used, line = self._used(queue), self.lines.deserved[queue]
        limits = [amount or 0 for amount in line]
        return self._shortfall(queue, asked, limits, used)

    def _entitled(self, queue: int, asked: list[int]) -> bool:
        near = self.tree.path(queue)[::-1][: self._level + 1]
        lines, one = self.lines.deserved, self.session.compat
        return any(within_line(asked, self._used(at), lines[at], one=one) for at in near)

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
