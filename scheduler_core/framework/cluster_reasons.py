"""Why the cluster has no place for a gang that its quota lets in: one code, its numbers and what is short.

First each kind of member is looked at as if the others were not there. Where each would fit, the members are placed one
after another in a statement that is discarded: the first one that finds no place shows what its mates leave too little
of (a port, a node without one of them, the last card)."""

from typing import NamedTuple

from scheduler_core.framework.holders import Holders
from scheduler_core.framework.room import Lack, Room
from scheduler_core.framework.session import Session
from scheduler_core.framework.statement import Statement
from scheduler_core.model.reason import ReasonCode, ReasonNumbers
from scheduler_core.model.resources import MILLI
from scheduler_core.state.status import PIPELINED

# Nodes that the rehearsals of one session may look at in all; a gang that comes later is judged kind by kind.
_MOST_LOOKS = 2_000_000


class Found(NamedTuple):
    """Something is short. ``together``: not of one kind of member alone, only of all of them together."""

    code: ReasonCode
    numbers: ReasonNumbers
    together: bool = False


class Rehearsed(NamedTuple):
    """What came of placing a gang: ``lack`` of the first member without a place, and how it was refused. ``fits``: all
    members found a place. ``task``: the first that did not. ``nodes``: refused nodes by reason. ``placed``: how many
    members found one before it."""

    fits: bool
    task: int = -1
    lack: Lack | None = None
    nodes: dict[str, int] | None = None
    placed: int = 0


class ClusterReasons:
    """Answers for the gangs of one session, from its tables at the end."""

    def __init__(self, session: Session, holders: Holders) -> None:
        self._session, self._holders = session, holders
        self._shared: Room | None = None
        self._looks = 0

    def room(self, gang: int, tasks: list[int]) -> Room:
        """The room for some tasks of a gang, beside what its other members are promised."""
        session = self._session
        if session.gangs.waiting(gang):
            asking = set(tasks)
            keep = [task for task in session.gangs.with_status(gang, PIPELINED) if task not in asking]
            if keep:
                return Room(session, keep)
        if self._shared is None:
            self._shared = Room(session)
        return self._shared

    def find(self, gang: int, tasks: list[int], position: int) -> Found | Rehearsed:
        """Code and numbers where something is short; else what the rehearsal has shown."""
        room = self.room(gang, tasks)
        missing = room.missing_cards(tasks)
        if missing is not None:
            name, cards, requested, total, free = missing
            numbers = ReasonNumbers(
                resource=name, requested=requested / MILLI, limit=total / MILLI, free=free / MILLI,
                short=(requested - free) / MILLI, holders=self._holders.in_use(name, cards, but=gang),
                position=position,
            )  # fmt: skip
            return Found(ReasonCode.WAITING_FOR_CARDS, numbers)
        lack = room.lack(tasks)
        if lack is not None:
            task = next(task for task in tasks if int(self._session.tasks.cls[task]) == lack.cls.index)
            return Found(*self._told(gang, room, lack, tasks, position, room.refused_nodes(task), 0))
        rehearsed = self.rehearse(gang, tasks)
        if rehearsed.lack is not None and rehearsed.nodes is not None:
            told = self._told(gang, room, rehearsed.lack, tasks, position, rehearsed.nodes, rehearsed.placed)
            return Found(*told, together=True)
        return rehearsed

    def _told(
        self, gang: int, room: Room, lack: Lack, tasks: list[int], position: int, nodes: dict[str, int], placed: int
    ) -> tuple[ReasonCode, ReasonNumbers]:
        if lack.code is ReasonCode.WAITING_FOR_RESOURCES:
            requested = room.requested(tasks, lack.resource)
            return lack.code, ReasonNumbers(
                resource=lack.resource, requested=requested, free=max(0.0, requested - lack.short), short=lack.short,
                holders=self._holders.in_use(lack.resource, (), but=gang), position=position, nodes=nodes,
            )  # fmt: skip
        resource, requested, free = room.asked(tasks)
        short = lack.short
        if lack.code is ReasonCode.NO_NODE_MATCHES:
            short = requested - (room.asked(tasks[:placed])[1] if placed else 0.0)
        return lack.code, ReasonNumbers(
            resource=resource, requested=requested, free=free, short=short, position=position, nodes=nodes
        )

    def behind(self, gang: int, tasks: list[int], rehearsed: Rehearsed, position: int) -> ReasonNumbers | None:
        """The numbers of a gang whose room is promised to others; None where nothing is."""
        room = self.room(gang, tasks)
        if rehearsed.fits or not room.promised_to_others(tasks):
            return None
        resource, requested, free = room.asked(tasks)
        placed = room.asked(tasks[: rehearsed.placed])[1] if rehearsed.placed else 0.0
        return ReasonNumbers(
            resource=resource,
            requested=requested,
            free=free,
            short=requested - placed,
            position=position,
            nodes=room.refused_nodes(tasks[0] if rehearsed.task < 0 else rehearsed.task),
        )

    def rehearse(self, gang: int, tasks: list[int]) -> Rehearsed:
        """Place the waiting tasks of a gang one after another, and undo all of it. O(tasks x nodes), bounded for the
        whole session."""
        session = self._session
        statement = session.statement()
        try:
            for number, task in enumerate(tasks):
                self._looks += len(session.nodes)
                if self._looks > _MOST_LOOKS:
                    return Rehearsed(fits=False, placed=number)
                if session.tasks.status[task] == PIPELINED:
                    continue
                if place(session, statement, task):
                    continue
                room = Room(session, session.gangs.with_status(gang, PIPELINED))
                return Rehearsed(False, task, room.lack([task]), room.refused_nodes(task), number)
        finally:
            statement.discard()
        return Rehearsed(fits=True, placed=len(tasks))


def place(session: Session, statement: Statement, task: int) -> bool:
    """Give a task the best place that it has now or once what leaves has left; False where there is none."""
    cls = session.cluster.class_of(task)
    spot = session.candidates.best(cls, [True] * max(1, len(cls.cards)), now=True, future=True, task=task)
    if spot is None:
        return False
    (statement.allocate if spot.now else statement.pipeline)(task, spot.node, spot.card, spot.indices)
    return True
