"""Which nodes could serve a task if others left."""

import numpy as np

from scheduler_core.framework.session import Session
from scheduler_core.state.status import Bools
from scheduler_core.state.task_class import TaskClass


def useful_nodes(session: Session, cls: TaskClass, limits: list[int], task: int) -> Bools:
    """bool (N,): nodes that only other pods keep from a task, with a card of a type that the quota allows. ``limits``:
    tasks that the quota allows, by card option. ``task``: one of the class, for what plugins say of it alone."""
    allowed = session.candidates.view(cls).curable
    for _, only, *_ in session.candidates.said_of(task):
        allowed = allowed & only
    if not cls.milli:
        return allowed
    mask: Bools = np.zeros_like(allowed)
    for option, card in enumerate(cls.cards):
        if limits[option]:
            mask |= session.cards.count[card] > 0
    return mask & allowed
