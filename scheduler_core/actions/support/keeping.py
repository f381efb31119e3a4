"""What stays of an attempt that came to something: places, admission, the record, the promise beyond the session."""

from scheduler_core.actions.allocate import hold_back
from scheduler_core.actions.support.admission import renew_promise
from scheduler_core.actions.support.attempt import Attempt, record
from scheduler_core.actions.support.guards import Guards
from scheduler_core.actions.support.reservations import reserve
from scheduler_core.framework.session import Session
from scheduler_core.model.podgroup import GangPhase


def keep(
    session: Session, attempt: Attempt, guards: Guards, *, action: str, rule: str, verb: str, seconds: float
) -> None:
    """Commit the attempt's statement and write down what it means. ``action``, ``rule``, ``verb``: for the record.
    ``seconds``: how long freed room stays promised; 0 = not beyond the session."""
    gang = attempt.gang
    lost = {task: guards.work_lost(task) for unit in attempt.units for task in unit.members}
    session.commit(attempt.statement)
    for unit in attempt.units:
        guards.forget(int(session.tasks.gang[unit.members[0]]))
    guards.forget(gang)
    if session.phase[gang] is GangPhase.PENDING:
        session.phase[gang] = GangPhase.INQUEUE
        session.trace.enqueue_refusals.pop(gang, None)
        session.hooks.call_all("job_enqueued", gang)
    if not session.is_ready(gang):
        hold_back(session, gang)
    renew_promise(session, gang)
    if attempt.units:
        record(session, action, attempt, lost, rule=rule, verb=verb)
        if seconds:
            reserve(session, gang, lost, seconds)
