"""The turns of action allocate: compiled code, which asks for what only Python knows.

It stops with what it needs (:mod:`scheduler_core.framework.kernels.turns`), is answered in arrays, and goes on. What
has to be asked depends on the policy and on the gang: single answers for what a plugin says in Python alone, and about
gangs with promises, roles or members that ask for nothing.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from typing import Any

import numpy as np

from scheduler_core.actions.support.admission import withdraw_promises
from scheduler_core.actions.support.placement import allowed_options
from scheduler_core.actions.support.policy_forms import (
    Kinds,
    PolicyForms,
    asked_of_gangs,
    queue_ranks,
    queue_rows,
)
from scheduler_core.actions.support.reservations import settle_promises
from scheduler_core.algorithms.best_of_blocks import NOWHERE, set_all
from scheduler_core.algorithms.compiled import direct
from scheduler_core.framework.forms import GangShare, Members, ReadyKey, Term
from scheduler_core.framework.gang_columns import waiting_tasks
from scheduler_core.framework.kernels import tables
from scheduler_core.framework.kernels.columns import Bytes, Tables
from scheduler_core.framework.kernels.held import TURNS, go_on, hold
from scheduler_core.framework.kernels.turns import (
    ALL_DONE,
    AT_GANG,
    AT_PLACED,
    LATE,
    NEEDS_BEGIN,
    NEEDS_END,
    NEEDS_KEY,
    NEEDS_LOG,
    NEEDS_QUEUES,
    NEEDS_READY,
    SAID_END,
    SAID_QUEUES,
    SAID_READY,
    Rules,
    Turns,
    push_all,
    renew_all_shares,
)
from scheduler_core.framework.kernels.views import (
    ASK_CARDS,
    ASK_NODE,
    ASK_TASK,
    ASK_VIEW,
    ASK_WANTED,
    NEEDS_CARDS,
    NEEDS_SCORES,
    NEEDS_TASK,
    NEEDS_VIEW,
)
from scheduler_core.framework.session import Session
from scheduler_core.framework.statement import Operation, Statement
from scheduler_core.model.cards import WORD_BITS
from scheduler_core.state.cluster import Place
from scheduler_core.state.status import Bools, Floats, Index, Ints, TaskStatus
from scheduler_core.state.task_class import TaskClass

# So many changed nodes are passed on as they are, more of them each once.
_FEW = 16
# Between the ranks of two gangs in the order that Python gives them.
_GAP = 2**32


class CompiledTurns:
    """Turns of gangs; :meth:`run` serves them all.

    Args:
        forms: what the policy comes to. waiting: bool (G,), gangs that take part.
        lone: int32, tasks that get their places one by one, at once; None = gangs take turns.
    """

    def __init__(self, session: Session, forms: PolicyForms, waiting: Bools, lone: Index | None = None) -> None:
        self._session, self._forms = session, forms
        slots, start = waiting_tasks(session, waiting) if lone is None else (lone, np.zeros(1, dtype=np.int64))
        self._task_kinds = kinds = Kinds(session)
        self._nodes, self._cards = tables.node_columns(session), tables.card_columns(session)
        self._gangs, self._ledger = tables.gang_columns(session), tables.ledger_columns(session)
        kind = kinds.of_tasks(slots)
        used: Bools = np.zeros(len(kinds), dtype=np.bool_)
        used[kind] = True
        self._numbers, place = np.flatnonzero(used), (np.cumsum(used, dtype=np.int32) - 1)[kind]
        numbers = self._numbers.tolist()
        self._chosen = chosen = [kinds.cls(number) for number in numbers]
        self._classes = tables.class_columns(session, chosen, [kinds.nodes(number) for number in numbers])
        self._tasks = tables.task_columns(session, slots, place)
        self._quota = tables.quota_columns(session, forms.allocatable or [], chosen)
        extra = [kinds.scores(number) for number in numbers]
        self._scores = tables.score_columns(session, forms.node_order, chosen, extra)
        own = [part.call for parts in forms.node_order for part in parts if isinstance(part, Term) and part.call]
        self._own = list(zip(self._scores.given, own, strict=True))
        self._of_slot = [chosen[number] for number in self._classes.of_view.tolist() * 2]
        self._views = tables.new_views(self._classes, len(session.nodes), self._tasks.words.shape[1])
        order = session.columns.job_order
        self._ready_keys = [word for word in order.words if isinstance(word, ReadyKey)] if order is not None else []
        self._order = GangOrder(session, np.flatnonzero(waiting).tolist()) if order is None else None
        asks = asked_of_gangs(session, forms)
        plain = waiting & (asks == 0)
        if self._classes.volatile.any():
            plain[session.tasks.gang[slots[self._classes.volatile[place]]]] = False
        self._rules = Rules(
            bool(forms.job_ready),
            any(isinstance(part, Members) for parts in forms.job_pipelined or () for part in parts),
            session.keeps_minimum or session.compat,
            bool(forms.allocatable),
            forms.asks_queues,
            forms.allocatable is None,
            order is None,
            forms.card_choice is None,
            lone is not None,
        )
        most = int(np.diff(start).max(initial=0))
        self._log = tables.new_log(8 * most + 2 * len(slots) + 64)
        self._turns = self._new_turns(slots, start, plain, asks)
        self._act = np.array([TURNS, -1, -1, -1], dtype=np.int64)
        self._seen = len(session.nodes.log)
        # For an order of queues that is asked for.
        self._sorted = False
        self._queues = list(range(len(session.ledger)))
        self._queue_keys: list[tuple[Any, ...]] = [() for _ in self._queues]
        self._versions = np.full_like(session.ledger.versions, -1)

    def _new_turns(self, slots: Index, start: Ints, plain: Bools, asks: Bytes) -> Turns:
        session, chosen = self._session, self._chosen
        gangs, queues, order = session.gangs, len(session.ledger), session.columns.job_order
        words = [] if order is None else order.words
        key: Ints = np.zeros((len(gangs), max(1, len(words))), dtype=np.int64)
        for at, word in enumerate(words):
            if isinstance(word, np.ndarray):
                key[:, at] = word
        share = next((word for word in words if isinstance(word, GangShare)), None)
        self._share_rows = None if share is None else share.rows
        mine = np.bincount(gangs.queue[gangs.queue >= 0], minlength=queues)
        rank = queue_ranks(session, self._forms.queue_order or [])
        part_start, parts, least, most = queue_rows(session, self._forms)
        return Turns(
            slots,
            start,
            plain,
            asks,
            np.full(3, -1, dtype=np.int64),
            key,
            -1 if order is None else order.place(ReadyKey),
            -1 if order is None else order.place(GangShare),
            tables.share_columns(self._share_rows, chosen),
            part_start,
            parts,
            least,
            most,
            np.zeros(len(gangs), dtype=np.int64),
            tables.starts_of(mine.astype(np.int64)),
            np.zeros(queues, dtype=np.int64),
            rank,
            np.zeros((len(rank) - 1, queues), dtype=np.float64),
            np.zeros(len(chosen), dtype=np.int64),
            np.zeros(max(1, int(np.diff(start).max(initial=0))), dtype=np.int32),
            np.zeros(len(gangs), dtype=np.bool_),
            np.zeros(1, dtype=np.int64),
            np.full(4, -1, dtype=np.int64),
        )

    def run(self, waiting: Bools, finish: Callable[[int, Statement], bool]) -> None:
        """Serve the gangs of ``waiting``.

        Args:
            finish: keep or undo what a gang got in its turn, where the loop cannot say; True = it keeps something.
        """
        session, turns = self._session, self._turns
        self._finish = finish
        self._line_up(waiting)
        self._grip()
        answers = self._answers()
        asked = go_on(self._held)
        again = direct(go_on)
        while asked != ALL_DONE:
            answers[asked]()
            asked = again(self._held)
        self._tell()
        # A gang that keeps what it got needs nothing more for its minimum.
        withdraw_promises(session, turns.kept)

    # Answers ------------------------------------------------------------------------------------------------------

    def _answers(self) -> dict[int, Callable[[], None]]:
        return {
            NEEDS_LOG: self._grow,
            NEEDS_SCORES: self._score,
            NEEDS_VIEW: self._fill_view,
            NEEDS_TASK: self._say_of_task,
            NEEDS_CARDS: self._name_cards,
            NEEDS_QUEUES: self._sort_queues,
            NEEDS_BEGIN: self._begin,
            NEEDS_READY: self._say_ready,
            NEEDS_END: self._end,
            NEEDS_KEY: self._place_in_order,
        }

    def _tables(self) -> Tables:
        return Tables(self._nodes, self._cards, self._classes, self._tasks, self._gangs, self._ledger, self._log)

    def _grip(self) -> None:
        self._held = hold(self._tables(), self._quota, self._scores, self._views, self._turns, self._rules, self._act)

    def _grow(self) -> None:
        self._log = tables.grown(self._log)
        self._grip()

    def _score(self) -> None:
        """Own scores of the nodes at the beginning of ``views.where``; of one by its slice, which is read faster."""
        _, slot, count, *_ = self._views.ask.tolist()
        cls, where = self._of_slot[slot], self._views.where
        first = int(where[0])
        at = where[:count] if count > 1 else slice(first, first + 1)
        self._tell()
        for given, call in self._own:
            given[:count] = call(cls, at)

    def _class_at(self, slot: int) -> int:
        return int(self._classes.of_view[slot % len(self._classes.of_view)])

    def _fill_view(self) -> None:
        """Where a volatile class fits, and how well."""
        views, slot = self._views, int(self._views.ask[ASK_VIEW])
        number = self._class_at(slot)
        self._tell()
        seen, kind = self._session.candidates.view(self._chosen[number]), int(self._numbers[number])
        option = slot % len(self._classes.of_view) - self._classes.view_start[number]
        fits = (seen.future if slot >= len(self._classes.of_view) else seen.now)[option]
        only, score = self._task_kinds.nodes(kind), seen.score
        if only is not None:
            fits = fits & only
        extra = self._task_kinds.scores(kind)
        if extra:
            score = score + sum(extra[1:], extra[0])
        row = views.row[slot]
        views.key[row] = np.where(fits, _sort_keys(score), NOWHERE)
        set_all(views.key[row], views.bound[row], views.stale[row], views.group[row])
        views.place[slot] = self._log.length[0]

    def _say_of_task(self) -> None:
        """Card types for which the quota has room, and what is said of this very task."""
        session, views = self._session, self._views
        task = int(views.ask[ASK_WANTED])
        gang, number = int(session.tasks.gang[task]), int(self._tasks.cls[task])
        cls, first = self._chosen[number], self._classes.view_start[number]
        self._tell()
        options = [True] * max(1, len(cls.cards))
        if self._rules.asks_quota:
            options, _ = allowed_options(session, session.queue_of(gang), cls, task=task)
        views.open[first : first + len(options)] = options
        views.only[:], views.extra[:] = True, 0.0
        if any(options):
            only, extra = self._looked_at(cls, options, task)
            if only is not None:
                views.only[:] = only
            if extra is not None:
                views.extra[:] = extra
        views.ask[ASK_TASK] = task

    def _looked_at(self, cls: TaskClass, options: list[bool], task: int) -> tuple[Bools | None, Floats | None]:
        return self._session.candidates.looked_at(cls, options, task)

    def _name_cards(self) -> None:
        """The cards that a plugin asks for."""
        session, views = self._session, self._views
        task, slot, node = (int(views.ask[at]) for at in (ASK_WANTED, ASK_VIEW, ASK_NODE))
        card = int(self._classes.card[slot % len(self._classes.card)])
        self._tell()
        free = session.cards.free_future if slot >= len(self._classes.card) else session.cards.free_now
        wish = session.candidates.wished(self._chosen[self._class_at(slot)], card, node, free(card, node))
        views.wish[:] = 0
        for one in wish or ():
            views.wish[one // WORD_BITS] |= 1 << (one % WORD_BITS)
        views.ask[ASK_CARDS] = task

    def _sort_queues(self) -> None:
        """The queues that wait, in their order; those that take no turn any more are left out."""
        session, turns = self._session, self._turns
        self._tell()
        stale = (session.ledger.versions != self._versions).nonzero()[0]
        if len(stale) or not session.keeps_queue_keys:
            self._versions[stale] = session.ledger.versions[stale]
            for queue in stale.tolist() if session.keeps_queue_keys else self._queues:
                self._queue_keys[queue] = session.queue_key(queue)
            before = self._queues
            self._queues = sorted(before, key=self._queue_keys.__getitem__)
            if self._queues != before or not self._sorted:
                turns.queue_rank[0, self._queues] = np.arange(len(before))
                self._sorted = True
        if self._forms.overused is None:
            for queue in self._queues:
                if turns.heap_size[queue] and not session.hooks.any_true("overused", queue):
                    break
                turns.heap_size[queue] = 0
        turns.said[SAID_QUEUES] = 1

    def _begin(self) -> None:
        """Promises of the gang whose room is free by now become allocations."""
        gang = int(self._turns.at[AT_GANG])
        self._statement = self._session.statement()
        if self._session.gangs.waiting(gang):
            self._tell()
            settle_promises(self._session, self._statement, gang)
            self._hear()

    def _say_ready(self) -> None:
        self._tell()
        self._turns.said[SAID_READY] = self._session.is_ready(int(self._turns.at[AT_GANG]))

    def _end(self) -> None:
        """Keep what the gang has got, as promises where it cannot run yet, or undo it."""
        session, turns, statement = self._session, self._turns, self._statement
        gang, placed = int(turns.at[AT_GANG]), int(turns.at[AT_PLACED])
        self._tell()
        for task in turns.undo[:placed].tolist():
            statement.operations.append(Operation(task, Place(TaskStatus.PENDING), session.cluster.place_of(task)))
        kept = self._finish(gang, statement)
        self._hear()
        again = kept and placed > 0 and session.is_ready(gang)
        turns.said[SAID_END] = (LATE if self._goes_late(gang) else 1) if again else 0
        if again and self._share_rows is not None:
            turns.shares.held[:, gang] = self._share_rows.of_gang(gang)

    def _place_in_order(self) -> None:
        assert self._order is not None
        self._tell()
        self._order.renew(int(self._turns.at[AT_GANG]), self._turns.key)

    # ----------------------------------------------------------------------------------------------------------------

    def _line_up(self, waiting: Bools) -> None:
        """Put the gangs in their queues' lines."""
        session, turns = self._session, self._turns
        if self._order is not None:
            self._order.write(turns.key)
        ready: Bools = session.gangs.ready_count >= session.gangs.min_member
        for gang in np.flatnonzero(waiting & ~turns.plain).tolist():
            ready[gang] = self._goes_late(gang)
        push_all(self._gangs, turns, np.flatnonzero(waiting).astype(np.int64), ready)
        renew_all_shares(self._ledger, turns)

    def _goes_late(self, gang: int) -> bool:
        return any(form.of_gang(gang) for form in self._ready_keys)

    def _tell(self) -> None:
        """Let the session's other readers know which nodes have changed."""
        log = self._log
        changed = log.nodes[self._told : log.length[0]]
        self._session.nodes.log.extend((np.unique(changed) if len(changed) > _FEW else changed).tolist())
        self._told, self._seen = int(log.length[0]), len(self._session.nodes.log)

    _told = 0

    def _hear(self) -> None:
        """Take in what a turn outside the loop has changed."""
        session, log = self._session, self._log
        changed = session.nodes.log[self._seen :]
        # The turn that goes on has asked for its room already.
        while log.length[0] + len(changed) + 4 * len(self._turns.undo) > len(log.nodes):
            self._grow()
            log = self._log
        end = int(log.length[0])
        log.nodes[end : end + len(changed)] = changed
        log.length[0] += len(changed)
        self._told, self._seen = int(log.length[0]), len(session.nodes.log)
        self._cards.left[changed] = session.cards.left_future[:, changed].sum(axis=0)
        renew_all_shares(self._ledger, self._turns)


