"""PodGroups as after the session: phase, counts, conditions. What may differ from session to session is read off the
tables in columns; the outcomes are made of it when they are read. Most gangs are the same as after the session before:
their outcome is kept in the workspace and given out again when everything that it was made of is the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from scheduler_core.algorithms.member_sums import Asked, held_now
from scheduler_core.framework.session import Session
from scheduler_core.model.decision import GangOutcome
from scheduler_core.model.later import Later
from scheduler_core.model.podgroup import GangCondition, GangPhase
from scheduler_core.model.policy import Policy
from scheduler_core.model.queue import Queue
from scheduler_core.model.reason import Reason
from scheduler_core.state.phases import (
    PHASE_COMPLETED,
    PHASE_INQUEUE,
    PHASE_PENDING,
    PHASE_RUNNING,
    PHASE_UNKNOWN,
    PHASES,
    Codes,
)
from scheduler_core.state.status import ALLOCATED, BOUND, FAILED, RUNNING, SUCCEEDED, Bools, Ints, TaskStatus

_OWN_CONDITIONS = ("Unschedulable", "Scheduled")
_READY = GangCondition(type="Scheduled", reason="tasks in gang are ready to be scheduled")
_ENDED: Bools = np.isin(np.arange(len(TaskStatus)), (SUCCEEDED, FAILED))


class Facts(NamedTuple):
    """What outcomes are made of, one row a gang. ``version`` int64, of what the workspace keeps of the gang; ``phase``
    int8; ``ready``, ``bound`` int64; ``cards`` int64 (gangs, card types), milli-cards that members hold or ask for
    (waiting ones at their first choice)."""

    version: Ints
    phase: Codes
    ready: Ints
    bound: Ints
    cards: Ints

    @classmethod
    def empty(cls, size: int, types: int) -> Facts:
        """Rows that nothing is the same as."""
        numbers: Ints = np.zeros(size, dtype=np.int64)
        codes: Codes = np.zeros(size, dtype=np.int8)
        return cls(numbers - 1, codes, numbers.copy(), numbers.copy(), np.zeros((size, types), dtype=np.int64))

    def grown(self, more: int) -> Facts:
        """The same rows and ``more`` behind them."""
        rest = Facts.empty(more, self.cards.shape[1])
        return Facts(
            np.concatenate([self.version, rest.version]), np.concatenate([self.phase, rest.phase]),
            np.concatenate([self.ready, rest.ready]), np.concatenate([self.bound, rest.bound]),
            np.concatenate([self.cards, rest.cards]),
        )  # fmt: skip

    def same_as(self, others: Facts, rows: Ints) -> Bools:
        """bool, one a row: this one's rows at ``rows`` say what the other's say."""
        same: Bools = (self.version[rows] == others.version) & (self.phase[rows] == others.phase)
        same &= (self.ready[rows] == others.ready) & (self.bound[rows] == others.bound)
        same &= (self.cards[rows] == others.cards).all(axis=1)
        return same

    def write(self, others: Facts, rows: Ints) -> None:
        """Take over what the other says at ``rows``."""
        self.version[rows], self.phase[rows], self.ready[rows] = others.version, others.phase, others.ready
        self.bound[rows], self.cards[rows] = others.bound, others.cards


class Kept:
    """Outcomes by number of the gang, and what they were made of; None = has to be made."""

    def __init__(self, types: int) -> None:
        self.outcomes: list[GangOutcome | None] = []
        self.policy: Policy | None = None
        self.queues: tuple[Queue, ...] = ()
        self.facts = Facts.empty(0, types)

    def make_room(self, size: int) -> None:
        """Have rows for numbers below ``size``."""
        more = size - len(self.outcomes)
        if more > 0:
            self.outcomes += [None] * (more + size)
            self.facts = self.facts.grown(more + size)


def gang_outcomes(session: Session, reasons: dict[int, Reason], positions: dict[int, int]) -> Sequence[GangOutcome]:
    """Outcome of every gang, in the order of names. O(tasks) for one pass, the rest when they are read."""
    facts, kept = _facts(session), session.cluster.workspace.outcomes
    return Later(len(session.gangs), lambda: _make(session, facts, kept, reasons, positions))


def _make(
    session: Session, facts: Facts, keep: dict[str, object], reasons: dict[int, Reason], positions: dict[int, int]
) -> list[GangOutcome]:
    gangs = session.gangs
    kept = _kept(session, facts, keep)
    numbers = gangs.numbers
    same = kept.facts.same_as(facts, numbers)
    for gang in reasons:
        same[gang] = False
    same &= _unmoved(session)
    known, places = kept.outcomes, numbers.tolist()
    outcomes = [known[number] for number in places]
    for gang, outcome in enumerate(outcomes):
        if outcome is None:
            same[gang] = False
    for gang in np.flatnonzero(~same).tolist():
        outcomes[gang] = made = _outcome(session, facts, gang, reasons.get(gang), positions.get(gang))
        lasts = gang not in reasons and made.waiting_since == gangs.groups[gang].waiting_since
        known[places[gang]] = made if lasts else None
    kept.facts.write(facts, numbers)
    return [outcome for outcome in outcomes if outcome is not None]


def _kept(session: Session, facts: Facts, keep: dict[str, object]) -> Kept:
    """What is kept from earlier sessions as far as it still speaks of the same policy and queues."""
    kept = keep.get("gangs")
    types = facts.cards.shape[1]
    same = isinstance(kept, Kept) and kept.policy is session.policy and kept.facts.cards.shape[1] == types
    if not same or not isinstance(kept, Kept) or kept.queues != session.ledger.queues:
        kept = Kept(types)
        kept.policy, kept.queues = session.policy, session.ledger.queues
        keep["gangs"] = kept
    kept.make_room(int(session.gangs.numbers.max(initial=-1)) + 1)
    return kept


def _unmoved(session: Session) -> Bools:
    """bool (G,): gangs whose place in the queue is the one that their PodGroup says."""
    found: Bools = np.ones(len(session.gangs), dtype=np.bool_)
    submitted = session.memory.submitted
    if submitted:
        for gang, name in enumerate(session.gangs.lasting):
            if name in submitted:
                found[gang] = False
    return found


def _facts(session: Session) -> Facts:
    gangs, tasks, columns = session.gangs, session.tasks, session.cluster.classes.columns
    counts = gangs.counts
    cards = session.cluster.workspace.members.held[gangs.numbers]
    asked = Asked(columns.first_card, columns.milli, columns.best_effort)
    moved = np.flatnonzero(gangs.versions)
    held_now(moved, tasks.status, tasks.cls, tasks.card, _ENDED, asked, gangs.start, gangs.member, cards)
    bound = counts[ALLOCATED] + counts[BOUND] + counts[RUNNING]
    version = session.cluster.workspace.gangs.versions[gangs.numbers]
    return Facts(version, _phases_after(session), gangs.ready_count, bound, cards)


def _phases_after(session: Session) -> Codes:
    """int8 (G,): phases of the PodGroups once the session's decisions are carried out (semantics 2.7)."""
    gangs, now = session.gangs, session.phase.codes
    counts, scheduled = gangs.counts, gangs.scheduled_count
    after: Codes = np.full(len(gangs), PHASE_PENDING, dtype=np.int8)
    stays = (now == PHASE_INQUEUE) | ((now == PHASE_COMPLETED) & (np.diff(gangs.start) == 0))
    after[stays] = now[stays]
    after[counts[RUNNING] > 0] = PHASE_UNKNOWN
    enough = (scheduled >= gangs.min_member) & (scheduled > 0)
    after[enough] = PHASE_RUNNING
    after[enough & (counts[SUCCEEDED] + counts[FAILED] == counts.sum(axis=0))] = PHASE_COMPLETED
    return after


