"""Action ``reclaim``: a gang that is entitled to more takes it back from other queues, whole gangs at a time.

In steps: which tasks may ask (quota) -> plain placement first (pitfall 6) -> who may be taken (hard rules, votes) ->
the cheapest set over all nodes (contracts 3.1) -> evict and place in a statement, with quota, predicates and single
cards tested again -> keep it only if the gang can run with it. Source: volcano-semantics 3.5, contracts 3.1 and 3.2.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

import numpy as np

from scheduler_core.actions.allocate import hold_back, is_candidate
from scheduler_core.actions.support.admission import renew_promise
from scheduler_core.actions.support.attempt import Attempt, record
from scheduler_core.actions.support.placement import place
from scheduler_core.actions.support.reach import useful_nodes
from scheduler_core.actions.support.reservations import cool_down, reserve
from scheduler_core.actions.support.rotation import Rotation
from scheduler_core.actions.support.upstream_reclaim import reclaim_as_upstream
from scheduler_core.actions.support.victim_search import State, Verdicts, VictimSearch
from scheduler_core.actions.support.victims import Victims
from scheduler_core.algorithms.victims import Unit
from scheduler_core.framework.gang_votes import gang_votes
from scheduler_core.framework.plugin import Action, Argument
from scheduler_core.framework.quota_room import quota_room
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
        Argument(
            name="cooldownSeconds",
            type="float",
            default=60.0,
            minimum=0.0,
            maximum=86400.0,
            doc="how long a gang that was evicted is not taken again, from the eviction on",
        ),
    )

    def execute(self, session: Session) -> None:
        """Queues and gangs take turns; each gang is tried once."""
        self._victims = Victims(session)
        self._search: VictimSearch | None = None
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
        self._forget(attempt.touched)
        if not kept:
            if attempt.refused:
                session.trace.reclaim_refusals[gang] = attempt.refused
            return
        session.commit(attempt.statement)
        self._forget([gang])
        if not session.is_ready(gang):
            hold_back(session, gang)
        renew_promise(session, gang)
        if attempt.units:
            lost = {task: self._victims.work_lost(task) for unit in attempt.units for task in unit.members}
            record(session, self.name, attempt, lost)
            reserve(session, attempt, float(self.values["reservationSeconds"]))
            cool_down(session, attempt, float(self.values["cooldownSeconds"]))

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
        state = self._state(session, attempt, cls, limits)
        count = min(len(wanted), state.most(limits)) if state is not None else 0
        if state is None or not count:
            self._hopeless[key] = version
            return
        while count:
            chosen = state.solve(count, limits)
            if chosen is None:
                count -= 1
                continue
            if self._search is not None and self._search.protected(chosen):
                state = self._state(session, attempt, cls, limits)
                if state is None:
                    return
                continue
            point = attempt.statement.checkpoint()
            passed_over = state.passed_over(chosen)
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
                attempt.refused.update({refusal.gang: refusal.rule for refusal in passed_over})
                return
            attempt.statement.rollback(point)
            self._forget([int(session.tasks.gang[unit.members[0]]) for unit in chosen])
            count = len(placed)

    def _state(self, session: Session, attempt: Attempt, cls: TaskClass, limits: list[int]) -> State | None:
        """The search state for the claimant; claimants of one class that may take from the same gangs share it."""
        if self._search is None:
            self._search = VictimSearch(session, self._victims)
        gang, queue = attempt.gang, session.queue_of(attempt.gang)
        reclaimer = session.gangs.with_status(gang, TaskStatus.PENDING)[0]

        def ask(candidates: Bools) -> Verdicts:
            verdict = gang_votes(session.hooks, "reclaimable", gang, candidates)
            shared.append(verdict is not None)
            return verdict or session.hooks.victims("reclaimable", reclaimer, self._in_order(session, candidates))

        shared: list[bool] = []
        key: object = None
        if not attempt.touched and not session.candidates.volatile(cls):
            own = queue if session.ledger.queues[queue].reclaimable else -1
            open_options = tuple(limits) if len(limits) > 1 else (limits[0] > 0,)
            key = (cls.index, session.service_type(gang), own, open_options)
        useful = useful_nodes(session, cls, limits)
        state = self._search.state(key, cls, useful, limits, queue, ask)
        if shared == [False]:
            self._search.unshare(key)
        if state is not None:
            attempt.verdict = state.verdict
            attempt.refused.update({refusal.gang: refusal.rule for refusal in state.refused()})
        return state

    def _in_order(self, session: Session, gangs: Bools) -> list[int]:
        """Members in place of candidate gangs, in the order in which they would be taken: the cheapest gang first."""
        search = self._search
        assert search is not None
        found = np.flatnonzero(gangs)
        order = np.lexsort((found, search.work_of_gangs(found), search.rank_of(found)))
        return [task for gang in found[order].tolist() for task in self._victims.holding(gang).members]

    def _forget(self, gangs: Iterable[int]) -> None:
        """Gangs have changed."""
        for gang in gangs:
            self._victims.forget(gang)
            if self._search is not None:
                self._search.forget(gang)

    def _evict(self, session: Session, attempt: Attempt, units: list[Unit]) -> None:
        leaving = [task for unit in units for task in unit.members]
        gangs: dict[int, None] = {}
        for task in sorted(leaving, key=session.tasks.keys.__getitem__):
            attempt.statement.evict(task)
            gang = int(session.tasks.gang[task])
            attempt.touched[gang] = None
            gangs[gang] = None
        # The next class of tasks must not count on what has gone for this one.
        self._forget(gangs)

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
