"""The tables of a session as the compiled loops take them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from scheduler_core.algorithms.best_of_blocks import blocks_of
from scheduler_core.framework.forms import Form, Limits, Term
from scheduler_core.framework.kernels.columns import (
    Cards,
    Classes,
    Gangs,
    Ledger,
    Log,
    Nodes,
    Quota,
    Scores,
    Tasks,
    Views,
)
from scheduler_core.framework.kernels.scores import AMOUNTS
from scheduler_core.framework.kernels.terms import NEXT, STATIC
from scheduler_core.state.queue_ledger import NO_LIMIT
from scheduler_core.state.status import Bools, Floats, Index, Ints
from scheduler_core.state.task_class import TaskClass

if TYPE_CHECKING:
    from scheduler_core.framework.session import Session


def node_columns(session: Session) -> Nodes:
    """The node table."""
    nodes = session.nodes
    return Nodes(nodes.allocatable, nodes.used, nodes.releasing, nodes.pipelined, nodes.now, nodes.future)


def card_columns(session: Session) -> Cards:
    """The card table, and sums over the card types of a node."""
    cards = session.cards
    return Cards(
        cards.start,
        cards.count,
        cards.used,
        cards.releasing,
        cards.pipelined,
        cards.whole_now,
        cards.whole_future,
        cards.best_now,
        cards.best_future,
        cards.left_now,
        cards.left_future,
        cards.total,
        cards.left_future.sum(axis=0),
    )


def class_columns(session: Session, classes: Sequence[TaskClass]) -> Classes:
    """The given classes in their order, with the masks of their predicates."""
    rows = [row for cls in classes for row in cls.rows]
    cards = [card for cls in classes for card in cls.cards or (-1,)]
    options = [max(1, len(cls.cards)) for cls in classes]
    masks = _Masks(session)
    now: list[int] = []
    future: list[int] = []
    for cls in classes:
        at_once, later = session.candidates.masks(cls)
        for card in cls.cards or (-1,):
            now.append(masks.row(at_once, card))
            future.append(masks.row(later, card))
    indices = [cls.index for cls in classes]
    return Classes(
        np.array([cls.request for cls in classes], dtype=np.int64).reshape(len(classes), session.axes.resource_rows),
        _starts([len(cls.rows) for cls in classes]),
        np.array(rows, dtype=np.int32),
        np.array([cls.whole for cls in classes], dtype=np.int64),
        np.array([cls.share for cls in classes], dtype=np.int64),
        np.array([cls.milli for cls in classes], dtype=np.int64),
        np.ascontiguousarray(session.cluster.charge[:, indices]),
        _starts(options),
        np.array(cards, dtype=np.int32),
        np.repeat(np.arange(len(classes), dtype=np.int32), options),
        np.array([bool(cls.missing) or cls.oversize_share for cls in classes], dtype=np.bool_),
        np.array(now, dtype=np.int32),
        np.array(future, dtype=np.int32),
        np.array(masks.rows, dtype=np.bool_).reshape(len(masks.rows), len(session.nodes)),
    )


class _Masks:
    """Distinct masks of predicates, each cut down to nodes with a card type."""

    def __init__(self, session: Session) -> None:
        self._cards = session.cards.count
        self._known: dict[tuple[bytes, int], int] = {}
        # The very same mask comes for several views; the caller keeps the masks alive meanwhile.
        self._same: dict[tuple[int, int], int] = {}
        self.rows: list[Bools] = []

    def row(self, mask: Bools, card: int) -> int:
        """The row of a mask over nodes; ``card`` -1 = no card type."""
        same = id(mask), card
        known = self._same.get(same)
        if known is None:
            key = mask.tobytes(), card
            known = self._known.get(key)
            if known is None:
                known = self._known[key] = len(self.rows)
                self.rows.append(mask & (self._cards[card] > 0) if card >= 0 else mask)
            self._same[same] = known
        return known


def _starts(lengths: list[int]) -> Index:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)


def task_columns(session: Session, position: Index, slots: Index) -> Tasks:
    """The task table; ``position`` int32 (classes of the session,), the place of a class in :class:`Classes`.

    The class is given for the tasks at ``slots`` alone, for others it is -1.
    """
    tasks = session.tasks
    cls = np.full_like(tasks.cls, -1)
    cls[slots] = position[tasks.cls[slots]]
    return Tasks(tasks.status, tasks.node, tasks.card, tasks.gang, cls, tasks.indices.words)


def gang_columns(session: Session) -> Gangs:
    """The gang table."""
    gangs = session.gangs
    return Gangs(gangs.queue, gangs.min_member, gangs.counts, gangs.ready_count, gangs.scheduled_count, gangs.versions)


def ledger_columns(session: Session) -> Ledger:
    """The queue ledger."""
    return Ledger(session.ledger.allocated, session.ledger.pipelined, session.ledger.versions)


def quota_columns(session: Session, forms: list[Sequence[Form]], classes: Sequence[TaskClass]) -> Quota:
    """What ``allocatable`` tests, nothing where no plugin has a word."""
    indices = [cls.index for cls in classes]
    for parts in forms:
        for form in parts:
            if isinstance(form, Limits):
                return Quota(form.limits, form.named[indices], form.counted)
    ledger = session.ledger
    return Quota(
        np.full_like(ledger.capability, NO_LIMIT),
        np.zeros(len(classes), dtype=np.bool_),
        np.zeros(len(ledger), dtype=np.bool_),
    )


def score_columns(forms: list[Sequence[Form]], classes: Sequence[TaskClass], size: int) -> Scores:
    """The terms of all plugins, with the static vectors of the given classes; ``size`` nodes."""
    kinds: list[int] = []
    weights: list[float] = []
    row_of: list[list[int]] = []
    rows: list[Floats] = []
    known: dict[int, int] = {}
    nothing = [-1] * len(classes)
    for parts in forms:
        for term in parts:
            assert isinstance(term, Term)
            kinds.append(term.kind)
            weights.append(term.weight)
            if term.kind != STATIC or term.of_class is None:
                row_of.append(nothing)
                continue
            numbers = []
            for cls in classes:
                vector = term.of_class(cls)
                if vector is None:
                    numbers.append(-1)
                    continue
                if id(vector) not in known:
                    known[id(vector)] = len(rows)
                    rows.append(vector)
                numbers.append(known[id(vector)])
            row_of.append(numbers)
        kinds.append(NEXT)
        weights.append(0.0)
        row_of.append(nothing)
    return Scores(
        np.array(kinds, dtype=np.int32),
        np.array(weights, dtype=np.float64),
        np.array(row_of, dtype=np.int32).reshape(len(kinds), len(classes)),
        np.array(rows, dtype=np.float64).reshape(len(rows), size),
    )


def new_views(views: int, size: int) -> Views:
    """Views that have seen nothing yet."""
    value = np.zeros(size, dtype=np.float64)
    return Views(
        np.empty((2 * views, size), dtype=np.int64),
        np.empty((2 * views, blocks_of(size)), dtype=np.int64),
        np.empty((2 * views, blocks_of(size)), dtype=np.bool_),
        np.full(2 * views, -1, dtype=np.int64),
        np.full(size, -1, dtype=np.int64),
        np.zeros(size, dtype=np.int32),
        value,
        value.view(np.int64),
        np.zeros((AMOUNTS, size), dtype=np.float64),
    )


def new_log(room: int) -> Log:
    """An empty log with room for so many changes."""
    return Log(np.zeros(room, dtype=np.int32), np.zeros(1, dtype=np.int64))


def grown(log: Log) -> Log:
    """The same log with twice the room."""
    return Log(np.concatenate([log.nodes, np.zeros_like(log.nodes)]), log.length)


def starts_of(sizes: Ints) -> Ints:
    """int64 (n + 1,): where parts of the given sizes begin in an array that holds one after the other."""
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(sizes)])
