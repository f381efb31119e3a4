"""What may be taken of a gang: all of it, or single members that it can spare."""

from collections.abc import Iterable, Sequence

from scheduler_core.actions.support.guards import Guards
from scheduler_core.algorithms.victims import Unit
from scheduler_core.framework.session import Session
from scheduler_core.state.status import RUNNING


def asks_for_cards(session: Session, tasks: Iterable[int]) -> bool:
    """Whether one of the tasks asks for cards; what is freed for them is then counted in cards, else in cpu."""
    return any(session.cluster.class_of(task).milli for task in tasks)


def bundle(session: Session, guards: Guards, members: Sequence[int], spare: int = 0, *, in_cards: bool = True) -> Unit:
    """One bundle of tasks of one gang; with ``spare`` a single member, else the whole gang."""
    key = (tuple(members), spare, in_cards)
    known = guards.units.get(key)
    if known is None:
        known = guards.units[key] = _make(session, guards, *key)
    return known


def _make(session: Session, guards: Guards, members: tuple[int, ...], spare: int, in_cards: bool) -> Unit:
    tasks, classes = session.tasks, session.cluster.class_of
    gang = int(tasks.gang[members[0]])
    name = session.gangs.names[gang]
    queue = session.ledger.queues[session.queue_of(gang)]
    return Unit(
        name=f"{name} {tasks.keys[members[0]]}" if spare else name,
        gang=name,
        level=(queue.priority, session.group(gang).priority),
        work=sum(guards.work_lost(task) for task in members),
        size=sum(classes(task).milli if in_cards else classes(task).cpu_milli for task in members),
        members=members,
        spare=spare,
    )


def in_order_of_taking(session: Session, guards: Guards, gangs: Iterable[int]) -> list[int]:
    """Members in place as they would be taken: the lowest gang first, in it the lowest pod with the least work."""
    tasks, queues = session.tasks, session.ledger.queues

    def of_gang(gang: int) -> tuple[int, int, str]:
        return queues[session.queue_of(gang)].priority, session.group(gang).priority, session.gangs.names[gang]

    def of_task(task: int) -> tuple[int, int, str]:
        return int(tasks.priority[task]), guards.work_lost(task), tasks.keys[task]

    return [task for gang in sorted(gangs, key=of_gang) for task in sorted(guards.holding(gang).members, key=of_task)]


def bundles(
    session: Session, guards: Guards, gang: int, allowed: frozenset[int], *, in_cards: bool = True
) -> list[Unit]:
    """All that may be taken of a gang, given the tasks that plugins allow (contracts 3.2)."""
    holding = guards.holding(gang)
    found = []
    if holding.whole and allowed.issuperset(holding.members):
        found.append(bundle(session, guards, holding.members, in_cards=in_cards))
    if holding.spare:
        free = [task for task in holding.singles if task in allowed and session.tasks.status[task] == RUNNING]
        found += [bundle(session, guards, (task,), holding.spare, in_cards=in_cards) for task in free]
    return found
