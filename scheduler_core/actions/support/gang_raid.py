"""What gangpreempt and gangreclaim share: take bundles for the whole demand of a gang, as few as will do.

Source: volcano-semantics 3.6. On purpose different from upstream, whose defects these are: of the last bundles only
what is needed is taken; a gang that is evicted whole leaves all its nodes; where the sums are enough and the places are
not, more is taken until the demand fits. A job whose policy ends it with the first member has no surplus. No hypernodes
are built, so the one domain is the whole cluster. With ``compatibility: volcano`` bundles go in full, by sums."""

from collections.abc import Iterable, Sequence

import msgspec

from scheduler_core.actions.support.attempt import Attempt
from scheduler_core.actions.support.bundles_by_worth import Demand, Offer, in_order, offers
from scheduler_core.actions.support.guards import Guards
from scheduler_core.actions.support.keeping import keep
from scheduler_core.actions.support.nomination import Eligibility
from scheduler_core.actions.support.reservations import RESERVATION_SECONDS
from scheduler_core.actions.support.trial import Outcome, Trial
from scheduler_core.algorithms.victims import Unit
from scheduler_core.framework.plugin import Argument, number, switch
from scheduler_core.framework.quota_room import quota_room
from scheduler_core.framework.session import Session
from scheduler_core.model.podgroup import GangPhase
from scheduler_core.model.rules import Rule
from scheduler_core.state.axes import CPU, MEMORY
from scheduler_core.state.status import BOUND, PIPELINED, RUNNING

ARGUMENTS: tuple[Argument, ...] = (
    number(
        "maxDomains", 8, (1, 10_000),
        "how many topology domains are looked at; there is one, the whole cluster, so it changes nothing",
    ),
    switch("allowWholeBundle", True, "gangs may be evicted whole, not only their surplus"),
    RESERVATION_SECONDS,
)  # fmt: skip


class Terms(msgspec.Struct, frozen=True, gc=False):
    """How the two actions differ. ``action``, ``rule``, ``verb``: name of the action, and its words for the record.
    ``across``: takes from other queues, else from lower gangs of its own. ``allow_whole``, ``seconds``: arguments of
    the action."""

    action: str
    rule: str
    verb: str
    across: bool
    allow_whole: bool
    seconds: float


