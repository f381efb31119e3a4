"""What a record says beyond its victims: the queues before and after, and what the gangs that stay would have cost. All
of it is noted when the decision is made and written when the record is read."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np

from scheduler_core.actions.support.alone import alone_of, rule_of_room
from scheduler_core.algorithms.victims_room import GANG, LEVEL, NEVER, UNIT_TASK, WORK
from scheduler_core.framework.session import Session
from scheduler_core.model.decision import Candidate, QueueMoment
from scheduler_core.model.podgroup import PodGroup
from scheduler_core.model.queue import Queue
from scheduler_core.model.resources import Amount
from scheduler_core.model.rules import Rule
from scheduler_core.state.axes import CPU, LEDGER_CARDS, MEMORY, Axes
from scheduler_core.state.status import Bools, Ints
from scheduler_core.state.task_class import TaskClass

# A record names at most so many candidates, and of them so many of the next ones that cost more than the victims.
MOST_CANDIDATES, MOST_DEARER = 10, 2
# A record names at most so many candidates that were refused; in a large cluster nearly every gang is one.
MOST_REFUSED = 100

# The place of an eviction that does not come; so many rows are looked at together.
STAYS, _AT_ONCE = 1 << 60, 8
# Work in milli-cards x milliseconds, a card-second.
CARD_SECOND = 1_000_000


class Words(NamedTuple):
    """What the numbers mean: names of gangs, PodGroups, card types, task classes, queues and their positions, axes."""

    gangs: Sequence[str]
    groups: Sequence[PodGroup]
    cards: Sequence[str]
    classes: Sequence[TaskClass]
    queues: Sequence[Queue]
    queue_at: dict[str, int]
    axes: Axes | None = None

    def queue_of(self, gang: int) -> int:
        """Position of the gang's queue, -1 when there is none of that name."""
        return self.queue_at.get(self.groups[gang].queue, -1)

    def level(self, gang: int) -> tuple[int, int]:
        """Queue priority and priority of a gang: what it costs to take it, before the work that is lost."""
        queue = self.queue_of(gang)
        return (self.queues[queue].priority if queue >= 0 else 0), self.groups[gang].priority


class Option(NamedTuple):
    """A gang that came into question: work lost (milli-cards x milliseconds), what it frees, the rule that decided.
    ``room``: where room decided, the note of what there would have been (``algorithms.victims_alone``)."""

    gang: int
    work: int
    frees: int
    rule: str
    room: tuple[int, ...] = ()


class Standing:
    """Gangs that may be taken at the moments of several evictions; ordered when the first record is read. ``rows``:
    int64 (any, 4): the gang, work lost, what it frees, and the place of its own eviction or ``STAYS``."""

    def __init__(self, rows: Ints) -> None:
        self._rows = rows
        self._sorted: dict[tuple[int, int], Ints] | None = None

    def dearer(
        self, words: Words, place: int, fallen: Collection[int], level: tuple[int, int], work: int
    ) -> list[Option]:
        """The cheapest that cost at least so much and were not evicted before a place; the rule is found later."""
        if self._sorted is None:
            by_level: dict[tuple[int, int], list[int]] = {}
            for row, gang in enumerate(self._rows[:, 0].tolist()):
                by_level.setdefault(words.level(gang), []).append(row)
            self._sorted = {
                one: self._rows[rows][np.lexsort((self._rows[rows, 0], self._rows[rows, 1]))]
                for one, rows in sorted(by_level.items())
            }
        found: list[Option] = []
        for one, rows in self._sorted.items():
            if one < level:
                continue
            first = int(np.searchsorted(rows[:, 1], work)) if one == level else 0
            while first < len(rows) and len(found) < MOST_DEARER:
                few = rows[first : first + _AT_ONCE].tolist()
                found += [
                    Option(gang, lost, frees, "")
                    for gang, lost, frees, gone in few
                    if gone >= place and gang not in fallen
                ]
                first += _AT_ONCE
            if len(found) >= MOST_DEARER:
                break
        return found[:MOST_DEARER]


class Further(NamedTuple):
    """Gangs that might have been taken next after an eviction, and the place behind it."""

    standing: Standing
    place: int


def standing_rows(units: Ints, ok: Bools, size: int) -> Ints:
    """int64 (any, 4): whole gangs that may be taken now, see :class:`Standing`. ``units``: int64 (units, UNIT_COLUMNS).
    ``ok``: bool (units,). ``size``: column of units with what leaving frees."""
    at = np.flatnonzero(ok & (units[:, UNIT_TASK] < 0) & (units[:, LEVEL] < NEVER))
    rows: Ints = np.empty((len(at), 4), dtype=np.int64)
    for column, of in enumerate((GANG, WORK, size)):
        rows[:, column] = units[at, of]
    rows[:, 3] = STAYS
    return rows


class Looked(NamedTuple):
    """Gangs that came into question beside the victims. ``options``: kept by a rule or a vote, or passed over.
    ``total``: of all those, without the victims. ``further``: the next ones that may be taken and cost more, or where
    to find them."""

    options: Sequence[Option]
    total: int
    further: Sequence[Option] | Further = ()


