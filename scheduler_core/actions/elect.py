"""Action ``elect``: which gang nodes are kept for, so that it does not starve.

One gang at a time, for as long as it waits: extension point target_job chooses it (plugin ``reservation``: the highest
priority, then the longest waiting). Action ``reserve`` then locks its nodes. Placed before allocate the elected gang
is also admitted where only over-commitment kept it out. Source: document 002, contracts 4."""

from typing import ClassVar

from scheduler_core.actions.support.election import admit, elect
from scheduler_core.framework.plugin import Action
from scheduler_core.framework.session import Session


class Elect(Action):
    name: ClassVar[str] = "elect"

    def execute(self, session: Session) -> None:
        """Keep the target while it starves, else choose one."""
        chosen = elect(session)
        if chosen is not None:
            admit(session, chosen)
