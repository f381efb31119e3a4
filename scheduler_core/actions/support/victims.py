"""Who may be taken in a session, and what each would give back.

Hard rules (contracts 3.2) hold whatever plugins say: system pods stay, ``volcano.sh/preemptable: "false"`` on the pod
or its PodGroup is respected, queues that are not reclaimable keep theirs. What is left goes to the plugins' vote.
"""

from __future__ import annotations

import math

import msgspec

from scheduler_core.algorithms.protection import system_rule
from scheduler_core.algorithms.victims import Freed, Unit
from scheduler_core.framework.session import Session
from scheduler_core.model.podgroup import EvictedPolicy
from scheduler_core.state.status import ALLOCATED, CHARGED, RUNNING, Bools
from scheduler_core.state.task_class import TaskClass


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
        self._units: dict[int, dict[tuple[tuple[int, ...], ...], Unit]] = {}

    def forget(self, gang: int) -> None:
        """The gang has changed."""
        self._rules.pop(gang, None)
        self._units.pop(gang, None)
        self._holdings.pop(gang, None)

    def near(self, useful: Bools, within: Bools) -> list[int]:
        """Gangs that run on a useful node and have a member in place where a task could fit, in order of name.

        Args:
            useful, within: bool (N,), from :class:`Reach`. O(tasks).
        """
        if not within.any():
            return []
        tasks = self._session.tasks
        placed = tasks.live & CHARGED[tasks.status] & (tasks.gang >= 0) & (tasks.node >= 0)
        running = placed & (tasks.status == RUNNING) & useful[tasks.node]
        holding = placed & within[tasks.node]
        return sorted(set(tasks.gang[running].tolist()) & set(tasks.gang[holding].tolist()))

    def rule(self, gang: int, reclaimer_queue: int) -> str | None:
        """The hard rule that protects a gang, or None."""
        if self._session.queue_of(gang) == reclaimer_queue:
            return "same queue"
        if gang not in self._rules:
            self._rules[gang] = self._hard_rule(gang)
        return self._rules[gang]

    def _hard_rule(self, gang: int) -> str | None:
        session = self._session
        queue = session.queue_of(gang)
        if queue < 0 or not session.ledger.queues[queue].reclaimable:
            return "queue is not reclaimable"
        if session.gangs.count(gang, ALLOCATED):
            return "was given room in this session"
        if session.group(gang).preemptable is False:
            return 'PodGroup says volcano.sh/preemptable: "false"'
        if session.group(gang).spared:
            return session.group(gang).spared
        for task in self.holding(gang).members:
            rule = system_rule(session.tasks.pod(task))
            if rule is not None:
                return rule
        holding = self.holding(gang)
        if not holding.whole and not holding.singles:
            return 'pod says volcano.sh/preemptable: "false"'
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
        """Work that eviction destroys: milli-cards x milliseconds since the pod started, as an exact integer."""
        tasks = self._session.tasks
        started = float(tasks.started[task])
        if math.isnan(started):
            started = tasks.pod(task).created
        return max(0, round((self._session.now - started) * 1000)) * self._session.cluster.class_of(task).milli

    def units(self, gang: int, cls: TaskClass, allowed: frozenset[int]) -> list[Unit]:
        """What of a gang may be taken by a task class, given the tasks that the plugins allow."""
        holding = self.holding(gang)
        found = []
        if holding.whole and all(task in allowed for task in holding.members):
            found.append(self._unit(gang, cls, holding.members, 0))
        if holding.spare:
            found += [self._unit(gang, cls, (task,), holding.spare) for task in holding.singles if task in allowed]
        return found

    def _unit(self, gang: int, cls: TaskClass, members: tuple[int, ...], spare: int) -> Unit:
        known = self._units.setdefault(gang, {})
        # What it frees is told by resource row and card type: classes that ask for the same of them share the answer.
        key = (cls.rows, cls.cards, members)
        if key not in known:
            known[key] = self._make_unit(gang, cls, members, spare)
        return known[key]

    def _make_unit(self, gang: int, cls: TaskClass, members: tuple[int, ...], spare: int) -> Unit:
        session = self._session
        tasks, name = session.tasks, session.gangs.names[gang]
        frees: dict[int, Freed] = {}
        size = work = 0
        for task in members:
            victim = session.cluster.class_of(task)
            size += victim.milli if cls.milli else victim.cpu_milli
            work += self.work_lost(task)
            node = int(tasks.node[task])
            if node < 0:
                continue
            freed = frees.get(node)
            plain = tuple(int(victim.request[row]) for row in cls.rows)
            each = victim.share or 1000
            card = int(tasks.card[task])
            cards = tuple(
                tuple((i, each) for i in tasks.indices[task]) if option == card else () for option in cls.cards
            )
            if freed is not None:
                plain = tuple(a + b for a, b in zip(freed.free, plain, strict=True))
                cards = tuple(a + b for a, b in zip(freed.cards, cards, strict=True))
            frees[node] = Freed(plain, cards)
        queue = session.ledger.queues[session.queue_of(gang)]
        label = f"{name} {tasks.keys[members[0]]}" if spare else name
        return Unit(label, name, (queue.priority, session.group(gang).priority), work, size, members, frees, spare)


def cards_of(session: Session, tasks: tuple[int, ...]) -> dict[str, int]:
    """Milli-cards by type that tasks hold."""
    cards: dict[str, int] = {}
    for task in tasks:
        card = int(session.tasks.card[task])
        if card >= 0:
            name = session.axes.cards[card]
            cards[name] = cards.get(name, 0) + session.cluster.class_of(task).milli
    return cards
