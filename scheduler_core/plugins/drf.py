"""Plugin ``drf``: the gang with the smaller dominant share goes first.

Extension points: job_order, preemptable; with ``enableHierarchy`` also queue_order and reclaimable, over the tree that
the annotations ``volcano.sh/hierarchy`` (``root/sci/dev``) and ``volcano.sh/hierarchy-weights`` (``1/2/8``) of the
queues draw, and job_problem for annotations that cannot be read. No arguments. Not together with proportion when
hierarchical. Units: milli-cores, MiB, milli-cards.
Source: volcano-semantics 4.4.

On purpose different from upstream: each card type is a resource of its own, so that the last H200 weighs more than one
of many V100; members of one gang are no matter of shares between them; victims of a reclaim are counted together, so
that no more are evicted than shift the balance; a queue without the annotations is below the root with its own weight;
of two queues that are equal on all levels that both have the one with the shorter path goes first, as some total order.
With ``compatibility: volcano`` cards count by their Kubernetes resource and the others are as upstream too, but for the
place of queues without annotations."""

from collections.abc import Sequence
from fractions import Fraction
from typing import ClassVar

import numpy as np

from scheduler_core.algorithms.dominant_share import dominant_share, may_take
from scheduler_core.algorithms.hierarchical_share import CommonLevels, Key, ShareTree, read_path
from scheduler_core.framework.combine import Opinion
from scheduler_core.framework.forms import Form, GangShare, Suspects
from scheduler_core.framework.plugin import Plugin
from scheduler_core.framework.resource_rows import ResourceRows
from scheduler_core.framework.session import Session
from scheduler_core.model.queue import Queue
from scheduler_core.model.rules import Rule
from scheduler_core.state.status import PENDING, Ints

HIERARCHY = "volcano.sh/hierarchy"
WEIGHTS = "volcano.sh/hierarchy-weights"


