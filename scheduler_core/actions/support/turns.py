"""The turns of action allocate in compiled code, wherever the policy and the gang are plain.

Plain is a policy whose functions all have a form, and a gang without promises, roles, best-effort members or classes
that depend on other pods. Any other gang is placed by the caller when its turn comes, in the very same order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from scheduler_core.actions.support.admission import withdraw_promises
from scheduler_core.framework.forms import (
    Form,
    Limits,
    Members,
    ReadyKey,
    ShareKey,
    StaticKey,
    Term,
    dense_ranks,
    forms_of,
)
from scheduler_core.framework.gang_columns import waiting_tasks
from scheduler_core.framework.kernels import tables
from scheduler_core.framework.kernels.turns import Rules, Turns, push, push_all, take_turns
from scheduler_core.framework.session import Session
from scheduler_core.state.queue_ledger import NO_LIMIT, QueueLedger
from scheduler_core.state.status import PIPELINED, Bools, Floats, Index, Ints

# Functions that the loop does not know at all: with one of them registered, gangs go through Python one by one.
_UNKNOWN = ("overused", "best_node", "card_choice")
_FORMED = ("queue_order", "job_order", "job_ready", "job_pipelined", "allocatable", "node_order")
# Numbers beyond this are not exact as float64, as which shares are divided.
_EXACT = 2**53
# Scores are kept for so many (class, node) pairs at most; other classes go through Python.
_MOST_PAIRS = 20_000_000


class CompiledTurns:
    """Turns of gangs; :meth:`run` serves them all.

    Args:
        forms: what the policy's functions come to, see :func:`plain_policy`.
        waiting: bool (G,), gangs that take part.
    """

    def __init__(self, session: Session, forms: dict[str, list[Sequence[Form]]], waiting: Bools) -> None:
        self._session = session
        ordered, order = waiting_tasks(session, waiting), session.columns.job_order
        assert ordered is not None
        assert order is not None
        slots, start = ordered
        self._nodes, self._cards = tables.node_columns(session), tables.card_columns(session)
        self._gangs, self._ledger = tables.gang_columns(session), tables.ledger_columns(session)
        plain = waiting & ~special_gangs(session, forms)
        position = self._choose_classes(slots, plain)
        chosen = [cls for cls in session.cluster.classes.classes if position[cls.index] >= 0]
        self._classes = tables.class_columns(session, chosen)
        self._tasks = tables.task_columns(session, position, slots)
        self._quota = tables.quota_columns(session, forms["allocatable"], chosen)
        self._scores = tables.score_columns(forms["node_order"], chosen, len(session.nodes))
        self._views = tables.new_views(len(self._classes.card), len(session.nodes))
        share = next((form for parts in forms["queue_order"] for form in parts if isinstance(form, ShareKey)), None)
        self._ready_keys = [form for parts in forms["job_order"] for form in parts if isinstance(form, ReadyKey)]
        self._share_of = None if share is None else share.limits
        by_members = bool(forms["job_ready"])
        self._rules = Rules(
            by_members,
            bool(forms["job_pipelined"]),
            by_members or session.compat,
            order[1],
            share is not None,
            bool(forms["allocatable"]),
        )
        most = int(np.diff(start).max(initial=0))
        self._log = tables.new_log(8 * most + 2 * len(slots) + 64)
        self._turns = self._new_turns(slots, start, plain, len(chosen), most, forms["queue_order"])
        self._seen = len(session.nodes.log)

    def _choose_classes(self, slots: Index, plain: Bools) -> Index:
        """int32 (classes of the session,): position of each class that the loop knows, -1 = it does not.

        Gangs with waiting members of other classes are taken out of ``plain``.
        """
        session = self._session
        gang, cls, size = session.tasks.gang[slots], session.tasks.cls[slots], len(session.cluster.classes)
        wanted: Bools = np.zeros(size, dtype=np.bool_)
        wanted[cls[plain[gang]]] = True
        position: Index = np.full(size, -1, dtype=np.int32)
        left, count = _MOST_PAIRS, 0
        for index in np.flatnonzero(wanted).tolist():
            known = session.cluster.classes[index]
            pairs = max(1, len(known.cards)) * len(session.nodes)
            if pairs <= left and not session.candidates.volatile(known):
                position[index] = count
                count, left = count + 1, left - pairs
        plain[gang[position[cls] < 0]] = False
        return position

    def _new_turns(
        self, slots: Index, start: Ints, plain: Bools, classes: int, most: int, queue_order: list[Sequence[Form]]
    ) -> Turns:
        session = self._session
        gangs, queues = session.gangs, len(session.ledger)
        order = session.columns.job_order
        assert order is not None
        before, _, after, gang_at = order
        mine = np.bincount(gangs.queue[gangs.queue >= 0], minlength=queues)
        first, last = _queue_ranks(session, queue_order)
        return Turns(
            slots,
            start,
            plain,
            before,
            after,
            gang_at,
            np.zeros(len(gangs), dtype=np.int64),
            tables.starts_of(mine.astype(np.int64)),
            np.zeros(queues, dtype=np.int64),
            first,
            last,
            np.zeros(queues, dtype=np.float64),
            np.zeros(classes, dtype=np.int64),
            np.zeros(max(1, most), dtype=np.int32),
            np.zeros(len(gangs), dtype=np.bool_),
            np.zeros(1, dtype=np.int64),
        )

    def run(self, waiting: Bools, place: Callable[[int], bool]) -> None:
        """Serve the gangs of ``waiting``.

        Args:
            place: one turn of a gang that is not plain; True = it waits for another turn.
        """
        session, gangs, turns, rules = self._session, self._gangs, self._turns, self._rules
        self._line_up(waiting)
        serve = partial(
            take_turns,
            self._nodes,
            self._cards,
            self._classes,
            self._tasks,
            gangs,
            self._ledger,
            self._quota,
            self._scores,
            self._views,
        )
        while (gang := serve(self._log, turns, rules)) != -1:
            if gang == -2:
                self._log = tables.grown(self._log)
                continue
            self._tell()
            again = place(gang)
            self._hear()
            if again:
                push(gangs, turns, rules, gang, self._goes_late(gang))
        self._tell()
        # A gang that keeps what it got needs nothing more for its minimum.
        withdraw_promises(session, turns.kept)

    def _line_up(self, waiting: Bools) -> None:
        """Put the gangs in their queues' lines."""
        session, turns = self._session, self._turns
        ready: Bools = session.gangs.ready_count >= session.gangs.min_member
        for gang in np.flatnonzero(waiting & ~turns.plain).tolist():
            ready[gang] = self._goes_late(gang)
        push_all(self._gangs, turns, self._rules, np.flatnonzero(waiting).astype(np.int32), ready)
        self._renew_shares()

    def _goes_late(self, gang: int) -> bool:
        return any(form.of_gang(gang) for form in self._ready_keys)

    def _renew_shares(self) -> None:
        if self._share_of is not None:
            self._turns.share[:] = queue_shares(self._session.ledger, self._share_of)

    def _tell(self) -> None:
        """Let the session's other readers know which nodes have changed."""
        log, known = self._log, self._told
        self._session.nodes.log.extend(np.unique(log.nodes[known : log.length[0]]).tolist())
        self._told, self._seen = int(log.length[0]), len(self._session.nodes.log)

    _told = 0

    def _hear(self) -> None:
        """Take in what a turn outside the loop has changed."""
        session, log = self._session, self._log
        changed = session.nodes.log[self._seen :]
        while log.length[0] + len(changed) > len(log.nodes):
            self._log = log = tables.grown(log)
        end = int(log.length[0])
        log.nodes[end : end + len(changed)] = changed
        log.length[0] += len(changed)
        self._told, self._seen = int(log.length[0]), len(session.nodes.log)
        for node in changed:
            self._cards.left[node] = session.cards.left_future[:, node].sum()
        self._renew_shares()


