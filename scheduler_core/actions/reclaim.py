"""Action ``reclaim``: a gang that is entitled to more takes it back from other queues, whole gangs at a time.

In steps: which tasks may ask (quota) -> plain placement first (pitfall 6) -> who may be taken (hard rules, votes) ->
the cheapest set over all nodes (contracts 3.1) -> evict and place in a statement, with quota, predicates and single
cards tested again -> keep it only if the gang can run with it. Source: volcano-semantics 3.5, contracts 3.1 and 3.2.
"""

from __future__ import annotations

from typing import ClassVar

from scheduler_core.actions.allocate import hold_back, is_candidate
from scheduler_core.actions.support.admission import renew_promise
from scheduler_core.actions.support.attempt import Attempt, record
from scheduler_core.actions.support.placement import place
from scheduler_core.actions.support.quota_room import quota_room
from scheduler_core.actions.support.reach import Reach
from scheduler_core.actions.support.reservations import reserve
from scheduler_core.actions.support.rotation import Rotation
from scheduler_core.actions.support.upstream_reclaim import reclaim_as_upstream
from scheduler_core.actions.support.victims import Victims
from scheduler_core.algorithms.victims import Puzzle, Room, Unit
from scheduler_core.framework.plugin import Action, Argument
from scheduler_core.framework.session import Session
from scheduler_core.model.pod import ServiceType
from scheduler_core.state.status import Bools, TaskStatus
from scheduler_core.state.task_class import TaskClass


