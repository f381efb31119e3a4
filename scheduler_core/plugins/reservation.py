"""Plugin ``reservation``: keeps nodes free for one gang that would otherwise starve.

Extension points: target_job, reserved_nodes, task_predicate, job_enqueueable. Arguments: seconds.
Source: document 002, contracts 4 (002). Used by actions ``elect`` and ``reserve``; without them it does nothing.

The target is the gang of the highest priority, then the one that waits longest; only room may be what it lacks. The
group of nodes is large enough for it once everything has left that ends by itself: services and pods that no gang
holds stay. Nodes that are freest now are locked first, and a locked node stays locked while it is needed. They take
no gang but the target; the target may go anywhere.

On purpose different from upstream's plugin (removed in v1.9): a whole group is locked at once instead of one node a
session, nodes are chosen by what fits instead of by idle sums, and a gang that its quota keeps waiting is no target.
In an earlier tier than the plugins that count the cluster's room it also lets the target be admitted past them."""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from scheduler_core.algorithms.node_group import Emptied, Need, choose_group, served
from scheduler_core.framework.combine import Ballot
from scheduler_core.framework.demand import Demand
from scheduler_core.framework.forms import Form, Silent, Suspects
from scheduler_core.framework.plugin import Argument, Plugin, number
from scheduler_core.framework.session import Session
from scheduler_core.model.node_refusal import NodeRefusal
from scheduler_core.model.pod import ServiceType
from scheduler_core.state.status import HOLDS, PIPELINED, Bools, Ints
from scheduler_core.state.task_class import TaskClass


