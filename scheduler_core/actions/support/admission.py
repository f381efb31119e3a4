"""Which gangs are admitted (phase Inqueue) and what that promises in the ledger."""

from __future__ import annotations

import numpy as np

from scheduler_core.framework.demand import Demand
from scheduler_core.framework.session import Session
from scheduler_core.model.podgroup import GangPhase
from scheduler_core.state.axes import CPU, LEDGER_CARDS, MEMORY
from scheduler_core.state.status import CHARGED, TaskStatus


def promise(session: Session, gang: int, demand: Demand, sign: int = 1) -> None:
    """Note in the ledger what an admitted gang still needs up to its minimum."""
    ledger, queue = session.ledger, session.queue_of(gang)
    ledger.inqueue[CPU, queue] += sign * demand.cpu_milli
    ledger.inqueue[MEMORY, queue] += sign * demand.memory_mib
    choices = ledger.inqueue_choices[queue]
    for choice, milli in demand.all_cards().items():
        if len(choice) == 1:
            ledger.inqueue[LEDGER_CARDS + choice[0], queue] += sign * milli
        else:
            left = choices.get(choice, 0) + sign * milli
            if left:
                choices[choice] = left
            else:
                choices.pop(choice, None)


def count_elastic(session: Session) -> None:
    """Sum what gangs have beyond their minimum: the members that could go without breaking minMember.

    Within a gang the members that count as its minimum are the first by name. O(tasks log tasks).
    """
    tasks, gangs, ledger, charge = session.tasks, session.gangs, session.ledger, session.cluster.charge
    ledger.elastic[:] = 0
    allocated = gangs.counts[CHARGED].sum(axis=0)
    surplus = allocated - np.maximum(0, gangs.min_member - gangs.counts[TaskStatus.SUCCEEDED])
    for gang in np.flatnonzero((surplus > 0) & (gangs.queue >= 0)).tolist():
        members = [t for t in gangs.members(gang) if CHARGED[tasks.status[t]]]
        count = int(surplus[gang])
        if count < len(members):
            members.sort(key=tasks.keys.__getitem__)
            members = members[-count:]
        queue = session.queue_of(gang)
        for task in members:
            cls = int(tasks.cls[task])
            ledger.elastic[CPU, queue] += charge[0, cls]
            ledger.elastic[MEMORY, queue] += charge[1, cls]
            if tasks.card[task] >= 0:
                ledger.elastic[LEDGER_CARDS + tasks.card[task], queue] += charge[2, cls]


def renew_promise(session: Session, gang: int) -> None:
    """Bring the promise to a gang up to what it needs now."""
    before = session.promised.pop(gang, None)
    if before is not None:
        promise(session, gang, before, -1)
    if session.phase[gang] is GangPhase.INQUEUE and session.queue_of(gang) >= 0:
        demand = session.minimum(gang)
        promise(session, gang, demand)
        session.promised[gang] = demand
