"""The end of a session: what the tables say becomes the result."""

from __future__ import annotations

import numpy as np

from scheduler_core.framework.session import Session
from scheduler_core.model.decision import Bind, GangOutcome, QueueOutcome, Result
from scheduler_core.model.podgroup import GangCondition, GangPhase
from scheduler_core.model.reason import Reason
from scheduler_core.model.resources import Amount
from scheduler_core.state.queue_ledger import NO_LIMIT
from scheduler_core.state.status import Ints, TaskStatus

_FINISHED = (TaskStatus.SUCCEEDED, TaskStatus.FAILED)
_OWN_CONDITIONS = ("Unschedulable", "Scheduled")


def close(session: Session, reasons: dict[int, Reason], positions: dict[int, int], timings: dict[str, float]) -> Result:
    """Read the result off the tables; every list sorted by name. O(tasks + gangs + queues)."""
    trace = session.trace
    return Result(
        now=session.now,
        binds=_placed(session, TaskStatus.ALLOCATED),
        evictions=tuple(sorted(trace.evictions, key=lambda eviction: eviction.pod)),
        pipelined=_placed(session, TaskStatus.PIPELINED),
        podgroups=_gangs(session, reasons, positions),
        queues=_queues(session),
        reclaims=tuple(sorted(trace.reclaims, key=lambda reclaim: (reclaim.reclaimer, reclaim.action))),
        reasons=tuple(sorted(reasons.values(), key=lambda reason: reason.podgroup)),
        events=tuple(sorted(trace.events, key=lambda event: (event.kind, event.name, event.reason, event.message))),
        timings_ms=timings,
    )


def _placed(session: Session, status: TaskStatus) -> tuple[Bind, ...]:
    tasks, axes = session.tasks, session.axes
    found = np.flatnonzero(tasks.live & (tasks.status == status)).tolist()
    binds = (
        Bind(
            tasks.keys[t],
            axes.nodes[tasks.node[t]],
            axes.cards[tasks.card[t]] if tasks.card[t] >= 0 else "",
            tasks.indices[t],
        )
        for t in found
    )
    return tuple(sorted(binds, key=lambda bind: bind.pod))


def phase_after(session: Session, gang: int) -> GangPhase:
    """Phase of a PodGroup once the session's decisions are carried out (semantics 2.7)."""
    gangs = session.gangs
    scheduled = gangs.scheduled(gang)
    if scheduled >= gangs.min_member[gang] and scheduled:
        finished = sum(gangs.count(gang, status) for status in _FINISHED)
        return GangPhase.COMPLETED if finished == scheduled else GangPhase.RUNNING
    if gangs.count(gang, TaskStatus.RUNNING):
        return GangPhase.UNKNOWN
    if session.phase[gang] is GangPhase.COMPLETED and not gangs.total(gang):
        return GangPhase.COMPLETED
    return GangPhase.INQUEUE if session.phase[gang] is GangPhase.INQUEUE else GangPhase.PENDING


def _gangs(session: Session, reasons: dict[int, Reason], positions: dict[int, int]) -> tuple[GangOutcome, ...]:
    gangs = session.gangs
    ready = gangs.counts[[TaskStatus.ALLOCATED, TaskStatus.BOUND, TaskStatus.RUNNING, TaskStatus.SUCCEEDED]].sum(axis=0)
    bound = gangs.counts[[TaskStatus.ALLOCATED, TaskStatus.BOUND, TaskStatus.RUNNING]].sum(axis=0)
    cards = _cards_by_gang(session)
    outcomes = []
    for gang, group in enumerate(gangs.groups):
        outcomes.append(
            GangOutcome(
                name=gangs.names[gang],
                queue=group.queue,
                service_type=session.service_type(gang).value,
                phase=phase_after(session, gang),
                min_member=group.min_member,
                ready=int(ready[gang]),
                bound=int(bound[gang]),
                conditions=_conditions(group.conditions, reasons.get(gang), int(ready[gang]) >= group.min_member),
                position=positions.get(gang),
                cards=cards.get(gang, {}),
                waiting_since=session.waiting_since(gang),
                priority=group.priority,
            )
        )
    return tuple(outcomes)


def _conditions(old: tuple[GangCondition, ...], reason: Reason | None, ready: bool) -> tuple[GangCondition, ...]:
    """Conditions of others stay; ours says whether the gang has what it needs to run."""
    kept = tuple(condition for condition in old if condition.type not in _OWN_CONDITIONS)
    if ready:
        return (*kept, GangCondition(type="Scheduled", reason="tasks in gang are ready to be scheduled"))
    if reason is not None:
        return (*kept, GangCondition(type="Unschedulable", reason=reason.code.value, message=reason.message))
    return kept


def _cards_by_gang(session: Session) -> dict[int, dict[str, int]]:
    """Milli-cards by type that each gang's members hold or ask for (a waiting member at its first choice)."""
    tasks, classes, axes = session.tasks, session.cluster.classes, session.axes
    milli: Ints = np.array([c.milli for c in classes.classes] or [0], dtype=np.int64)
    first = np.array([c.cards[0] if c.cards else -1 for c in classes.classes] or [-1], dtype=np.int64)
    finished = np.isin(tasks.status, [int(status) for status in _FINISHED])
    at = np.flatnonzero(tasks.live & (tasks.gang >= 0) & ~finished & (milli[tasks.cls] > 0))
    card = np.where(tasks.card[at] >= 0, tasks.card[at], first[tasks.cls[at]])
    at, card = at[card >= 0], card[card >= 0]
    count = len(axes.cards)
    if not count:
        return {}
    sums = np.zeros(len(session.gangs) * count, dtype=np.int64)
    np.add.at(sums, tasks.gang[at].astype(np.int64) * count + card, milli[tasks.cls[at]])
    found: dict[int, dict[str, int]] = {}
    for flat in np.flatnonzero(sums).tolist():
        found.setdefault(flat // count, {})[axes.cards[flat % count]] = int(sums[flat])
    return found


def _queues(session: Session) -> tuple[QueueOutcome, ...]:
    ledger = session.ledger
    inqueue = _inqueue_amounts(session)
    outcomes = []
    for q, queue in enumerate(ledger.queues):
        quota = ledger.quota(q)
        outcomes.append(
            QueueOutcome(
                name=queue.name,
                state=queue.state.value,
                quota=quota,
                allocated=ledger.amount(ledger.allocated[:, q]),
                inqueue=inqueue[q],
                elastic=ledger.amount(ledger.elastic[:, q]),
                deserved=quota,
                share=_share(session, q),
            )
        )
    return tuple(outcomes)


def _inqueue_amounts(session: Session) -> list[Amount]:
    """Promised to admitted gangs and not in use yet; choices under the name ``A|B``."""
    ledger, axes = session.ledger, session.axes
    amounts = []
    for q in range(len(ledger)):
        amount = ledger.amount(np.maximum(ledger.inqueue[:, q], 0))
        for choice, milli in sorted(ledger.inqueue_choices[q].items()):
            amount = amount + Amount.of_cards({"|".join(axes.cards[card] for card in choice): milli})
        amounts.append(amount)
    return amounts


def _share(session: Session, queue: int) -> float:
    """Largest used part of a limit, rounded so that every processor prints the same."""
    ledger = session.ledger
    share = 0.0
    for row, limit in enumerate(ledger.capability[:, queue].tolist()):
        used = int(ledger.allocated[row, queue])
        if used > 0 and limit < NO_LIMIT:
            share = max(share, used / limit if limit else 1.0)
    return round(share, 6)