def plain_policy(session: Session) -> dict[str, list[Sequence[Form]]] | None:
    """The forms of all functions that have a say in the turns; None where one has none."""
    hooks = session.hooks
    if session.election is not None or session.candidates.samples or any(hooks.flat(point) for point in _UNKNOWN):
        return None
    forms: dict[str, list[Sequence[Form]]] = {}
    for point in _FORMED:
        found = forms_of(hooks, point)
        if found is None:
            return None
        forms[point] = found
    limits = [form for parts in forms["allocatable"] for form in parts]
    shares = [form for parts in forms["queue_order"] for form in parts if isinstance(form, ShareKey)]
    if len(limits) > 1 or len(shares) > 1 or session.columns.job_order is None:
        return None
    if forms_of(hooks, "task_order") is None:
        return None
    for form in (*limits, *shares):
        assert isinstance(form, Limits | ShareKey)
        bounded = form.limits[form.limits < NO_LIMIT]
        if bounded.max(initial=0) >= _EXACT or session.ledger.allocated.max(initial=0) >= _EXACT:
            return None
    return forms if all(isinstance(form, Term) for parts in forms["node_order"] for form in parts) else None


def special_gangs(session: Session, forms: dict[str, list[Sequence[Form]]]) -> Bools:
    """bool (G,): gangs that Python places, whatever their classes are."""
    gangs = session.gangs
    special: Bools = (gangs.counts[PIPELINED] > 0) | gangs.has_best_effort
    for point in ("job_ready", "job_pipelined"):
        for parts in forms[point]:
            for form in parts:
                if isinstance(form, Members):
                    special |= form.others
    for point in ("task_predicate", "task_node_order"):
        special |= session.columns.suspects(point)
    return special


def queue_shares(ledger: QueueLedger, limits: Ints) -> Floats:
    """float64 (Q,): of all queues what :func:`scheduler_core.framework.kernels.turns.queue_share` says of one."""
    used = ledger.allocated + ledger.pipelined
    parts = np.where(limits != 0, used / np.maximum(limits, 1), 1.0)
    found: Floats = np.where((used > 0) & (limits < NO_LIMIT), parts, 0.0).max(axis=0, initial=0.0)
    return found


def _queue_ranks(session: Session, forms: list[Sequence[Form]]) -> tuple[Ints, Ints]:
    """int64 (Q,) twice: ranks in the queue order before the share, and after it."""
    queues = session.ledger.queues
    parts = [form for group in forms for form in group]
    at = next((i for i, form in enumerate(parts) if isinstance(form, ShareKey)), len(parts))
    before: list[Ints | Floats] = [form.values for form in parts[:at] if isinstance(form, StaticKey)]
    after: list[Ints | Floats] = [form.values for form in parts[at + 1 :] if isinstance(form, StaticKey)]
    after.append(np.array([queue.created for queue in queues], dtype=np.float64))
    names = sorted(range(len(queues)), key=lambda q: queues[q].name)
    rank = np.empty(len(queues), dtype=np.int64)
    rank[names] = np.arange(len(queues))
    return dense_ranks(before, len(queues)), dense_ranks([*after, rank], len(queues))