def phase_after(session: Session, gang: int) -> GangPhase:
    """Phase of one PodGroup as its outcome has it."""
    phase: GangPhase = PHASES[int(_phases_after(session)[gang])]
    return phase


def _outcome(session: Session, facts: Facts, gang: int, reason: Reason | None, position: int | None) -> GangOutcome:
    group = session.group(gang)
    ready = int(facts.ready[gang])
    names = session.axes.cards
    return GangOutcome(
        name=session.gangs.names[gang],
        queue=group.queue,
        service_type=session.service_type(gang).value,
        phase=PHASES[facts.phase[gang]],
        min_member=group.min_member,
        ready=ready,
        bound=int(facts.bound[gang]),
        conditions=_conditions(group.conditions, reason, ready >= group.min_member),
        position=position,
        cards={name: milli for name, milli in zip(names, facts.cards[gang].tolist(), strict=False) if milli},
        waiting_since=session.waiting_since(gang),
        priority=group.priority,
    )


def _conditions(old: tuple[GangCondition, ...], reason: Reason | None, ready: bool) -> tuple[GangCondition, ...]:
    """Conditions of others stay; ours says whether the gang has what it needs to run."""
    kept = tuple(condition for condition in old if condition.type not in _OWN_CONDITIONS)
    if ready:
        return (*kept, _READY)
    if reason is not None:
        return (*kept, GangCondition(type="Unschedulable", reason=reason.code.value, message=reason.message))
    return kept
