"""Which gangs are admitted (phase Inqueue) and what that promises in the ledger."""

import numpy as np

from scheduler_core.algorithms.tallies import beyond_minimum
from scheduler_core.framework.demand import Demand
from scheduler_core.framework.session import Session
from scheduler_core.model.podgroup import GangPhase
from scheduler_core.state.axes import CPU, LEDGER_CARDS, MEMORY
from scheduler_core.state.phases import PHASE_INQUEUE
from scheduler_core.state.status import CHARGED, FAILED, PIPELINED, SUCCEEDED, Bools, Index, Ints


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
    """Sum what gangs have beyond their minimum: the members that could go without breaking minMember. Within a gang the
    members that count as its minimum are the first by name. O(tasks), and a sort for those gangs only whose members
    differ."""
    tasks, gangs, ledger = session.tasks, session.gangs, session.ledger
    ledger.elastic[:] = 0
    mixed, surplus = beyond_minimum(
        gangs.counts, gangs.min_member, SUCCEEDED, CHARGED, tasks.status, tasks.cls, tasks.card, gangs.start,
        gangs.member, gangs.queue, session.cluster.charge, ledger.elastic,
    )  # fmt: skip
    for other in np.flatnonzero(mixed).tolist():
        members = sorted((t for t in gangs.members(other) if CHARGED[tasks.status[t]]), key=tasks.keys.__getitem__)
        spare = np.array(members[-int(surplus[other]) :], dtype=np.int64)
        _add_elastic(session, spare, np.full(spare.size, gangs.queue[other]), np.ones(spare.size, dtype=np.int64))


def _add_elastic(session: Session, tasks: Ints, queue: Index, times: Ints) -> None:
    """Add ``times`` the charge of each task to the elastic part of its queue."""
    table, elastic, charge = session.tasks, session.ledger.elastic, session.cluster.charge
    cls, card = table.cls[tasks], table.card[tasks].astype(np.int64)
    np.add.at(elastic[CPU], queue, charge[0, cls] * times)
    np.add.at(elastic[MEMORY], queue, charge[1, cls] * times)
    held = card >= 0
    np.add.at(elastic, (LEDGER_CARDS + card[held], queue[held]), (charge[2, cls] * times)[held])


def renew_promise(session: Session, gang: int) -> None:
    """Bring the promise to a gang up to what it needs now."""
    withdraw_promise(session, gang)
    if session.phase[gang] is GangPhase.INQUEUE and session.queue_of(gang) >= 0:
        promise_to(session, gang, session.minimum(gang))


def renew_promises(session: Session) -> None:
    """Bring the promises to all admitted gangs up to what they need now; O(gangs that need or have something)."""
    gangs = session.gangs
    needs = gangs.min_member > gangs.ready_count + gangs.counts[PIPELINED]
    admitted = session.phase.codes == PHASE_INQUEUE
    doubtful = session.columns.questionable | (gangs.counts[[SUCCEEDED, FAILED]].sum(axis=0) > 0)
    for gang in np.flatnonzero(admitted & needs & doubtful).tolist():
        needs[gang] = not session.never_starts(gang)
    withdraw_promises(session, admitted & ~needs)
    for gang in np.flatnonzero(admitted & needs).tolist():
        renew_promise(session, gang)


def promise_to(session: Session, gang: int, demand: Demand) -> None:
    """Promise a gang of an existing queue, to which nothing is promised, what it asks for."""
    promise(session, gang, demand)
    session.promised[gang] = demand


def withdraw_promise(session: Session, gang: int) -> None:
    """Take back what is promised to a gang, if anything is."""
    before = session.promised.pop(gang, None)
    if before is not None:
        promise(session, gang, before, -1)


def withdraw_promises(session: Session, gangs: Bools) -> None:
    """Take back what is promised to the given gangs, bool (G,)."""
    for gang in session.promised.take_back(gangs, session.gangs.queue, session.ledger):
        withdraw_promise(session, gang)