class Fallen(NamedTuple):
    """A gang of which members are evicted, and what that costs and frees."""

    gang: int
    level: tuple[int, int]
    work: int
    frees: int


def candidates(looked: Looked, fallen: Sequence[Fallen], words: Words) -> tuple[tuple[Candidate, ...], int]:
    """The candidates that a record names, the cheapest first, and how many more there were. None where no gang loses
    anything: there is no victim that another one could replace."""
    if not fallen:
        return (), 0
    gone = {one.gang for one in fallen}
    named = {one.gang: one for one in looked.options if one.gang not in gone}
    top, work = max(one.level for one in fallen), sum(one.work for one in fallen)
    found = looked.further
    dearer = found.standing.dearer(words, found.place, gone, top, work) if isinstance(found, Further) else found
    further = [one for one in dearer if one.gang not in named][:MOST_DEARER]
    first = sorted(named.values(), key=lambda one: (words.level(one.gang), one.work, one.gang))
    shown = first[: MOST_CANDIDATES - len(further)] + further
    shown.sort(key=lambda one: (words.level(one.gang), one.work, one.gang))
    return tuple([_candidate(one, fallen, words) for one in shown]), max(0, looked.total - len(shown))


def _candidate(one: Option, fallen: Sequence[Fallen], words: Words) -> Candidate:
    level = words.level(one.gang)
    alone = alone_of(one.room, words.axes) if one.room and words.axes is not None else None
    return Candidate(
        gang=words.gangs[one.gang],
        queue=words.groups[one.gang].queue,
        queue_priority=level[0],
        priority=level[1],
        work_lost_card_seconds=round(one.work / CARD_SECOND, 3),
        frees_milli=one.frees,
        rule=rule_of_room(alone) if alone is not None else one.rule or _why_dearer(one, level, fallen),
        alone=alone,
    )


def _why_dearer(one: Option, level: tuple[int, int], fallen: Sequence[Fallen]) -> str:
    """As :func:`scheduler_core.algorithms.victims_beside.beside` says it; it costs no less than all of them."""
    beside = [other for other in fallen if one.frees >= other.frees]
    if any((level, one.work) > (other.level, other.work) for other in beside):
        return Rule.DEARER.text()
    if any((level, one.work) == (other.level, other.work) and one.gang > other.gang for other in beside):
        return Rule.LATER_BY_NAME.text()
    return Rule.AS_DEAR.text()


class Move(NamedTuple):
    """A task that counts for a queue from now on (sign 1), or no more (-1)."""

    queue: int
    card: int
    cls: int
    sign: int


class Use:
    """What some queues use at one moment, to be followed back to earlier moments of the same session."""

    def __init__(self, session: Session, queues: Collection[int]) -> None:
        ledger, at = session.ledger, sorted(queues)
        columns = ledger.allocated[:, at] + ledger.pipelined[:, at]
        self._rows: dict[int, list[int]] = dict(zip(at, columns.T.tolist(), strict=True))
        # What a task of each class counts against its queue: cpu, memory, milli-cards.
        self._charge = session.cluster.charge.copy()
        self._charges: list[list[int]] = []

    def undo(self, moves: Sequence[Move]) -> None:
        """Go back to before these moves."""
        if not self._charges:
            self._charges = self._charge.T.tolist()
        for queue, card, cls, sign in moves:
            row = self._rows.get(queue)
            if row is None:
                continue
            cpu, memory, milli = self._charges[cls]
            row[CPU] -= sign * cpu
            row[MEMORY] -= sign * memory
            if card >= 0:
                row[LEDGER_CARDS + card] -= sign * milli

    def of(self, queue: int, cards: Collection[int], words: Words) -> Amount:
        """Use of a queue, of some cards."""
        row = self._rows[queue]
        return Amount(row[CPU], row[MEMORY], {words.cards[card]: row[LEDGER_CARDS + card] for card in sorted(cards)})


def moments(use: Use, moves: Sequence[Move], words: Words) -> tuple[QueueMoment, ...]:
    """The queues that gain or lose by some moves, by name; ``use`` goes back to before them."""
    queues = sorted({move.queue for move in moves if move.queue >= 0}, key=lambda queue: words.queues[queue].name)
    cards = {move.card for move in moves if move.card >= 0}
    after = [use.of(queue, cards, words) for queue in queues]
    use.undo(moves)
    return tuple(
        [
            QueueMoment(
                queue=words.queues[queue].name,
                quota=_quota(words.queues[queue], [words.cards[card] for card in sorted(cards)]),
                before=use.of(queue, cards, words),
                after=then,
            )
            for queue, then in zip(queues, after, strict=True)
        ]
    )


def _quota(queue: Queue, cards: Sequence[str]) -> Amount:
    quota = queue.card_quota
    named = {} if quota is None else {card: quota.get(card, 0) for card in cards}
    return Amount(queue.cpu_milli or 0, queue.memory_mib or 0, named)
