"""The tables of a session as the compiled loops take them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np

from scheduler_core.algorithms.best_of_blocks import blocks_of
from scheduler_core.algorithms.fragmentation import Mix
from scheduler_core.framework.forms import Form, Limits, RowLimits, Term
from scheduler_core.framework.kernels.columns import (
    Cards,
    Classes,
    Gangs,
    Ledger,
    Log,
    Named,
    Nodes,
    Quota,
    Rows,
    Shares,
    Tasks,
    Views,
)
from scheduler_core.framework.kernels.fragments import Fragments
from scheduler_core.framework.kernels.scores import AMOUNTS, Scores
from scheduler_core.framework.kernels.terms import NEXT, OWN, STATIC
from scheduler_core.framework.kernels.views import NO_TASK, NOTHING
from scheduler_core.state.queue_ledger import NO_LIMIT
from scheduler_core.state.status import Bools, Floats, Index, Ints
from scheduler_core.state.task_class import TaskClass

# Ranked nodes of views are kept up to so many bytes; those that were not asked for longest go first.
_VIEW_BYTES = 2**29

if TYPE_CHECKING:
    from scheduler_core.framework.resource_rows import ResourceRows
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


def class_columns(session: Session, classes: Sequence[TaskClass], only: Sequence[Bools | None]) -> Classes:
    """The given classes in their order, with the masks of their predicates; ``only``: where each may be besides."""
    rows = [row for cls in classes for row in cls.rows]
    cards = [card for cls in classes for card in cls.cards or (-1,)]
    options = [max(1, len(cls.cards)) for cls in classes]
    masks, nowhere = _Masks(session), np.zeros(len(session.nodes), dtype=np.bool_)
    now: list[int] = []
    future: list[int] = []
    # Of a volatile class Python says where it fits.
    volatile = [session.candidates.samples or session.candidates.volatile(cls) for cls in classes]
    for cls, mask, asks in zip(classes, only, volatile, strict=True):
        at_once, later = (nowhere, nowhere) if asks else session.candidates.masks(cls)
        if mask is not None:
            same = at_once is later
            at_once = masks.keep(at_once & mask)
            later = at_once if same else masks.keep(later & mask)
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
        np.array([cls.best_effort for cls in classes], dtype=np.bool_),
        np.array(volatile, dtype=np.bool_),
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
        self._kept: list[Bools] = []

    def keep(self, mask: Bools) -> Bools:
        """Keep a mask alive that nobody else does."""
        self._kept.append(mask)
        return mask

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
    return np.array([0, *accumulate(lengths)], dtype=np.int32)


def task_columns(session: Session, slots: Index, classes: Index) -> Tasks:
    """The task table, with the places in :class:`Classes` of the tasks at ``slots``; of others it is -1."""
    tasks = session.tasks
    cls = np.full_like(tasks.cls, -1)
    cls[slots] = classes
    return Tasks(tasks.status, tasks.node, tasks.card, tasks.gang, cls, tasks.indices.words)


def gang_columns(session: Session) -> Gangs:
    """The gang table."""
    gangs = session.gangs
    return Gangs(gangs.queue, gangs.min_member, gangs.counts, gangs.ready_count, gangs.scheduled_count, gangs.versions)


def ledger_columns(session: Session) -> Ledger:
    """The queue ledger."""
    return Ledger(session.ledger.allocated, session.ledger.pipelined, session.ledger.versions)


def rows_of(sums: list[list[int]], limits: Ints) -> Rows:
    """Limits by rows that each add up some rows of the ledger."""
    flat = [row for group in sums for row in group]
    return Rows(_starts([len(group) for group in sums]), np.array(flat, dtype=np.int32), np.ascontiguousarray(limits))


def rows_of_all(queues: int, parts: Sequence[tuple[list[list[int]], Ints]]) -> Rows:
    """Several of :func:`rows_of`, one after the other."""
    none: Ints = np.zeros((0, queues), dtype=np.int64)
    return rows_of([row for sums, _ in parts for row in sums], np.concatenate([none, *(limits for _, limits in parts)]))


def quota_columns(session: Session, forms: list[Sequence[Form]], classes: Sequence[TaskClass]) -> Quota:
    """What ``allocatable`` tests, nothing where no plugin has a word."""
    ledger, indices = session.ledger, [cls.index for cls in classes]
    limits = np.full_like(ledger.capability, NO_LIMIT)
    named: Bools = np.zeros(len(classes), dtype=np.bool_)
    counted: Bools = np.zeros(len(ledger), dtype=np.bool_)
    by_row: list[RowLimits] = []
    for form in (form for parts in forms for form in parts):
        if isinstance(form, Limits):
            limits, named, counted = form.limits, form.named[indices], form.counted
        elif isinstance(form, RowLimits):
            by_row.append(form)
    rows = rows_of_all(len(ledger), [(form.rows.sums, form.limits) for form in by_row])
    asked = [[one for form in by_row for one in form.rows.request(cls)] for cls in classes for _ in cls.cards or (-1,)]
    of_views = np.array(asked, dtype=np.int64).reshape(len(asked), len(rows.limits)).T.copy()
    return Quota(limits, named, counted, rows, of_views)


def score_columns(
    session: Session, forms: list[Sequence[Form]], classes: Sequence[TaskClass], extra: Sequence[Sequence[Floats]]
) -> Scores:
    """The terms of all plugins, with the static vectors of the given classes; ``extra``: more of them for each."""
    terms: list[Term] = []
    for parts in forms:
        terms += [part for part in parts if isinstance(part, Term)]
        terms.append(Term(NEXT))
    added = max(map(len, extra), default=0)
    terms += [Term(STATIC) for _ in range(added)]
    terms += [Term(NEXT)] if added else []
    size, rows = len(session.nodes), _Vectors()
    row_of: Index = np.full((len(terms), len(classes)), -1, dtype=np.int32)
    own = 0
    for row, term in zip(row_of, terms, strict=True):
        if term.kind == OWN:
            row[:], own = own, own + 1
        elif term.kind == STATIC and term.of_class is not None:
            row[:] = [rows.number(term.of_class(cls)) for cls in classes]
    for number, of_class in enumerate(extra):
        for at, vector in enumerate(of_class):
            row_of[len(terms) - 1 - added + at, number] = rows.number(vector)
    return Scores(
        np.array([term.kind for term in terms], dtype=np.int32),
        np.array([term.weight for term in terms], dtype=np.float64),
        row_of,
        np.array(rows.vectors, dtype=np.float64).reshape(len(rows.vectors), size),
        np.zeros((own, size), dtype=np.float64),
        _named_columns(session, terms, classes),
        _fragments(session, next((term.fragments for term in terms if term.fragments is not None), None)),
    )


def _fragments(session: Session, given: tuple[Mix, Ints] | None) -> Fragments:
    """What a score by fragments needs, without an entry where there is none."""
    if given is None:
        return _no_fragments()
    return _new_fragments(*given, len(session.nodes), int(session.cards.count.sum(axis=0).max(initial=0)))


@cache
def _no_fragments() -> Fragments:
    return _new_fragments(Mix.empty(1), np.ones(3, dtype=np.int64), 0, 0)


def _new_fragments(mix: Mix, most: Ints, size: int, scratch: int) -> Fragments:
    return Fragments(
        mix,
        most,
        np.zeros(size, dtype=np.float64),
        np.full(1, -1, dtype=np.int64),
        np.zeros(scratch, dtype=np.int64),
        np.zeros(scratch, dtype=np.int64),
        np.full(4 + 2 * scratch, -1, dtype=np.int64),
        np.zeros(1, dtype=np.float64),
    )


class _Vectors:
    """Distinct vectors, each with its number; a vector that is asked about stays alive."""

    def __init__(self) -> None:
        self.vectors: list[Floats] = []
        self._known: dict[int, int] = {}

    def number(self, vector: Floats | None) -> int:
        """Its place in the list, -1 for none."""
        if vector is None:
            return -1
        known = self._known.setdefault(id(vector), len(self.vectors))
        if known == len(self.vectors):
            self.vectors.append(vector)
        return known


def _named_columns(session: Session, terms: Sequence[Term], classes: Sequence[TaskClass]) -> Named:
    """Rows of what terms have by name."""
    if all(term.resources is None and term.line is None for term in terms):
        return _no_names(len(terms), len(session.nodes), session.compat)
    named = [term.resources for term in terms if term.resources is not None]
    none: Floats = np.zeros(0, dtype=np.float64)
    lines = [(none, none) if term.line is None else term.line for term in terms]
    cards = [group for resources in named for group in resources.cards]
    rows = len(cards)
    asked = [[resources.request(cls) for resources in named] for cls in classes]
    return Named(
        _starts([0 if term.resources is None else len(term.resources.names) for term in terms]),
        np.array([plain for resources in named for plain in resources.plain], dtype=np.int32),
        _starts([len(group) for group in cards]),
        np.array([card for group in cards for card in group], dtype=np.int32),
        np.concatenate([np.zeros((0, len(session.nodes)), dtype=np.int64), *(resources.all for resources in named)]),
        np.array([np.concatenate(of_class) for of_class in asked if of_class], dtype=np.int64)
        .reshape(len(classes) if named else 0, rows)
        .T.copy(),
        np.array([w for term in terms if term.row_weights is not None for w in term.row_weights], dtype=np.float64),
        _starts([len(at) for at, _ in lines]),
        np.concatenate([none, *(at for at, _ in lines)]),
        np.concatenate([none, *(height for _, height in lines)]),
        session.compat,
    )


@lru_cache(maxsize=4)
def _no_names(terms: int, size: int, upstream: bool) -> Named:
    starts: Index = np.zeros(terms + 1, dtype=np.int32)
    rows, none = np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.float64)
    capacity, asked = np.zeros((0, size), dtype=np.int64), np.zeros((0, 0), dtype=np.int64)
    return Named(starts, rows, starts[:1], rows, capacity, asked, none, starts, none, none, upstream)


def share_columns(rows: ResourceRows | None, classes: Sequence[TaskClass]) -> Shares:
    """Dominant shares of gangs by ``rows``, None = they order nothing."""
    value = np.zeros(1, dtype=np.float64)
    if rows is None:
        nothing: Ints = np.zeros((0, 0), dtype=np.int64)
        return Shares(np.zeros(0, dtype=np.int64), nothing, nothing, value, value.view(np.int64))
    asked = [rows.request_on(cls, card) for cls in classes for card in cls.cards or (-1,)]
    return Shares(
        np.array(rows.total, dtype=np.int64),
        rows.held_by_gangs(),
        np.array(asked, dtype=np.int64).reshape(len(asked), len(rows)).T.copy(),
        value,
        value.view(np.int64),
    )


def new_views(classes: Classes, size: int, words: int) -> Views:
    """Views that have seen nothing yet, of which as many as there is room for are kept at a time.

    ``words``: of the cards of a task.
    """
    views, value = len(classes.card), np.zeros(size, dtype=np.float64)
    options = int(np.diff(classes.view_start).max(initial=1))
    rows = min(2 * views, max(2 * options, _VIEW_BYTES // (8 * max(1, size))))
    return Views(
        np.empty((rows, size), dtype=np.int64),
        np.empty((rows, blocks_of(size)), dtype=np.int64),
        np.empty((rows, blocks_of(size)), dtype=np.bool_),
        np.empty((rows, blocks_of(blocks_of(size))), dtype=np.int64),
        np.full(2 * views, -1, dtype=np.int64),
        np.full(rows, -1, dtype=np.int64),
        np.zeros(rows, dtype=np.int64),
        np.zeros(1, dtype=np.int64),
        np.full(2 * views, -1, dtype=np.int64),
        np.array([NOTHING, 0, 0, 0, NO_TASK, NO_TASK, -1, NO_TASK, -1, -1], dtype=np.int64),
        np.zeros(views, dtype=np.bool_),
        np.zeros(size, dtype=np.bool_),
        np.zeros(size, dtype=np.float64),
        np.zeros(words, dtype=np.int64),
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
