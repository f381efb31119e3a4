"""How many equal tasks a queue's quota still allows, by card type."""

from scheduler_core.framework.session import Session
from scheduler_core.state.axes import CPU, LEDGER_CARDS, MEMORY
from scheduler_core.state.task_class import TaskClass

_POINTS = ("preemptive", "allocatable")


def quota_room(session: Session, queue: int, cls: TaskClass, most: int) -> tuple[int, list[int]]:
    """Number of tasks in all (at most ``most``) and for each card option alone. The plugins are asked task by task
    while the ledger is charged for the ones before; the charges are taken back."""
    alone = [_fill(session, queue, cls, [card], most) for card in cls.cards or (-1,)]
    together = alone[0] if len(alone) == 1 else _fill(session, queue, cls, list(cls.cards), most)
    return together, alone


def _fill(session: Session, queue: int, cls: TaskClass, cards: list[int], most: int) -> int:
    column = session.ledger.pipelined[:, queue]
    before = column.copy()
    charge = session.cluster.charge[:, cls.index]
    count = 0
    open_cards = list(cards)
    while count < most and open_cards:
        card = open_cards[0]
        if any(session.hooks.refusal(point, queue, cls, card) is not None for point in _POINTS):
            open_cards.pop(0)
            continue
        column[CPU] += charge[0]
        column[MEMORY] += charge[1]
        if card >= 0:
            column[LEDGER_CARDS + card] += charge[2]
        count += 1
    column[:] = before
    return count
