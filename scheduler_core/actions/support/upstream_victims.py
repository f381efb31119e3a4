"""What reclaim and preempt share where upstream's decisions are asked for: pods of one node, in upstream's order.
Source: volcano-semantics 1.6, 3.4, 3.5."""

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from scheduler_core.actions.support.attempt import Attempt
from scheduler_core.algorithms.victims import Unit
from scheduler_core.framework.candidates import Spot
from scheduler_core.framework.session import Session
from scheduler_core.state.status import BOUND, RUNNING


class PodsByNode:
    """Tasks that are bound or run, by node, by name; looked up once for an action."""

    def __init__(self, session: Session) -> None:
        tasks = session.tasks
        self._tasks = tasks
        self._by_node: dict[int, list[int]] = {}
        there = tasks.live & ((tasks.status == RUNNING) | (tasks.status == BOUND)) & (tasks.node >= 0)
        for task in np.flatnonzero(there & (tasks.gang >= 0)).tolist():
            self._by_node.setdefault(int(tasks.node[task]), []).append(task)
        for found in self._by_node.values():
            found.sort(key=tasks.keys.__getitem__)

    def on(self, node: int, statuses: Sequence[int], wanted: Callable[[int], bool]) -> list[int]:
        """Those that are still in one of the statuses, that the pod does not protect and that are ``wanted``."""
        tasks = self._tasks
        return [
            task
            for task in self._by_node.get(node, ())
            if int(tasks.status[task]) in statuses and not tasks.protected[task] and wanted(task)
        ]


def victim_order(session: Session, tasks: Iterable[int], queue: int) -> list[int]:
    """The order in which they are taken for a gang of ``queue``: by queue, then the last gang, then its last task."""
    gang_of, queue_of = session.tasks.gang, session.queue_of
    ordered = sorted(tasks, key=session.task_key, reverse=True)
    ordered.sort(key=lambda task: session.job_key(int(gang_of[task])), reverse=True)
    ordered.sort(key=lambda task: session.queue_key(queue_of(int(gang_of[task]))), reverse=True)
    ordered.sort(key=lambda task: session.hooks.key("victim_queue_order", queue_of(int(gang_of[task])), queue))
    return ordered


def spot_with_room(session: Session, task: int, node: int) -> Spot | None:
    """Where the task would be on the node once all that leaves has left, whatever its queue's quota."""
    cls = session.cluster.class_of(task)
    return session.candidates.spot_on(cls, node, [True] * max(1, len(cls.cards)), now=False)


def enough_in_sum(session: Session, task: int, node: int, victims: Iterable[int]) -> bool:
    """FutureIdle and what the victims hold cover the request, in sums."""
    cls, classes = session.cluster.class_of(task), session.cluster.class_of
    leaving = list(victims)
    for row in cls.rows:
        freed = sum(int(classes(other).request[row]) for other in leaving)
        if int(session.nodes.future[row, node]) + freed < int(cls.request[row]):
            return False
    if not cls.milli:
        return not cls.missing
    free = sum(int(session.cards.left_future[card, node]) for card in cls.cards)
    held = sum(classes(other).milli for other in leaving if int(session.tasks.card[other]) in cls.cards)
    return free + held >= cls.milli


def note_eviction(session: Session, attempt: Attempt, task: int) -> None:
    """Evict one pod for the attempt's gang; its siblings are left to their controller."""
    name = session.gangs.names[int(session.tasks.gang[task])]
    attempt.statement.evict(task)
    attempt.units.append(Unit(session.tasks.keys[task], name, (0, 0), 0, 0, (task,), 1))
