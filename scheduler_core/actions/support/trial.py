"""What comes of evicting pods for a gang: evict, place its tasks, look, and take it all back. Everything that may keep
a task from running is asked again after the eviction: quota, predicates, single cards, and for a gang that waits
outside the vote that lets it in."""

from collections.abc import Iterable, Sequence

import msgspec

from scheduler_core.actions.support.missing_room import MissingRoom
from scheduler_core.actions.support.placement import place
from scheduler_core.algorithms.smallest_set import go_together
from scheduler_core.algorithms.victims import Unit
from scheduler_core.framework.session import Session
from scheduler_core.framework.statement import Statement
from scheduler_core.model.podgroup import GangPhase


class Outcome(msgspec.Struct, frozen=True, gc=False, order=True):
    """Whether the gang could run, and how many of the tasks found a place; greater is better."""

    runs: bool
    placed: int


NOTHING = Outcome(runs=False, placed=0)


class Trial:
    """Trials for the waiting tasks of one gang, on top of what a statement did before."""

    def __init__(self, session: Session, statement: Statement, gang: int, tasks: Sequence[int]) -> None:
        self._session, self._statement, self._gang, self._tasks = session, statement, gang, tuple(tasks)
        self.tried = 0

    def outcome(self, units: Iterable[Unit]) -> Outcome:
        """What taking these units would bring; nothing stays changed."""
        point = self._statement.checkpoint()
        placed = self.carry_out(units)
        outcome = NOTHING if placed is None else Outcome(self.runs(), len(placed))
        self._statement.rollback(point)
        return outcome

    def would_run(self) -> bool:
        """The gang finds room as things are, whether it is let in or not; nothing stays changed."""
        point = self._statement.checkpoint()
        self._place()
        answer = self.runs()
        self._statement.rollback(point)
        return answer

    def carry_out(self, units: Iterable[Unit]) -> list[int] | None:
        """Evict the units and place what fits; the tasks that found a place, None where the gang is not let in."""
        self.tried += 1
        self.evict(units)
        if not self._let_in():
            return None
        return self._place()

    def evict(self, units: Iterable[Unit]) -> None:
        leaving = [task for unit in units for task in unit.members]
        for task in sorted(leaving, key=self._session.tasks.keys.__getitem__):
            self._statement.evict(task)

    def runs(self) -> bool:
        """The gang could run with what it has now, promises counted."""
        return self._session.is_pipelined(self._gang) and not self._session.short_of_start(self._gang)

    def start(self, pool: Sequence[Unit], goal: Outcome) -> list[Unit] | None:
        """A set that brings the goal, found task by task: the cheapest units of one node, then what quota lacks."""
        point = self._statement.checkpoint()
        room = MissingRoom(self._session, pool)
        chosen: list[Unit] = []
        failed: set[int] = set()
        for task in self._tasks:
            cls = int(self._session.tasks.cls[task])
            if cls in failed or place(self._session, self._statement, task) is not None:
                continue
            if not self._make_room(task, pool, room, chosen):
                failed.add(cls)
        self._statement.rollback(point)
        return chosen if self.outcome(chosen) >= goal else None

    def _make_room(self, task: int, pool: Sequence[Unit], room: MissingRoom, chosen: list[Unit]) -> bool:
        """Add units to ``chosen`` and evict them until the task has a place; False leaves both as they were."""
        point, before = self._statement.checkpoint(), len(chosen)
        for offer in room.offers(task, chosen):
            chosen += offer
            self.evict(offer)
            if place(self._session, self._statement, task) is not None:
                return True
            # There is room, and still it may not: its queue has no quota left, so more of the queue has to go.
            for unit in sorted(pool, key=lambda u: (u.level, u.work, u.size, u.name)):
                if unit not in chosen and room.same_kind(task, unit) and go_together(chosen, unit):
                    chosen.append(unit)
                    self.evict([unit])
                    if place(self._session, self._statement, task) is not None:
                        return True
            self._statement.rollback(point)
            del chosen[before:]
        return False

    def _place(self) -> list[int]:
        """Place what fits, in order; classes that found nothing are not tried again."""
        placed: list[int] = []
        failed: set[int] = set()
        for task in self._tasks:
            cls = int(self._session.tasks.cls[task])
            if cls in failed:
                continue
            if place(self._session, self._statement, task) is None:
                failed.add(cls)
            else:
                placed.append(task)
        return placed

    def _let_in(self) -> bool:
        """A gang that is not admitted would be, now."""
        session, gang = self._session, self._gang
        if session.phase[gang] is not GangPhase.PENDING:
            return True
        return session.hooks.vote("job_enqueueable", gang, session.minimum(gang)) is None