class Reclaim(Action):
    """Takes back across queues."""

    name: ClassVar[str] = "reclaim"
    arguments: ClassVar[tuple[Argument, ...]] = (
        Argument(
            name="reservationSeconds",
            type="float",
            default=120.0,
            minimum=1.0,
            maximum=86400.0,
            doc="how long freed room stays promised to the gang it was freed for; more than grace + controller delay",
        ),
    )

    def execute(self, session: Session) -> None:
        """Queues and gangs take turns; each gang is tried once."""
        self._victims, self._reach = Victims(session), Reach(session)
        # What nobody could be taken for: for ever in this action (room, quota and candidates only become fewer), or
        # at one place of the log where the attempt itself had moved something that may be undone.
        self._hopeless: dict[tuple[int, ServiceType, int], int | None] = {}
        starving = (g for g in session.gangs.with_tasks_to_place() if self._starves(session, g))
        if session.compat:
            reclaim_as_upstream(session, starving)
            return
        rotation = Rotation(session, starving)
        while (queue := rotation.best_queue()) is not None:
            if session.hooks.any_true("overused", queue):
                rotation.drop(queue)
                continue
            self._reclaim_for(session, rotation.pop(queue))

    def _starves(self, session: Session, gang: int) -> bool:
        if not session.gangs.pending(gang) or session.hooks.refusal("reclaimer", gang) is not None:
            return False
        if not is_candidate(session, gang):
            return False
        return session.hooks.first_tier_all("job_starving", gang)

    def _reclaim_for(self, session: Session, gang: int) -> None:
        """One gang: all its waiting tasks in one statement, kept if the gang can run with what it got."""
        attempt = Attempt(gang, session.statement())
        by_class: dict[int, list[int]] = {}
        for task in session.pending_tasks(gang):
            pod = session.tasks.pod(task)
            if not session.cluster.class_of(task).best_effort and pod.preemption_policy != "Never":
                by_class.setdefault(int(session.tasks.cls[task]), []).append(task)
        for index, tasks in by_class.items():
            self._reclaim_class(session, attempt, session.cluster.classes[index], tasks)
        self._reprieve(session, attempt)
        kept = bool(attempt.placed) and session.is_pipelined(gang) and not session.needed(gang)
        if not kept:
            attempt.statement.discard()
        for other in attempt.touched:
            self._victims.forget(other)
        if not kept:
            if attempt.refused:
                session.trace.reclaim_refusals[gang] = attempt.refused
            return
        session.commit(attempt.statement)
        if not session.is_ready(gang):
            hold_back(session, gang)
        renew_promise(session, gang)
        if attempt.units:
            lost = {task: self._victims.work_lost(task) for unit in attempt.units for task in unit.members}
            record(session, self.name, attempt, lost)
            reserve(session, attempt, float(self.values["reservationSeconds"]))

    def _reclaim_class(self, session: Session, attempt: Attempt, cls: TaskClass, tasks: list[int]) -> None:
        """Place as many of equal tasks as the quota allows, first on free room, then on taken room."""
        queue = session.queue_of(attempt.gang)
        room, limits = quota_room(session, queue, cls, len(tasks))
        wanted = tasks[:room]
        while wanted and place(session, attempt.statement, wanted[0]) is not None:
            attempt.placed.append(wanted.pop(0))
        if not wanted:
            return
        room, limits = quota_room(session, queue, cls, len(wanted))
        # A gang like this one found nobody: this one would find nobody either.
        key = (queue, session.service_type(attempt.gang), cls.index)
        version = len(session.nodes.log) if attempt.statement.operations else None
        if key in self._hopeless and self._hopeless[key] in (None, len(session.nodes.log)):
            session.trace.count("reclaims known to be hopeless")
            return
        view = session.candidates.view(cls)
        useful = self._reach.useful(cls, view.allowed, limits)
        nodes = self._reach.within(cls, useful, limits)
        units = self._units(session, attempt, cls, self._victims.near(useful, nodes))
        if not units:
            self._hopeless[key] = version
            return
        puzzle = self._puzzle(session, cls, nodes, limits, units)
        count = min(len(wanted), puzzle.most())
        if not count:
            self._hopeless[key] = version
        while count:
            chosen = puzzle.solve(count)
            if chosen is None:
                count -= 1
                continue
            point = attempt.statement.checkpoint()
            self._evict(session, attempt, chosen)
            placed = []
            for task in wanted[:count]:
                if place(session, attempt.statement, task) is None:
                    break
                placed.append(task)
            if len(placed) == count:
                attempt.placed += placed
                attempt.backed += placed
                attempt.units += chosen
                return
            attempt.statement.rollback(point)
            for unit in chosen:
                self._victims.forget(int(session.tasks.gang[unit.members[0]]))
            count = len(placed)

    def _units(self, session: Session, attempt: Attempt, cls: TaskClass, near: list[int]) -> list[Unit]:
        """Everything of the gangs ``near`` that rules and votes let go; the others are noted with their rule."""
        queue, victims = session.queue_of(attempt.gang), self._victims
        gangs: list[int] = []
        pool: list[int] = []
        for gang in near:
            rule = victims.rule(gang, queue)
            if rule is None:
                gangs.append(gang)
                pool += victims.holding(gang).members
            else:
                attempt.refused[session.gangs.names[gang]] = rule
        if not pool:
            return []
        reclaimer = session.gangs.with_status(attempt.gang, TaskStatus.PENDING)[0]
        verdict = session.hooks.victims("reclaimable", reclaimer, pool)
        attempt.verdict = verdict
        units = []
        for gang in gangs:
            found = victims.units(gang, cls, verdict.allowed)
            units += found
            if not found:
                rules = [verdict.refused[t] for t in victims.holding(gang).members if t in verdict.refused]
                attempt.refused[session.gangs.names[gang]] = rules[0] if rules else "not every member may be taken"
        return units

    def _puzzle(self, session: Session, cls: TaskClass, nodes: Bools, limits: list[int], units: list[Unit]) -> Puzzle:
        rooms: dict[int, Room] = {}
        for unit in units:
            for node in unit.frees:
                if node not in rooms and nodes[node]:
                    free = tuple(int(session.nodes.future[row, node]) for row in cls.rows)
                    cards = tuple(tuple(session.cards.free_future(card, node)) for card in cls.cards)
                    rooms[node] = Room(free, cards)
        request = [int(cls.request[row]) for row in cls.rows]
        return Puzzle(request, cls.whole, cls.share, limits, rooms, units)

    def _evict(self, session: Session, attempt: Attempt, units: list[Unit]) -> None:
        leaving = [task for unit in units for task in unit.members]
        for task in sorted(leaving, key=session.tasks.keys.__getitem__):
            attempt.statement.evict(task)
            # The next class of tasks must not count on what has gone for this one.
            gang = int(session.tasks.gang[task])
            attempt.touched[gang] = None
            self._victims.forget(gang)

    def _reprieve(self, session: Session, attempt: Attempt) -> None:
        """With several classes in one gang, somebody taken for the first may not be needed any more."""
        if len({int(session.tasks.cls[task]) for task in attempt.backed}) < 2:
            return
        order = sorted(attempt.units, key=lambda unit: (unit.level, unit.work, unit.name), reverse=True)
        for unit in order:
            fewer = [other for other in attempt.units if other is not unit]
            if self._replay(session, attempt, fewer):
                attempt.units = fewer
        if not self._replay(session, attempt, attempt.units):
            attempt.placed.clear()

    def _replay(self, session: Session, attempt: Attempt, units: list[Unit]) -> bool:
        """Do the whole attempt again with these victims; on failure the statement is left as it was."""
        before = list(attempt.statement.operations)
        attempt.statement.rollback(0)
        self._evict(session, attempt, units)
        if all(place(session, attempt.statement, task) is not None for task in attempt.placed):
            return True
        attempt.statement.rollback(0)
        attempt.statement.repeat(before)
        return False
