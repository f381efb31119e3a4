"""One gang's attempt to take something back, and the record of it."""

from collections.abc import Sequence

import numpy as np

from scheduler_core.actions.support.falls import Fall, leavers, record_evictions, rule_of
from scheduler_core.actions.support.receipts import MOST_REFUSED, Looked, Option
from scheduler_core.actions.support.victims import work_lost
from scheduler_core.algorithms.victims import Unit
from scheduler_core.framework.combine import Verdict
from scheduler_core.framework.gang_votes import GangVerdict
from scheduler_core.framework.session import Session
from scheduler_core.framework.statement import Statement
from scheduler_core.model.decision import Refusal
from scheduler_core.model.resources import Amount
from scheduler_core.state.status import CHARGED, Bools


class Attempt:
    """What one gang's reclaim has gathered so far.

    Attributes:
        units: who leaves. placed: tasks that have a place; backed: those of them that needed a victim to leave.
        verdict: the plugins' votes. refused: rule by candidate gang; numbers: gangs that ``refuse`` was called for.
        touched: gangs that were taken at some point of the attempt, also those that were let go again.
        options, further: what other gangs would have cost (see :class:`Looked`); considered: bool (G,), all of them."""

    def __init__(self, gang: int, statement: Statement) -> None:
        self.gang, self.statement = gang, statement
        self.units: list[Unit] = []
        self.placed: list[int] = []
        self.backed: list[int] = []
        self.verdict: Verdict | GangVerdict | None = None
        self.refused: dict[str, str] = {}
        self.touched: dict[int, None] = {}
        self.numbers: dict[str, int] = {}
        self.options: dict[int, Option] = {}
        self.further: list[Option] = []
        self.considered: Bools | None = None

    def refuse(self, gang: int, name: str, rule: str) -> None:
        self.refused[name], self.numbers[name] = rule, gang

    def look(self, options: Sequence[Option], further: Sequence[Option], considered: Bools) -> None:
        """Add who came into question for one class of tasks; the answer of the class before holds for its gangs."""
        self.options = {one.gang: one for one in options} | self.options
        self.further += further
        self.considered = considered if self.considered is None else self.considered | considered


def record(
    session: Session, action: str, attempt: Attempt, work_lost: dict[int, int], *, rule: str = "", verb: str = ""
) -> None:
    """Write evictions and the reclaim down. ``work_lost``: milli-cards x milliseconds that each leaving task loses.
    ``rule``, ``verb``: what allowed it and what was done, in words; empty = reclaim's."""
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
        tuple(Refusal(gang, why) for gang, why in sorted(attempt.refused.items())[:MOST_REFUSED]),
        [(int(tasks.card[task]), int(tasks.cls[task])) for task in attempt.placed or attempt.backed],
        _looked(session, attempt),
    )
    record_evictions(session, action, [fall])


def _looked(session: Session, attempt: Attempt) -> Looked:
    """Who came into question; where the action keeps no costs, those that were refused, at what they cost now."""
    if attempt.considered is not None:
        fallen = {int(session.tasks.gang[unit.members[0]]) for unit in attempt.units}
        count = int(np.count_nonzero(attempt.considered)) - sum(bool(attempt.considered[gang]) for gang in fallen)
        return Looked(tuple(attempt.options.values()), count, tuple(attempt.further))
    by_cards = any(session.cluster.class_of(task).milli for task in attempt.backed)
    options = []
    for name, gang in sorted(attempt.numbers.items())[:MOST_REFUSED]:
        why = attempt.refused[name]
        members = [task for task in session.gangs.members(gang) if CHARGED[session.tasks.status[task]]]
        held = [session.cluster.class_of(task) for task in members]
        frees = sum(cls.milli if by_cards else cls.cpu_milli for cls in held)
        options.append(Option(gang, sum(work_lost(session, task) for task in members), frees, why))
    return Looked(options, len(attempt.refused))


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
