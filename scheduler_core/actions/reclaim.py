"""Action ``reclaim``: a gang that is entitled to more takes it back from other queues, whole gangs at a time.

In steps: which tasks may ask (quota) -> plain placement first (pitfall 6) -> who may be taken (hard rules, votes) ->
the cheapest set over all nodes (contracts 3.1) -> evict and place in a statement, with quota, predicates and single
cards tested again -> keep it only if the gang can run with it. Source: volcano-semantics 3.5, contracts 3.1 and 3.2."""

from collections.abc import Iterable
from functools import partial
from typing import ClassVar

import numpy as np

from scheduler_core.actions.allocate import candidates, hold_back
from scheduler_core.actions.support.admission import renew_promise
from scheduler_core.actions.support.attempt import Attempt, record
from scheduler_core.actions.support.claim_story import ClaimRecorder
from scheduler_core.actions.support.claims import CompiledClaims, plain_claims
from scheduler_core.actions.support.placement import place
from scheduler_core.actions.support.policy_forms import PolicyForms
from scheduler_core.actions.support.reservations import RESERVATION_SECONDS, cool_down, reserve
from scheduler_core.actions.support.rotation import Rotation
from scheduler_core.actions.support.search_state import State, Verdicts
from scheduler_core.actions.support.upstream_reclaim import reclaim_as_upstream
from scheduler_core.actions.support.victim_search import VictimSearch
from scheduler_core.actions.support.victims import Victims
from scheduler_core.algorithms.victims import Unit
from scheduler_core.framework.gang_votes import gang_votes
from scheduler_core.framework.plugin import Action, Argument, number
from scheduler_core.framework.quota_room import quota_room
from scheduler_core.framework.session import Session
from scheduler_core.state.status import CHARGED, PENDING, Bools
from scheduler_core.state.task_class import TaskClass


def useful_nodes(session: Session, cls: TaskClass, limits: list[int], task: int) -> Bools:
    """bool (N,): nodes that only other pods keep from a task, with a card of a type that the quota allows. ``limits``:
    tasks that the quota allows, by card option. ``task``: one of the class, for what plugins say of it alone."""
    allowed = session.candidates.view(cls).curable
    for _, only, *_ in session.candidates.said_of(task):
        allowed = allowed & only
    if not cls.milli:
        return allowed
    mask: Bools = np.zeros_like(allowed)
    for option, card in enumerate(cls.cards):
        if limits[option]:
            mask |= session.cards.count[card] > 0
    return mask & allowed


