"""PodGroups as after the session: phase, counts, conditions.

Most gangs are the same as after the session before; their outcome is kept in the workspace and given out again when
everything that it was made of is the same.
"""

from __future__ import annotations

import msgspec
import numpy as np

from scheduler_core.framework.session import Session
from scheduler_core.model.decision import GangOutcome
from scheduler_core.model.podgroup import GangCondition, GangPhase, PodGroup
from scheduler_core.model.reason import Reason
from scheduler_core.state.status import ALLOCATED, BOUND, FAILED, RUNNING, SUCCEEDED, Ints

_OWN_CONDITIONS = ("Unschedulable", "Scheduled")
_READY = GangCondition(type="Scheduled", reason="tasks in gang are ready to be scheduled")


class Kept(msgspec.Struct, frozen=True):
    """An outcome and what it was made of."""

    group: PodGroup
    facts: tuple[object, ...]
    outcome: GangOutcome


def gang_outcomes(session: Session, reasons: dict[int, Reason], positions: dict[int, int]) -> tuple[GangOutcome, ...]:
    """Outcome of every gang, in the order of names. O(tasks + gangs)."""
    gangs, kept = session.gangs, session.cluster.workspace.outcomes
    counts = gangs.counts
    all_bound: list[int] = counts[[ALLOCATED, BOUND, RUNNING]].sum(axis=0).tolist()
    finished: list[int] = counts[[SUCCEEDED, FAILED]].sum(axis=0).tolist()
    running: list[int] = counts[RUNNING].tolist()
    cards, least = cards_by_gang(session), gangs.least
    outcomes = []
    fresh: dict[str, object] = {}
    for gang, group in enumerate(gangs.groups):
        name, reason, ready, bound = gangs.names[gang], reasons.get(gang), gangs.ready(gang), all_bound[gang]
        phase = _phase_after(session, gang, least[gang], finished[gang], running[gang])
        since, kind, own = session.waiting_since(gang), session.service_type(gang), cards.get(gang, {})
        facts = (phase, ready, bound, since, kind, own)
        old = kept.get(name)
        if reason is None and isinstance(old, Kept) and old.group is group and old.facts == facts:
            outcomes.append(old.outcome)
            fresh[name] = old
            continue
        outcome = GangOutcome(
            name=name,
            queue=group.queue,
            service_type=kind.value,
            phase=phase,
            min_member=group.min_member,
            ready=ready,
            bound=bound,
            conditions=_conditions(group.conditions, reason, ready >= least[gang]),
            position=positions.get(gang),
            cards=own,
            waiting_since=since,
            priority=group.priority,
        )
        outcomes.append(outcome)
        if reason is None:
            fresh[name] = Kept(group, facts, outcome)
    session.cluster.workspace.outcomes = fresh
    return tuple(outcomes)


def _phase_after(session: Session, gang: int, least: int, finished: int, running: int) -> GangPhase:
    """Phase of a PodGroup once the session's decisions are carried out (semantics 2.7)."""
    scheduled, phase = session.gangs.scheduled(gang), session.phase[gang]
    if scheduled >= least and scheduled:
        return GangPhase.COMPLETED if finished == scheduled else GangPhase.RUNNING
    if running:
        return GangPhase.UNKNOWN
    if phase is GangPhase.INQUEUE or (phase is GangPhase.COMPLETED and not session.gangs.total(gang)):
        return phase
    return GangPhase.PENDING


def _conditions(old: tuple[GangCondition, ...], reason: Reason | None, ready: bool) -> tuple[GangCondition, ...]:
    """Conditions of others stay; ours says whether the gang has what it needs to run."""
    kept = tuple(condition for condition in old if condition.type not in _OWN_CONDITIONS)
    if ready:
        return (*kept, _READY)
    if reason is not None:
        return (*kept, GangCondition(type="Unschedulable", reason=reason.code.value, message=reason.message))
    return kept


def cards_by_gang(session: Session) -> dict[int, dict[str, int]]:
    """Milli-cards by type that each gang's members hold or ask for (a waiting member at its first choice)."""
    tasks, classes, axes = session.tasks, session.cluster.classes, session.axes
    count = max(1, len(axes.cards))
    milli, first = classes.amounts[2], classes.first_card
    at = np.flatnonzero(tasks.live & (tasks.gang >= 0) & (tasks.status != SUCCEEDED) & (tasks.status != FAILED))
    cls = tasks.cls[at]
    card = np.where(tasks.card[at] >= 0, tasks.card[at], first[cls]).astype(np.int64)
    held = (card >= 0) & (milli[cls] > 0)
    sums: Ints = np.zeros(len(session.gangs) * count, dtype=np.int64)
    np.add.at(sums, tasks.gang[at][held].astype(np.int64) * count + card[held], milli[cls[held]])
    found: dict[int, dict[str, int]] = {}
    where = np.flatnonzero(sums)
    for gang, index, amount in zip(
        (where // count).tolist(), (where % count).tolist(), sums[where].tolist(), strict=True
    ):
        found.setdefault(gang, {})[axes.cards[index]] = amount
    return found
