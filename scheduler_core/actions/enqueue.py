"""Action ``enqueue``: which gangs may ask for room at all.

Gangs that were admitted earlier are tested again first (pitfall 16: quotas may have shrunk since), then the waiting
ones. Each gang is tested once; one that is refused does not hold up those behind it.
Source: volcano-semantics 3.1.
"""

from __future__ import annotations

from typing import ClassVar

from scheduler_core.actions.support.admission import count_elastic, renew_promise
from scheduler_core.actions.support.rotation import Rotation
from scheduler_core.framework.demand import Shortfall
from scheduler_core.framework.plugin import Action
from scheduler_core.framework.session import Session
from scheduler_core.model.podgroup import GangPhase


class Enqueue(Action):
    """Pending -> Inqueue, and back where the promise no longer holds."""

    name: ClassVar[str] = "enqueue"

    def execute(self, session: Session) -> None:
        """Test every admitted and every waiting gang once, O(gangs log gangs)."""
        count_elastic(session)
        for phase in (GangPhase.INQUEUE, GangPhase.PENDING):
            found = [g for g in session.phase.where(phase) if session.schedulable(g)]
            rotation = Rotation(session, found)
            while (queue := rotation.best_queue()) is not None:
                self._test(session, rotation.pop(queue))

    def _test(self, session: Session, gang: int) -> None:
        refusal = session.hooks.vote("job_enqueueable", gang, session.minimum(gang))
        if refusal is None:
            session.phase[gang] = GangPhase.INQUEUE
            session.hooks.call_all("job_enqueued", gang)
            renew_promise(session, gang)
            return
        session.phase[gang] = GangPhase.PENDING
        if isinstance(refusal, Shortfall):
            session.trace.enqueue_refusals[gang] = refusal
