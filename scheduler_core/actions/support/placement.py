"""Giving tasks of a gang a place, one by one, within quota and predicates."""

from scheduler_core.framework.candidates import Spot
from scheduler_core.framework.demand import Shortfall
from scheduler_core.framework.session import Session
from scheduler_core.framework.statement import Statement
from scheduler_core.state.task_class import TaskClass


def allowed_options(
    session: Session, queue: int, cls: TaskClass, point: str = "allocatable", *, task: int = -1
) -> tuple[list[bool], Shortfall | None]:
    """Which card types of the request the queue's quota has room for, and the first refusal. One entry for a class that
    asks for no card. ``task``: whose request it is, -1 = that of any task of the class."""
    session.asked_task = task
    options, first = [], None
    for card in cls.cards or (-1,):
        refusal = session.hooks.refusal(point, queue, cls, card)
        options.append(refusal is None)
        if refusal is not None and first is None:
            first = refusal
    return options, first


def take(statement: Statement, task: int, spot: Spot) -> None:
    """Allocate where the spot is free now, else pipeline."""
    if spot.now:
        statement.allocate(task, spot.node, spot.card, spot.indices)
    else:
        statement.pipeline(task, spot.node, spot.card, spot.indices)


def place(
    session: Session, statement: Statement, task: int, *, now: bool = True, future: bool = True,
    point: str = "allocatable",
) -> Spot | None:  # fmt: skip
    """Find the best spot for one task and take it; None when there is none. ``now``, ``future``: whether spots that are
    free now, or only once something has left, will do."""
    gang = int(session.tasks.gang[task])
    cls = session.cluster.class_of(task)
    options, _ = allowed_options(session, session.queue_of(gang), cls, point, task=task)
    if not any(options):
        return None
    spot = session.candidates.best(cls, options, now=now, future=future, task=task)
    if spot is None:
        return None
    take(statement, task, spot)
    return spot
