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
from scheduler_core.model.policy import Policy
from scheduler_core.model.queue import Queue
from scheduler_core.model.reason import Reason
from scheduler_core.state.status import ALLOCATED, BOUND, FAILED, READY, RUNNING, SCHEDULED, SUCCEEDED, Ints

_OWN_CONDITIONS = ("Unschedulable", "Scheduled")
_READY = GangCondition(type="Scheduled", reason="tasks in gang are ready to be scheduled")


class Kept(msgspec.Struct, frozen=True, gc=False):
    """An outcome and what it was made of: the PodGroup, its queue, the policy, counts, cards."""

    group: PodGroup
    queue: Queue | None
    policy: Policy
    facts: tuple[object, ...]
    cards: dict[str, int]
    outcome: GangOutcome


def gang_outcomes(session: Session, reasons: dict[int, Reason], positions: dict[int, int]) -> tuple[GangOutcome, ...]:
    """Outcome of every gang, in the order of names. O(tasks + gangs)."""
    gangs, policy, queues = session.gangs, session.policy, session.ledger.queues
    kept, fresh = session.cluster.workspace.outcomes, dict[str, object]()
    counts, cards = gangs.counts, cards_by_gang(session)
    columns = zip(
        gangs.groups,
        gangs.names,
        gangs.queue_list,
        session.phase,
        counts[READY].sum(axis=0).tolist(),
        counts[SCHEDULED].sum(axis=0).tolist(),
        counts[[SUCCEEDED, FAILED]].sum(axis=0).tolist(),
        counts[RUNNING].tolist(),
        strict=True,
    )
    outcomes = []
    nothing: dict[str, int] = {}
    for gang, (group, name, q, phase, ready, scheduled, finished, running) in enumerate(columns):
        queue = queues[q] if q >= 0 else None
        own = cards.get(gang, nothing)
        facts = (phase, ready, scheduled, finished, running)
        old = kept.get(name)
        if (
            isinstance(old, Kept)
            and old.group is group
            and gang not in reasons
            and old.queue is queue
            and old.policy is policy
            and old.facts == facts
            and old.cards == own
        ):
            outcomes.append(old.outcome)
            fresh[name] = old
            continue
        reason = reasons.get(gang)
        outcome = GangOutcome(
            name=name,
            queue=group.queue,
            service_type=session.service_type(gang).value,
            phase=_phase_after(session, gang, finished, running),
            min_member=group.min_member,
            ready=ready,
            bound=int(counts[[ALLOCATED, BOUND, RUNNING], gang].sum()),
            conditions=_conditions(group.conditions, reason, ready >= group.min_member),
            position=positions.get(gang),
            cards=own,
            waiting_since=session.waiting_since(gang),
            priority=group.priority,
        )
        outcomes.append(outcome)
        # What depends on the pods' owners or on an earlier eviction is looked at anew each time.
        if reason is None and group.owner_kind and outcome.waiting_since == group.waiting_since:
            fresh[name] = Kept(group, queue, policy, facts, own, outcome)
    session.cluster.workspace.outcomes = fresh
    return tuple(outcomes)


def _phase_after(session: Session, gang: int, finished: int, running: int) -> GangPhase:
    """Phase of a PodGroup once the session's decisions are carried out (semantics 2.7)."""
    scheduled, phase = session.gangs.scheduled(gang), session.phase[gang]
    if scheduled >= session.gangs.least[gang] and scheduled:
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
