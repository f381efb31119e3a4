"""Action ``gangreclaim``: take back for a whole gang at once from other queues, surplus before gangs.

Bundles, their order and the repairs: :mod:`scheduler_core.actions.support.gang_raid`. The tide table guards it as it
guards reclaim (contracts 3.2). Upstream's design says not to combine it with preempt and reclaim.
Source: volcano-semantics 3.6."""

from typing import ClassVar

from scheduler_core.actions.support.gang_raid import ARGUMENTS, GangRaid, Terms
from scheduler_core.actions.support.rotation import Rotation
from scheduler_core.actions.support.starving import starves
from scheduler_core.framework.plugin import Action, Argument
from scheduler_core.framework.session import Session
from scheduler_core.model.rules import Rule


class GangReclaim(Action):
    name: ClassVar[str] = "gangreclaim"
    arguments: ClassVar[tuple[Argument, ...]] = ARGUMENTS

    def execute(self, session: Session) -> None:
        """Queues and gangs take turns; each gang is tried once."""
        raid = GangRaid(
            session,
            Terms(
                action=self.name, rule=Rule.GANG_RECLAIMS.text(), verb="takes back", across=True,
                allow_whole=bool(self.values["allowWholeBundle"]), seconds=float(self.values["reservationSeconds"]),
            ),
        )  # fmt: skip
        starving = [gang for gang in session.gangs.with_tasks_to_place() if self._starves(session, gang)]
        rotation = Rotation(session, starving)
        while (queue := rotation.best_queue()) is not None:
            if session.hooks.any_true("overused", queue):
                rotation.drop(queue)
                continue
            raid.take_for(rotation.pop(queue))

    def _starves(self, session: Session, gang: int) -> bool:
        return session.hooks.refusal("reclaimer", gang) is None and starves(session, gang)