class GangRaid:
    def __init__(self, session: Session, terms: Terms) -> None:
        self._session, self._terms = session, terms
        self._guards, self._eligible = Guards(session), Eligibility(session)

    def take_for(self, gang: int) -> None:
        """Place all that waits of the gang, whatever has to be evicted for it; nothing where it could not run."""
        session = self._session
        tasks = self._demand(gang)
        if not tasks:
            return
        attempt = Attempt(gang, session.statement())
        trial = Trial(session, attempt.statement, gang, tasks)
        at_once = trial.outcome(())
        if session.phase[gang] is GangPhase.PENDING and trial.would_run():
            # It has room and still was not let in: that is for enqueue to say.
            attempt.statement.discard()
            return
        found = self._offers(attempt, tasks) if at_once.placed < len(tasks) else []
        chosen: list[Unit] = []
        if found:
            everybody = Outcome(runs=True, placed=len(tasks))
            chosen = self._as_upstream(found, tasks) if session.compat else _fewest(trial, _parts(found), everybody)
        self._carry_out(attempt, trial, chosen)

    def _carry_out(self, attempt: Attempt, trial: Trial, chosen: list[Unit]) -> None:
        placed = trial.carry_out(chosen)
        if not placed or not trial.runs():
            attempt.statement.discard()
            if attempt.refused:
                self._session.trace.reclaim_refusals.setdefault(attempt.gang, attempt.refused)
            return
        attempt.placed = placed
        attempt.backed = [task for task in placed if self._session.tasks.status[task] == PIPELINED] or placed
        attempt.units = chosen
        terms = self._terms
        keep(
            self._session, attempt, self._guards, action=terms.action, rule=terms.rule, verb=terms.verb,
            seconds=0.0 if self._session.compat else terms.seconds,
        )  # fmt: skip

    def _demand(self, gang: int) -> list[int]:
        """All that waits and may take, as far as the queue is entitled to it where others' queues are robbed."""
        session = self._session
        by_class: dict[int, list[int]] = {}
        for task in session.pending_tasks(gang):
            if self._eligible.may_take(task) and not session.cluster.class_of(task).best_effort:
                by_class.setdefault(int(session.tasks.cls[task]), []).append(task)
        tasks = []
        for index, alike in by_class.items():
            room = len(alike)
            if self._terms.across:
                room, _ = quota_room(session, session.queue_of(gang), session.cluster.classes[index], len(alike))
            tasks += alike[:room]
        return tasks

    def _offers(self, attempt: Attempt, tasks: Sequence[int]) -> list[Offer]:
        """What rules and one vote over all candidates let go, in the order of taking."""
        session, guards, names = self._session, self._guards, self._session.gangs.names
        gangs: list[int] = []
        for gang in range(len(session.gangs)):
            rule = self._rule(attempt.gang, gang)
            if rule is None:
                gangs.append(gang)
            elif rule:
                attempt.refuse(gang, names[gang], rule)
        pool = [task for gang in gangs for task in guards.holding(gang).members if self._takes(task)]
        if not pool:
            return []
        verdict = attempt.verdict = session.hooks.victims("unified_evictable", tasks[0], pool)
        demand = Demand(session, tasks)
        found: list[Offer] = []
        for gang in gangs:
            own = offers(session, guards, gang, demand, verdict.allowed, allow_whole=self._terms.allow_whole)
            found += own
            if not own:
                rules = [verdict.refused[t] for t in guards.holding(gang).members if t in verdict.refused]
                attempt.refuse(gang, names[gang], rules[0] if rules else Rule.NOT_EVERY_MEMBER.text())
        return in_order(session, found, session.queue_of(attempt.gang), across=self._terms.across)

    def _rule(self, taker: int, gang: int) -> str | None:
        """Why a gang is no candidate; empty where it is not even asked."""
        session = self._session
        queue, own = session.queue_of(gang), session.queue_of(taker)
        if gang == taker or queue < 0 or not self._guards.holding(gang).members or (queue == own) is self._terms.across:
            return ""
        if self._terms.across:
            if not session.ledger.queues[queue].reclaimable:
                return Rule.NOT_RECLAIMABLE.text()
        elif session.group(gang).priority >= session.group(taker).priority:
            return Rule.PRIORITY.text()
        if session.group(gang).preemptable is False:
            return Rule.GANG_PROTECTED.text()
        return self._guards.rule(gang)

    def _takes(self, task: int) -> bool:
        """Between queues only what runs goes; upstream never evicts a gang with a bound member whole then."""
        status = int(self._session.tasks.status[task])
        return status == RUNNING or (status == BOUND and not (self._terms.across and self._session.compat))

    def _as_upstream(self, found: Sequence[Offer], tasks: Sequence[int]) -> list[Unit]:
        """Unit by bundle, each in full, until free and freed sums cover the demand."""
        session, classes = self._session, self._session.cluster.class_of
        need = {
            "cpu": sum(classes(task).cpu_milli for task in tasks),
            "memory": sum(classes(task).memory_mib for task in tasks),
            "cards": sum(classes(task).milli for task in tasks),
        }
        wanted = {card for task in tasks for card in classes(task).cards}
        have = {
            "cpu": int(session.nodes.future[CPU].sum()),
            "memory": int(session.nodes.future[MEMORY].sum()),
            "cards": sum(int(session.cards.left_future[card].sum()) for card in wanted),
        }
        taken: list[Unit] = []
        for offer in found:
            if all(have[what] >= need[what] for what in need):
                break
            before = {task for unit in _together(taken) for task in unit.members}
            taken += offer.parts
            for task in {task for unit in _together(taken) for task in unit.members} - before:
                cls = classes(task)
                have["cpu"] += cls.cpu_milli
                have["memory"] += cls.memory_mib
                have["cards"] += cls.milli if int(session.tasks.card[task]) in wanted else 0
        return _together(taken)


def _parts(found: Iterable[Offer]) -> list[Unit]:
    return [part for offer in found for part in offer.parts]


def _together(parts: Iterable[Unit]) -> list[Unit]:
    """Bundles that can go at once: a gang that is evicted whole does not also lose single members."""
    parts = list(parts)
    whole = {part.gang for part in parts if not part.spare}
    return [part for part in parts if not part.spare or part.gang not in whole]


def _fewest(trial: Trial, parts: list[Unit], best: Outcome) -> list[Unit]:
    """The first parts that bring most, without those that turn out not to be needed, the last ones first. ``best``:
    what cannot be bettered; it is looked for among ever more parts, so that few are tried where few will do."""
    low, high = 0, 1
    while (goal := trial.outcome(_together(parts[:high]))) < best and high < len(parts):
        low, high = high, min(2 * high, len(parts))
    if goal < best:
        low = 0
    if goal <= trial.outcome(()):
        return []
    while low < high:
        middle = (low + high) // 2
        if trial.outcome(_together(parts[:middle])) >= goal:
            high = middle
        else:
            low = middle + 1
    kept = parts[:low]
    for part in reversed(parts[:low]):
        fewer = [other for other in kept if other is not part]
        if trial.outcome(_together(fewer)) >= goal:
            kept = fewer
    return _together(kept)