class GangOrder:
    """Gangs by the keys that plugins give them in Python, as ranks with room between them."""

    def __init__(self, session: Session, gangs: list[int]) -> None:
        self._session = session
        self._entries = sorted((session.job_key(gang), gang) for gang in gangs)
        self._ranks = [(place + 1) * _GAP for place in range(len(gangs))]
        self._latest = {gang: key for key, gang in self._entries}

    def write(self, keys: Ints) -> None:
        """Note all ranks in ``keys`` int64 (G, 1)."""
        for (key, gang), rank in zip(self._entries, self._ranks, strict=True):
            if self._latest[gang] == key:
                keys[gang, 0] = rank

    def renew(self, gang: int, keys: Ints) -> None:
        """A gang has another key now; the place that it had stays taken."""
        entry = (self._session.job_key(gang), gang)
        self._latest[gang] = entry[0]
        at = bisect_left(self._entries, entry)
        before = self._ranks[at - 1] if at else 0
        after = self._ranks[at] if at < len(self._ranks) else before + 2 * _GAP
        self._entries.insert(at, entry)
        self._ranks.insert(at, (before + after) // 2)
        if self._ranks[at] == before:
            self._ranks = [(place + 1) * _GAP for place in range(len(self._ranks))]
            self.write(keys)
        keys[gang, 0] = self._ranks[at]


def _sort_keys(score: Floats) -> Ints:
    """As :func:`scheduler_core.algorithms.best_of_blocks.sort_key`, of many."""
    bits = (score + 0.0).view(np.int64)
    found: Ints = bits ^ ((bits >> np.int64(63)) & np.int64(2**63 - 1))
    return found
