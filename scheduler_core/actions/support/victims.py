"""Who may be taken in a session, and what each would give back. Hard rules (contracts 3.2) hold whatever plugins say:
system pods stay, ``volcano.sh/preemptable: "false"`` on the pod or its PodGroup is respected, queues that are not
reclaimable keep theirs. What is left goes to the plugins' vote."""

import math

import msgspec

from scheduler_core.algorithms.protection import system_rule
from scheduler_core.framework.session import Session
from scheduler_core.model.podgroup import EvictedPolicy
from scheduler_core.model.rules import Rule
from scheduler_core.state.status import ALLOCATED, CHARGED, RUNNING


class Holding(msgspec.Struct, frozen=True, gc=False):
    """A gang that could be taken: all its members in place, those that may go alone, and how many of them."""

    gang: int
    members: tuple[int, ...]
    singles: tuple[int, ...]
    spare: int
    whole: bool


class Victims:
    """Candidates of one session; what was found out about a gang is kept until it changes."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._rules: dict[int, str | None] = {}
        self._holdings: dict[int, Holding] = {}

    def resting(self) -> list[int]:
        """Gangs that are left alone for a while beyond what their PodGroups say."""
        return []

    def forget(self, gang: int) -> None:
        self._rules.pop(gang, None)
        self._holdings.pop(gang, None)

    def rule(self, gang: int, reclaimer_queue: int) -> str | None:
        """The hard rule that protects a gang, or None."""
        if self._session.queue_of(gang) == reclaimer_queue:
            return Rule.SAME_QUEUE.text()
        if gang not in self._rules:
            self._rules[gang] = self._hard_rule(gang)
        return self._rules[gang]

    def _hard_rule(self, gang: int) -> str | None:
        session = self._session
        queue = session.queue_of(gang)
        if queue < 0 or not session.ledger.queues[queue].reclaimable:
            return Rule.NOT_RECLAIMABLE.text()
        if session.gangs.count(gang, ALLOCATED):
            return Rule.GIVEN_ROOM.text()
        if session.group(gang).preemptable is False:
            return Rule.GANG_PROTECTED.text()
        if session.group(gang).spared:
            return session.group(gang).spared
        for task in self.holding(gang).members:
            rule = system_rule(session.tasks.pod(task))
            if rule is not None:
                return rule
        holding = self.holding(gang)
        if not holding.whole and not holding.singles:
            return Rule.POD_PROTECTED.text()
        return None

    def holding(self, gang: int) -> Holding:
        """Members in place and which of them may go."""
        known = self._holdings.get(gang)
        if known is not None:
            return known
        session = self._session
        tasks, gangs = session.tasks, session.gangs
        members = [t for t in gangs.members(gang) if CHARGED[tasks.status[t]]]
        members.sort(key=tasks.keys.__getitem__)
        free = [t for t in members if not tasks.protected[t]]
        spare = 0
        if session.group(gang).evicted_policy is EvictedPolicy.NONE:
            spare = max(0, gangs.ready(gang) - int(gangs.min_member[gang]))
        singles = tuple(t for t in free if tasks.status[t] == RUNNING) if spare else ()
        known = Holding(gang, tuple(members), singles, spare, whole=bool(members) and len(free) == len(members))
        self._holdings[gang] = known
        return known

    def work_lost(self, task: int) -> int:
        """Work that eviction destroys."""
        return work_lost(self._session, task)


def work_lost(session: Session, task: int) -> int:
    """Work that eviction destroys: milli-cards x milliseconds since the pod started, as an exact integer."""
    tasks = session.tasks
    started = float(tasks.started[task])
    if math.isnan(started):
        started = tasks.pod(task).created
    return max(0, round((session.now - started) * 1000)) * session.cluster.class_of(task).milli
