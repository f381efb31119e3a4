"""One gang's attempt to take something back, and the record of it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from scheduler_core.actions.support.falls import Fall, leavers, rule_of, tell
from scheduler_core.algorithms.victims import Unit
from scheduler_core.framework.combine import Verdict
from scheduler_core.framework.gang_votes import GangVerdict
from scheduler_core.framework.session import Session
from scheduler_core.framework.statement import Statement
from scheduler_core.model.decision import Refusal
from scheduler_core.model.resources import Amount

# A record names at most so many candidates that were refused; in a large cluster nearly everybody is one.
MAX_REFUSED = 100


class Attempt:
    """What one gang's reclaim has gathered so far.

    Attributes:
        units: who leaves. placed: tasks that have a place; backed: those of them that needed somebody to leave.
        verdict: the plugins' votes. refused: rule by candidate gang.
        touched: gangs that were taken at some point of the attempt, also those that were let go again.
    """

    def __init__(self, gang: int, statement: Statement) -> None:
        self.gang, self.statement = gang, statement
        self.units: list[Unit] = []
        self.placed: list[int] = []
        self.backed: list[int] = []
        self.verdict: Verdict | GangVerdict | None = None
        self.refused: dict[str, str] = {}
        self.touched: dict[int, None] = {}


def record(
    session: Session, action: str, attempt: Attempt, work_lost: dict[int, int], *, rule: str = "", verb: str = ""
) -> None:
    """Write evictions and the reclaim down.

    Args:
        work_lost: milli-cards x milliseconds that each leaving task loses.
        rule, verb: what allowed it and what was done, in words; empty = reclaim's.
    """
    tasks = session.tasks
    taken = {place for task in attempt.backed for place in _cards_held(session, task)}
    leaving = [task for unit in attempt.units for task in unit.members]
    over = [not taken.isdisjoint(_cards_held(session, task)) for task in leaving]
    backed = [(int(tasks.node[task]), int(tasks.card[task]), int(tasks.cls[task])) for task in attempt.backed]
    fall = Fall(
        attempt.gang,
        backed,
        leavers(session, np.array(leaving, dtype=np.int32), over, [work_lost[task] for task in leaving]),
        rule or rule_of(session, attempt.gang),
        verb,
        attempt.verdict.votes if attempt.verdict is not None else (),
        tuple(Refusal(gang, why) for gang, why in sorted(attempt.refused.items())[:MAX_REFUSED]),
    )
    tell(session, action, [fall])


def _cards_held(session: Session, task: int) -> list[tuple[int, int, int]]:
    """(node, card type, index) of each card of a task that has a place."""
    node, card = int(session.tasks.node[task]), int(session.tasks.card[task])
    return [(node, card, index) for index in session.tasks.indices[task]]


def total(session: Session, tasks: Sequence[int]) -> Amount:
    """CPU, memory and cards of tasks that have a place."""
    names, classes = session.axes.cards, session.cluster.classes.classes
    at = list(tasks)
    cpu = memory = 0
    cards: dict[str, int] = {}
    for index, card in zip(session.tasks.cls[at].tolist(), session.tasks.card[at].tolist(), strict=True):
        cls = classes[index]
        cpu += cls.cpu_milli
        memory += cls.memory_mib
        if card >= 0:
            cards[names[card]] = cards.get(names[card], 0) + cls.milli
    return Amount(cpu, memory, cards)


def cards_of(session: Session, tasks: Sequence[int]) -> dict[str, int]:
    """Milli-cards by type that tasks hold."""
    return total(session, tasks).cards
