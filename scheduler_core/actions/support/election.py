"""Electing the one gang that nodes are kept for, and giving it up again."""

from scheduler_core.actions.support.admission import renew_promise
from scheduler_core.framework.session import Session
from scheduler_core.model.memory import Election
from scheduler_core.model.podgroup import GangPhase
from scheduler_core.model.reason import ReasonCode


def starves(session: Session, gang: int) -> bool:
    """True for a gang that is as it should be and still lacks members of its minimum, promises counted as there. A Job
    whose pods are made after admission starves too while it is not admitted."""
    if not session.needed(gang) or not session.schedulable(gang):
        return False
    if session.gangs.pending(gang) and session.hooks.refusal("job_valid", gang) is None:
        return True
    return session.group(gang).waits_for_admission and session.phase[gang] is GangPhase.PENDING


def target(session: Session) -> int | None:
    """The elected gang while it starves; else no gang is elected any more."""
    if session.election is None:
        return None
    name = session.election.gang
    found = next((gang for gang, other in enumerate(session.gangs.names) if other == name), None)
    if found is None or not starves(session, found):
        session.election = None
        return None
    return found


def elect(session: Session) -> int | None:
    """The gang that is elected, or a newly elected one; None when no gang needs it. O(gangs) and what the plugin takes
    to choose."""
    standing = target(session)
    if standing is not None:
        return standing
    waiting = [gang for gang in range(len(session.gangs)) if starves(session, gang)]
    if not waiting:
        return None
    chosen: int | None = session.hooks.first("target_job", waiting)
    if chosen is not None:
        session.election = Election(gang=session.gangs.names[chosen], since=session.now)
    return chosen


def admit(session: Session, gang: int) -> None:
    """Let the elected gang in where only the cluster's room kept it out: that room is what is being made."""
    refusal = session.trace.enqueue_refusals.get(gang)
    if session.phase[gang] is GangPhase.PENDING and refusal is not None and refusal.code is ReasonCode.OVER_COMMITTED:
        session.phase[gang] = GangPhase.INQUEUE
        session.trace.enqueue_refusals.pop(gang)
        session.hooks.call_all("job_enqueued", gang)
        renew_promise(session, gang)
