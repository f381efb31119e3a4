"""Who stays whatever plugins say, for the actions that take by priority or send away (contracts 3.2). With
``compatibility: volcano`` only what upstream itself looks at is left: the pod's own ``volcano.sh/preemptable``."""

from scheduler_core.actions.support.victims import Holding, Victims
from scheduler_core.algorithms.protection import system_rule
from scheduler_core.algorithms.victims import Unit
from scheduler_core.framework.session import Session
from scheduler_core.model.rules import Rule
from scheduler_core.state.status import ALLOCATED

_PROTECTED = Rule.POD_PROTECTED.text()


class Guards:
    """The hard rules for gangs and their members, with what each gang could lose; for one action."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._victims = Victims(session)
        self._rules: dict[int, str | None] = {}
        self._work: dict[int, int] = {}
        # What was made of members, by them, by how many may go, and by what they are counted in; it never changes.
        self.units: dict[tuple[tuple[int, ...], int, bool], Unit] = {}

    def forget(self, gang: int) -> None:
        self._victims.forget(gang)
        self._rules.pop(gang, None)

    def holding(self, gang: int) -> Holding:
        """Members in place and which of them may go."""
        return self._victims.holding(gang)

    def work_lost(self, task: int) -> int:
        """Work that eviction destroys, milli-cards x milliseconds."""
        known = self._work.get(task)
        if known is None:
            known = self._work[task] = self._victims.work_lost(task)
        return known

    def rule(self, gang: int) -> str | None:
        """Why no member of the gang may be taken, or None."""
        if gang not in self._rules:
            self._rules[gang] = self._find(gang)
        return self._rules[gang]

    def _find(self, gang: int) -> str | None:
        session = self._session
        holding = self.holding(gang)
        if session.gangs.count(gang, ALLOCATED):
            return Rule.GIVEN_ROOM.text()
        if session.group(gang).spared:
            return session.group(gang).spared
        if not session.compat:
            if session.group(gang).preemptable is False:
                return Rule.GANG_PROTECTED.text()
            for task in holding.members:
                rule = system_rule(session.tasks.pod(task))
                if rule is not None:
                    return rule
        if holding.members and session.tasks.protected[list(holding.members)].all():
            return _PROTECTED
        return None