class Reclaim(Action):
    name: ClassVar[str] = "reclaim"
    arguments: ClassVar[tuple[Argument, ...]] = (
        RESERVATION_SECONDS,
        number(
            "cooldownSeconds", 60.0, (0.0, 86400.0),
            "how long a gang that was evicted is not taken again, from the eviction on",
        ),
    )  # fmt: skip

    def execute(self, session: Session) -> None:
        """Queues and gangs take turns; each gang is tried once."""
        self._victims = Victims(session)
        self._search: VictimSearch | None = None
        # Claimants for which no victim was found, and why: for ever in this action (room, quota and candidates only
        # become fewer), or at one place of the log where the attempt itself had moved something that may be undone.
        self._hopeless: dict[object, tuple[int | None, dict[str, str]]] = {}
        waiting = session.gangs.counts[PENDING] > 0
        asks = (candidates(session) & waiting).nonzero()[0].tolist() if waiting.any() else []
        starving = [gang for gang in asks if self._starves(session, gang)]
        if session.compat:
            reclaim_as_upstream(session, starving)
            return
        forms = plain_claims(session) if _any_has_quota(session, starving) else None
        if forms is not None:
            self._serve(session, forms, starving)
            return
        rotation = Rotation(session, starving)
        while (queue := rotation.best_queue()) is not None:
            if session.hooks.any_true("overused", queue):
                rotation.drop(queue)
                continue
            self._reclaim_for(session, rotation.pop(queue))

    def _serve(self, session: Session, forms: PolicyForms, starving: list[int]) -> None:
        """The same turns in compiled code."""
        waiting: Bools = np.zeros(len(session.gangs), dtype=np.bool_)
        waiting[starving] = True
        self._search = VictimSearch(session, self._victims)
        claims = CompiledClaims(session, forms, waiting, self._search, partial(self._shared_state, session))
        story = ClaimRecorder(
            session, self._victims, action=self.name, seconds=float(self.values["reservationSeconds"]),
            cool=float(self.values["cooldownSeconds"]),
        )  # fmt: skip
        claims.serve(waiting, partial(self._reclaim_for, session), story)

    def _shared_state(self, session: Session, gang: int) -> State | None:
        """What a gang of equal tasks could gain where, if that holds for its whole kind."""
        attempt = Attempt(gang, session.statement())
        task = session.gangs.with_status(gang, PENDING)[0]
        self._state(session, attempt, session.cluster.class_of(task), [1], task, b"")
        assert self._search is not None
        return self._search.known(self._kind(session, attempt, session.cluster.class_of(task), [1], b""))[1]

    def _starves(self, session: Session, gang: int) -> bool:
        """A gang that has a task to place, is admitted and valid: may it take back, and does it say that it has to?"""
        if session.hooks.refusal("reclaimer", gang) is not None:
            return False
        return session.hooks.first_tier_all("job_starving", gang)

    def _reclaim_for(self, session: Session, gang: int) -> None:
        """One gang: all its waiting tasks in one statement, kept if the gang can run with what it got."""
        attempt = Attempt(gang, session.statement())
        parts: dict[tuple[int, bytes], list[int]] = {}
        for task in session.pending_tasks(gang):
            pod = session.tasks.pod(task)
            if not session.cluster.class_of(task).best_effort and pod.preemption_policy != "Never":
                said = b"".join(mask.tobytes() for _, mask, *_ in session.candidates.said_of(task))
                parts.setdefault((int(session.tasks.cls[task]), said), []).append(task)
        for (index, said), tasks in parts.items():
            self._reclaim_class(session, attempt, session.cluster.classes[index], tasks, said)
        self._reprieve(session, attempt)
        kept = bool(attempt.placed) and session.is_pipelined(gang) and not session.short_of_start(gang)
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
            reserve(session, gang, lost, float(self.values["reservationSeconds"]))
            fallen = session.tasks.gang[[unit.members[0] for unit in attempt.units]].tolist()
            cool_down(session, fallen, float(self.values["cooldownSeconds"]))

    def _reclaim_class(self, session: Session, attempt: Attempt, cls: TaskClass, tasks: list[int], said: bytes) -> None:
        """Place as many of equal tasks as the quota allows, first on free room, then on taken room. ``said``: what
        plugins say of these tasks beyond their class, to distinguish claimants."""
        queue = session.queue_of(attempt.gang)
        room, limits = quota_room(session, queue, cls, len(tasks))
        wanted = tasks[:room]
        while wanted and place(session, attempt.statement, wanted[0]) is not None:
            attempt.placed.append(wanted.pop(0))
        if not wanted:
            return
        room, limits = quota_room(session, queue, cls, len(wanted))
        # A gang like this one found no victim: this one would find none either.
        key = (queue, session.service_type(attempt.gang), cls.index, said)
        version = len(session.nodes.log) if attempt.statement.operations else None
        known = self._hopeless.get(key)
        if known is not None and known[0] in (None, len(session.nodes.log)):
            session.trace.count("reclaims known to be hopeless")
            attempt.refused.update(known[1])
            return
        state = self._state(session, attempt, cls, limits, wanted[0], said)
        count = min(len(wanted), state.most(limits)) if state is not None else 0
        if state is None or not count:
            self._hopeless[key] = (version, {} if state is None else state.rules(queue))
            return
        while count:
            chosen = state.solve(count, limits)
            if chosen is None:
                count -= 1
                continue
            if self._search is not None and self._search.protected(chosen):
                state = self._state(session, attempt, cls, limits, wanted[0], said)
                if state is None:
                    return
                continue
            point = attempt.statement.checkpoint()
            passed_over, dearer = state.passed_over(chosen, count, limits), state.next_dearer(chosen)
            considered = state.considered(queue)
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
                names = session.gangs.names
                attempt.refused.update({names[one.gang]: one.rule for one in passed_over})
                attempt.look((*state.spared(queue)[0], *passed_over), dearer, considered)
                return
            attempt.statement.rollback(point)
            self._forget([int(session.tasks.gang[unit.members[0]]) for unit in chosen])
            count = len(placed)

    def _kind(self, session: Session, attempt: Attempt, cls: TaskClass, limits: list[int], said: bytes) -> object:
        """What claimants have in common that may take from the same gangs; None for one that is like no other."""
        if attempt.touched or session.candidates.volatile(cls):
            return None
        queue = session.queue_of(attempt.gang)
        own = queue if session.ledger.queues[queue].reclaimable else -1
        open_options = tuple(limits) if len(limits) > 1 else (limits[0] > 0,)
        return cls.index, session.service_type(attempt.gang), own, open_options, said

    def _state(
        self, session: Session, attempt: Attempt, cls: TaskClass, limits: list[int], task: int, said: bytes
    ) -> State | None:
        """The search state for the claimant; claimants of one kind share it. ``task``: one of those that are to be
        placed."""
        if self._search is None:
            self._search = VictimSearch(session, self._victims)
        gang, queue = attempt.gang, session.queue_of(attempt.gang)
        key = self._kind(session, attempt, cls, limits, said)
        there, state = self._search.known(key)
        if not there:
            shared: list[bool] = []

            def ask(candidates: Bools) -> Verdicts:
                verdict = gang_votes(session.hooks, "reclaimable", gang, candidates)
                shared.append(verdict is not None)
                return verdict or session.hooks.victims("reclaimable", task, self._in_order(session, candidates))

            state = self._search.state(key, cls, useful_nodes(session, cls, limits, task), limits, queue, ask)
            if shared == [False]:
                self._search.unshare(key)
        if state is not None:
            attempt.verdict = state.verdict
            attempt.refused.update(state.rules(queue))
        return state

    def _in_order(self, session: Session, gangs: Bools) -> list[int]:
        """Members in place of candidate gangs, in the order in which they would be taken: the cheapest gang first."""
        search = self._search
        assert search is not None
        found = np.flatnonzero(gangs)
        order = np.lexsort((found, search.work_of_gangs(found), search.rank_of(found)))
        return [task for gang in found[order].tolist() for task in self._victims.holding(gang).members]

    def _forget(self, gangs: Iterable[int]) -> None:
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
        """With several classes in one gang, a victim of the first may not be needed any more."""
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
        if _whole_or_spared(session, units):
            self._evict(session, attempt, units)
            if all(place(session, attempt.statement, task) is not None for task in attempt.placed):
                return True
            attempt.statement.rollback(0)
        attempt.statement.repeat(before)
        return False


def _any_has_quota(session: Session, gangs: list[int]) -> bool:
    """Whether the quota of some gang's queue has room for one of its tasks; nothing else moves anything."""
    known: dict[tuple[int, int], bool] = {}
    for gang in gangs:
        queue = session.queue_of(gang)
        for cls in session.classes_of(gang):
            key = queue, cls.index
            if key not in known:
                known[key] = quota_room(session, queue, cls, 1)[0] > 0
            if known[key]:
                return True
    return False


def _whole_or_spared(session: Session, units: list[Unit]) -> bool:
    """Each gang is evicted whole, or loses only single members that it can spare, all units counted together. What was
    left of a gang after some of its members were taken alone goes with them or not at all."""
    leaving: dict[int, list[Unit]] = {}
    for unit in units:
        leaving.setdefault(int(session.tasks.gang[unit.members[0]]), []).append(unit)
    gangs = session.gangs
    for gang, parts in leaving.items():
        count = sum(len(unit.members) for unit in parts)
        if count == int(gangs.counts[CHARGED, gang].sum()):
            continue
        if not all(unit.spare for unit in parts) or count > gangs.ready(gang) - gangs.least[gang]:
            return False
    return True
