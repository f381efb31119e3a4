"""Which gangs ask others to make room."""

from scheduler_core.actions.allocate import is_candidate
from scheduler_core.framework.session import Session
from scheduler_core.model.podgroup import GangPhase


def starves(session: Session, gang: int) -> bool:
    """A task waits and plugins say so; the gang is admitted, or only an amount keeps it out, which others may free.
    Upstream passes over gangs that are not admitted, so that a full queue shuts higher priorities out (pitfall 1)."""
    if not session.gangs.pending(gang):
        return False
    if session.phase[gang] is GangPhase.PENDING:
        if session.compat or gang not in session.trace.enqueue_refusals or not session.schedulable(gang):
            return False
        if session.hooks.refusal("job_valid", gang) is not None:
            return False
    elif not is_candidate(session, gang):
        return False
    return session.hooks.first_tier_all("job_starving", gang)