class Drf(Plugin):
    name: ClassVar[str] = "drf"
    guards: ClassVar[frozenset[str]] = frozenset({"reclaimable"})
    excludes: ClassVar[tuple[tuple[str, str], ...]] = (("hierarchy", "proportion"),)

    def open(self, session: Session) -> None:
        """Read the tree; shares are found when asked for."""
        super().open(session)
        self._rows = ResourceRows(session, card_types=not session.compat)
        self._shares: dict[int, tuple[int, Fraction]] = {}
        self.compares_queues = self._hierarchical = self.switches.get("hierarchy", False)
        self._tree: ShareTree | None = None
        self._seen: Ints = np.zeros(0, dtype=np.int64)
        self._problems: dict[int, str] = {}
        self._paths: dict[int, tuple[tuple[str, float], ...]] = {}
        if self._hierarchical:
            for q, queue in enumerate(session.ledger.queues):
                self._paths[q] = self._path(q, queue)

    def _path(self, number: int, queue: Queue) -> tuple[tuple[str, float], ...]:
        text, weights = queue.annotations.get(HIERARCHY), queue.annotations.get(WEIGHTS)
        if text is not None or weights is not None:
            try:
                return read_path(text or "", weights or "")
            except ValueError as error:
                self._problems[number] = f"queue {queue.name}: annotations {HIERARCHY} and -weights: {error}"
        return ((queue.name, float(queue.weight)),)

    def job_problem(self, gang: int) -> str | None:
        return self._problems.get(self.session.queue_of(gang))

    def share(self, gang: int) -> Fraction:
        """Dominant share of a gang; kept until its members change."""
        version = int(self.session.gangs.versions[gang])
        known = self._shares.get(gang)
        if known is None or known[0] != version:
            known = self._shares[gang] = (version, dominant_share(self._rows.of_gang(gang), self._rows.total))
        return known[1]

    def job_order(self, gang: int) -> tuple[float]:
        """The smaller share first; one division that is rounded correctly."""
        return (float(self.share(gang)),)

    def compiled_form(self, point: str) -> Sequence[Form] | None:
        """A gang's share; of queues only a tree has something to say."""
        if point == "job_order":
            return [GangShare(self._rows)] if self._rows.exact() else None
        if point == "queue_order" and not self._hierarchical:
            return []
        if point == "job_problem" and not self._problems:
            return [Suspects(np.zeros(len(self.session.gangs), dtype=np.bool_))]
        return None

    def preemptable(self, preemptor: int, candidates: Sequence[int]) -> Opinion:
        """Members of gangs that still have no smaller share once they and those before them have left."""
        session, rows, total = self.session, self._rows, self._rows.total
        tasks = session.tasks
        own = int(tasks.gang[preemptor])
        mine = dominant_share([a + b for a, b in zip(rows.of_gang(own), rows.of_task(preemptor), strict=True)], total)
        left: dict[int, list[int]] = {}
        allowed, refused = [], {}
        for task in candidates:
            gang = int(tasks.gang[task])
            if gang == own and not session.compat:
                allowed.append(task)
                continue
            held = left[gang] if gang in left else rows.of_gang(gang)
            left[gang] = [a - b for a, b in zip(held, rows.of_task(task), strict=True)]
            if may_take(mine, dominant_share(left[gang], total)):
                allowed.append(task)
            else:
                refused[task] = Rule.SMALLER_SHARE.text()
        return Opinion(frozenset(allowed), refused)

    def queue_order(self, queue: int) -> tuple[tuple[Key, ...] | CommonLevels, ...]:
        """Level by level, of equal ones the shorter path first; no order without ``enableHierarchy``. Upstream compares
        the levels that both queues have, and leaves the rest to the next plugin."""
        if not self._hierarchical:
            return ()
        key = self._settled().key(queue)
        return (CommonLevels(key) if self.session.compat else key,)

    def reclaimable(self, reclaimer: int, candidates: Sequence[int]) -> Opinion:
        """Those after whose move the reclaimer's queue would still be served first; no opinion without hierarchy."""
        if not self._hierarchical:
            return Opinion(None)
        session, rows, tree = self.session, self._rows, self._settled()
        own = int(session.tasks.gang[reclaimer])
        queue = session.queue_of(own)
        # What the tree counts for the trial, by gang; undone at the end.
        held = {own: [a + b for a, b in zip(rows.of_gang(own), rows.of_task(reclaimer), strict=True)]}
        tree.set_gang(queue, own, held[own], self._wanted(own))
        allowed, refused = [], {}
        for task in candidates:
            gang = int(session.tasks.gang[task])
            theirs = session.queue_of(gang)
            if theirs < 0:
                continue
            before = held[gang] if gang in held else rows.of_gang(gang)
            after = [a - b for a, b in zip(before, rows.of_task(task), strict=True)]
            tree.set_gang(theirs, gang, after, self._wanted(gang))
            tree.settle()
            taken = tree.before(queue, theirs)
            if taken:
                allowed.append(task)
            else:
                refused[task] = Rule.QUEUE_SMALLER_SHARE.text()
            held[gang] = after if taken and not session.compat else before
            tree.set_gang(theirs, gang, held[gang], self._wanted(gang))
        for gang in sorted(held):
            tree.set_gang(session.queue_of(gang), gang, rows.of_gang(gang), self._wanted(gang))
        tree.settle()
        return Opinion(frozenset(allowed), refused)

    def _settled(self) -> ShareTree:
        """The tree with every change of a gang since it was last asked for."""
        session = self.session
        versions = session.gangs.versions
        if self._tree is None:
            self._tree = ShareTree(self._rows.total)
            for queue, path in self._paths.items():
                self._tree.add_queue(queue, path)
            changed = list(range(len(session.gangs)))
        else:
            changed = np.flatnonzero(versions != self._seen).tolist()
        for gang in changed:
            queue = session.queue_of(gang)
            if queue >= 0:
                self._tree.set_gang(queue, gang, self._rows.of_gang(gang), self._wanted(gang))
        if changed or not len(self._seen):
            self._tree.settle()
            self._seen = versions.copy()
        return self._tree

    def _wanted(self, gang: int) -> list[int]:
        """What a gang holds and waits for."""
        total, session = self._rows.of_gang(gang), self.session
        for task in session.gangs.members(gang):
            if session.tasks.status[task] == PENDING:
                request = self._rows.request(session.cluster.class_of(task))
                total = [a + b for a, b in zip(total, request, strict=True)]
        return total
