"""Action ``gangpreempt``: take for a whole gang at once from lower gangs of its queue, surplus before gangs.

Bundles, their order and the repairs: :mod:`scheduler_core.actions.support.gang_raid`. Upstream's design says not to
combine it with preempt and reclaim. Source: volcano-semantics 3.6."""

from typing import ClassVar

from scheduler_core.actions.support.gang_raid import ARGUMENTS, GangRaid, Terms
from scheduler_core.actions.support.rotation import Rotation
from scheduler_core.actions.support.starving import starves
from scheduler_core.framework.plugin import Action, Argument
from scheduler_core.framework.session import Session
from scheduler_core.model.rules import Rule


class GangPreempt(Action):
    name: ClassVar[str] = "gangpreempt"
    arguments: ClassVar[tuple[Argument, ...]] = ARGUMENTS

    def execute(self, session: Session) -> None:
        """Queues and gangs take turns; each gang is tried once."""
        raid = GangRaid(
            session,
            Terms(
                action=self.name, rule=Rule.GANG_PREEMPTS.text(), verb="preempts for", across=False,
                allow_whole=bool(self.values["allowWholeBundle"]), seconds=float(self.values["reservationSeconds"]),
            ),
        )  # fmt: skip
        rotation = Rotation(session, [g for g in session.gangs.with_tasks_to_place() if starves(session, g)])
        while (queue := rotation.best_queue()) is not None:
            raid.take_for(rotation.pop(queue))