class Reservation(Plugin):
    name: ClassVar[str] = "reservation"
    arguments: ClassVar[tuple[Argument, ...]] = (
        number("waitingSeconds", 0.0, (0.0, 31_536_000.0), "a gang is elected only after it has waited so long"),
    )

    def open(self, session: Session) -> None:
        """Nothing is read before the first question."""
        super().open(session)
        self._locked: tuple[tuple[str, ...], int, Bools] | None = None
        self._staying: tuple[int, Ints, dict[tuple[int, int], int]] | None = None

    def target_job(self, gangs: Sequence[int]) -> int | None:
        """The gang to keep nodes for, or None when room would help none. ``gangs``: those that wait. O(gangs log gangs
        + nodes) where the first one can be served."""
        session, patience = self.session, float(self.values["waitingSeconds"])

        def order(gang: int) -> tuple[int, float, str]:
            return -session.group(gang).priority, session.waiting_since(gang), session.gangs.names[gang]

        for gang in sorted(gangs, key=order):
            if session.now - session.waiting_since(gang) >= patience and self.reserved_nodes(gang, ()) is not None:
                return gang
        return None

    def reserved_nodes(self, gang: int, kept: Sequence[str]) -> list[str] | None:
        """Nodes that are enough for what the gang lacks to start, those already ``kept`` for it first. None when its
        quota has no room, no node will ever have what it asks for, or no set of nodes would do; empty while its pods
        are not there yet."""
        session = self.session
        if self._over_quota(gang):
            return None
        tasks = session.pending_tasks(gang)[: session.needed(gang)]
        counts: dict[int, int] = {}
        for task in tasks:
            index = int(session.tasks.cls[task])
            counts[index] = counts.get(index, 0) + 1
        if not counts:
            return []
        classes = [session.cluster.classes[index] for index in counts]
        if any(cls.missing or cls.oversize_share for cls in classes):
            return None
        needs = [_need(cls, count) for cls, count in zip(classes, counts.values(), strict=True)]
        admits = np.stack([session.candidates.view(cls).allowed for cls in classes])
        return choose_group(self._in_order(needs, admits, frozenset(kept)), needs)

    def task_predicate(self, task: int) -> tuple[str, Bools, Bools] | None:
        """Locked nodes take the target alone, until all of its minimum has a place."""
        election = self.session.election
        if election is None or not election.nodes:
            return None
        gang = int(self.session.tasks.gang[task])
        if gang >= 0 and self.session.gangs.names[gang] == election.gang:
            return None
        if self._locked is None or self._locked[0] is not election.nodes:
            mask = np.ones(len(self.session.nodes), dtype=np.bool_)
            index, names = self.session.axes.node_index, self.session.gangs.names
            mask[[index[name] for name in election.nodes if name in index]] = False
            target = names.index(election.gang) if election.gang in names else -1
            self._locked = election.nodes, target, mask
        _, target, mask = self._locked
        waits = target >= 0 and self.session.needed(target) > 0
        # Kept for a while only: in the end the nodes are free again.
        return (NodeRefusal.RESERVED, mask, np.ones_like(mask)) if waits else None

    def compiled_form(self, point: str) -> Sequence[Form] | None:
        """Without an election no task is refused anything, and no gang let in."""
        if self.session.election is None:
            nobody: Bools = np.zeros(len(self.session.gangs), dtype=np.bool_)
            if point == "task_predicate":
                return [Suspects(nobody)]
            if point == "job_enqueueable":
                return [Silent(nobody)]
        return None

    def job_enqueueable(self, gang: int, demand: Demand) -> Ballot:
        """The target is let in: its room is what is being kept."""
        election = self.session.election
        elected = election is not None and self.session.gangs.names[gang] == election.gang
        return Ballot.PERMIT if elected else Ballot.ABSTAIN

    def _over_quota(self, gang: int) -> bool:
        session = self.session
        if session.hooks.first("quota_shortfall", gang, session.minimum(gang)) is not None:
            return True
        queue, refusal = session.queue_of(gang), session.hooks.refusal
        return any(
            all(refusal("allocatable", queue, cls, card) is not None for card in cls.cards or (-1,))
            for cls in session.classes_of(gang)
        )

    def _in_order(self, needs: list[Need], admits: Bools, kept: frozenset[str]) -> list[Emptied]:
        """Nodes that could serve one of the needs: those already kept, those freest now, names."""
        session = self.session
        nodes, cards = session.nodes, session.cards
        stays, touched = self._what_stays()
        wanted = sorted({card for need in needs for card in need.cards})
        counts = [need.count for need in needs]
        found = []
        for node in np.flatnonzero(admits.any(axis=0)).tolist():
            name, may = session.axes.nodes[node], tuple(admits[:, node].tolist())
            there = {card: int(cards.count[card, node]) for card in wanted}
            empty = Emptied(
                name,
                tuple((nodes.allocatable[:, node] - stays[:, node]).tolist()),
                {card: count - touched.get((card, node), 0) for card, count in there.items()},
                may,
            )
            in_all = sum(served(empty, needs, counts))
            if not in_all:
                continue
            idle = Emptied(
                name,
                tuple(nodes.future[:, node].tolist()),
                {card: int(cards.whole_future[card, node]) for card in wanted},
                may,
            )
            at_once = sum(served(idle, needs, counts))
            free = sum(int(cards.left_future[card, node]) for card in wanted)
            found.append(((name not in kept, -at_once, -free, -in_all, name), empty))
        return [empty for _, empty in sorted(found, key=lambda entry: entry[0])]

    def _what_stays(self) -> tuple[Ints, dict[tuple[int, int], int]]:
        """int64 (R, N) held by what does not end by itself or is promised, and its cards by (type, node)."""
        session, tasks = self.session, self.session.tasks
        if self._staying is not None and self._staying[0] == len(session.nodes.log):
            return self._staying[1:]
        stays: Ints = np.zeros_like(session.nodes.used)
        held: dict[tuple[int, int], set[int]] = {}
        there = tasks.live & (HOLDS[tasks.status] | (tasks.status == PIPELINED)) & (tasks.node >= 0)
        for task in np.flatnonzero(there).tolist():
            gang = int(tasks.gang[task])
            ends = gang >= 0 and session.service_type(gang) is not ServiceType.INFERENCE
            if ends and tasks.status[task] != PIPELINED:
                continue
            node, card = int(tasks.node[task]), int(tasks.card[task])
            stays[:, node] += session.cluster.class_of(task).request
            if card >= 0:
                held.setdefault((card, node), set()).update(tasks.indices[task])
        touched = {place: len(indices) for place, indices in held.items()}
        self._staying = len(session.nodes.log), stays, touched
        return stays, touched


def _need(cls: TaskClass, count: int) -> Need:
    request = tuple((row, int(cls.request[row])) for row in cls.rows)
    return Need(request, cls.cards, cls.whole, cls.share, count)
