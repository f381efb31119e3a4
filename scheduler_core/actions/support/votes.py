"""The votes of action enqueue in compiled code, wherever the plugins' functions have a form."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec
import numpy as np

from scheduler_core.actions.support.admission import withdraw_promises
from scheduler_core.actions.support.startable import Startable
from scheduler_core.actions.support.voting import Voting, admission_vote
from scheduler_core.framework.demand import Shortfall
from scheduler_core.framework.forms import Ceilings, RowCeilings
from scheduler_core.framework.gang_columns import waiting_tasks
from scheduler_core.framework.kernels.admission import (
    ADMITTED,
    NOT_TESTED,
    OVER_QUOTA,
    OVER_ROWS,
    Answers,
    Books,
    Kinds,
    RowVotes,
    admit,
    sum_minimums,
)
from scheduler_core.framework.kernels.rehearsal import rehearse
from scheduler_core.framework.kernels.tables import rows_of
from scheduler_core.framework.promises import KINDS, Minimums
from scheduler_core.framework.session import NOT_TO_COME, Session
from scheduler_core.model.reason import ReasonCode
from scheduler_core.state.axes import CPU, LEDGER_CARDS, MEMORY
from scheduler_core.state.phases import PHASE_INQUEUE, PHASE_PENDING
from scheduler_core.state.queue_ledger import NO_LIMIT
from scheduler_core.state.status import FAILED, PIPELINED, SUCCEEDED, Bools, Floats, Index, Ints


class Votes(msgspec.Struct, frozen=True, gc=False):
    """What came out: gangs in the order in which they were tested, and what was said to those who stay outside.
    ``order``: int32. ``refused``: bool (G,). ``own``: answers that were given in Python, by gang; ``shortfall`` makes
    those of the others."""

    order: Index
    refused: Bools
    own: dict[int, Any]
    shortfall: Callable[[int], Shortfall]


class Electorate:
    """Every admitted and every waiting gang, admitted ones first, and what each needs up to its minimum."""

    def __init__(self, session: Session) -> None:
        """O(waiting tasks + gangs log gangs)."""
        phase, vote = session.phase.codes, admission_vote(session)
        admitted: Bools = phase == PHASE_INQUEUE
        self._session, self._chosen = session, ((phase == PHASE_PENDING) | admitted) & session.columns.schedulable
        # Upstream admits for good.
        self._stays: Bools = admitted & session.compat
        self._order = in_order(session, self._chosen)
        self._minimums = _minimums(session, self._chosen, *waiting_tasks(session, self._chosen))
        self._minimums.odd[:] |= vote.others
        self._by_card = next((one for one in vote.voters if isinstance(one, Ceilings)), None)
        self._by_row = [one for one in vote.voters if isinstance(one, RowCeilings)]
        self._votes = _row_votes(session, vote.voters, self._by_row)

    def vote(self, startable: Startable | None = None) -> Votes:
        """Test each gang once and promise its minimum to each that is admitted; earlier promises are withdrawn. With
        ``startable`` those who have no room now are tested after all others."""
        session = self._session
        withdraw_promises(session, self._chosen)
        size = len(session.gangs)
        answers = Answers(np.full(size, NOT_TESTED, dtype=np.int8), *(np.zeros(size, dtype=np.int64) for _ in range(6)))
        own = dict[int, Any]()
        books = self._books()
        if startable is None:
            self._round(self._order, books, answers, own)
        else:
            later: Bools = np.zeros(size, dtype=np.bool_)
            self._round(self._order, books, answers, own, startable, later)
            self._round(self._order[later[self._order]], books, answers, own)
        verdicts = answers.verdict.copy()
        verdicts[list(own)] = NOT_TESTED
        session.promised.hold(verdicts == ADMITTED, self._minimums)
        refused: Bools = np.zeros(size, dtype=np.bool_)
        refused[self._order] = verdicts[self._order] != ADMITTED
        refused[[gang for gang, refusal in own.items() if refusal is None]] = False
        cards, queues = session.axes.cards, [queue.name for queue in session.ledger.queues]
        of, by_row = session.gangs.queue, [(list(one.rows.names), one.whole) for one in self._by_row]
        return Votes(self._order, refused, own, lambda gang: _shortfall(answers, gang, cards, by_row, queues[of[gang]]))

    def _books(self) -> Books:
        ledger, form = self._session.ledger, self._by_card
        inqueue = ledger.inqueue
        promised, shared = inqueue.sum(axis=1), self._shared()
        if form is None:
            none = np.zeros_like(promised)
            nobody = np.zeros(len(self._session.gangs), dtype=np.int8)
            both = np.zeros((2, len(promised)), dtype=np.int64)
            return Books(inqueue.copy(), inqueue.copy(), inqueue, none, promised, both, nobody, shared)
        return Books(form.limits, form.used, inqueue, form.total, promised, form.in_use, form.back, shared)

    def _shared(self) -> Bools:
        """bool (C,): cards, and those that count as the same resource, of which promised choices may use some."""
        session = self._session
        shared: Bools = np.zeros(len(session.axes.cards), dtype=np.bool_)
        for choices in session.ledger.inqueue_choices:
            for choice in choices:
                shared[list(choice)] = True
                if self._by_row:
                    row_of_card = self._votes.row_of_card
                    shared |= row_of_card == row_of_card[choice[0]]
        return shared

    def _round(
        self, order: Index, books: Books, answers: Answers, own: dict[int, Any], startable: Startable | None = None,
        later: Bools | None = None,
    ) -> None:  # fmt: skip
        """One test of each gang of ``order``; those that columns cannot hold are asked about one by one."""
        session, minimums = self._session, self._minimums
        columns = (minimums.cpu, minimums.memory, minimums.card, minimums.named, minimums.total, minimums.odd)
        given = (session.gangs.queue, *columns, books, self._votes, answers)
        tables = () if startable is None else (*startable.tables(order.tolist()), later)
        step = admit if startable is None else rehearse
        voting, place, asked = Voting(session), 0, -1
        while (place := step(order, place, *given, *tables)) < len(order):
            gang = int(order[place])
            demand = session.minimum(gang) if minimums.odd[gang] else minimums.demand(gang)
            if place != asked + 1:
                voting.forget()
            asked = place
            place += 1
            refusal = None if self._stays[gang] else voting.ask(gang, demand)
            if refusal is None and startable is not None and later is not None and not startable.take(gang):
                later[gang] = True
                continue
            own[gang] = refusal
            if refusal is None:
                voting.promise(gang, demand)
                books.promised[:] = session.ledger.inqueue.sum(axis=1)
                books.shared[:] = self._shared()

    def vote_again(self, votes: Votes, startable: Startable) -> Votes:
        """The votes when gangs that could start now go first, if that admits one of them; else ``votes``."""
        refused = votes.order[votes.refused[votes.order]]
        kept_out = refused[startable.which(refused)] if refused.size else refused
        if not kept_out.size:
            return votes
        session = self._session
        before = session.promised.copy(), session.ledger.inqueue.copy(), [*map(dict, session.ledger.inqueue_choices)]
        again = self.vote(startable)
        if not again.refused[kept_out].all():
            return again
        session.promised = before[0]
        session.ledger.inqueue[:] = before[1]
        for choices, earlier in zip(session.ledger.inqueue_choices, before[2], strict=True):
            choices.clear()
            choices.update(earlier)
        return votes


def in_order(session: Session, chosen: Bools) -> Index:
    """int32: the chosen gangs, admitted ones before waiting ones, each in the order of queues and gangs."""
    gangs, order = session.gangs, session.columns.job_order
    queues = sorted(range(len(session.ledger)), key=session.queue_key)
    rank = np.empty(len(queues), dtype=np.int64)
    rank[queues] = np.arange(len(queues))
    at = np.flatnonzero(chosen)
    waits = session.phase.codes[at] == PHASE_PENDING
    keys: Sequence[Ints | Floats]
    if order is None:
        keys = [np.argsort(sorted(range(len(at)), key=lambda place: session.job_key(int(at[place]))))]
    else:
        keys = order.keys(at)
    found: Index = at[np.lexsort((*reversed(keys), rank[gangs.queue[at]], waits))].astype(np.int32)
    return found


def _minimums(session: Session, chosen: Bools, task: Index, start: Any) -> Minimums:
    gangs, classes, found = session.gangs, session.cluster.classes, Minimums.empty(len(session.gangs))
    only = np.array([cls.cards[0] if len(cls.cards) == 1 else -1 for cls in classes.classes], dtype=np.int32)
    odd = np.array([cls.milli > 0 and len(cls.cards) != 1 for cls in classes.classes], dtype=np.bool_)
    named = np.array([bool(cls.names) for cls in classes.classes], dtype=np.bool_)
    declaration = session.cluster.workspace.facts.declaration
    needed = np.where(chosen, np.maximum(0, gangs.min_member - gangs.ready_count - gangs.counts[PIPELINED]), 0)
    kinds = Kinds(session.cluster.charge, only, named, odd)
    sum_minimums(kinds, session.tasks.cls, task, start, needed, declaration >= 0, *found)
    at = np.flatnonzero((needed > np.diff(start)) & (declaration >= 0))
    if at.size:
        found.copy_rows(at, session.columns.declared, declaration[at])
        found.odd[at] |= np.diff(start)[at] > 0
        if not session.compat:
            # What members in place account for is taken off, one by one.
            found.odd[at] |= gangs.counts[list(NOT_TO_COME)][:, at].any(axis=0)
    found.odd[(needed > np.diff(start)) & (gangs.counts[[SUCCEEDED, FAILED]].sum(axis=0) > 0)] = True
    _more_declared(session, np.flatnonzero((needed > 0) & (needed <= np.diff(start)) & (declaration >= 0)), found)
    if not session.compat:
        # Where a queue has a card quota, cards that follow from the pods' nodes count as those that are named.
        counted = np.array([queue.card_quota is not None for queue in session.ledger.queues] + [False], dtype=np.bool_)
        mine = counted[gangs.queue]
        found.named[mine] = found.total[mine]
    return found


def _more_declared(session: Session, gangs: Ints, found: Minimums) -> None:
    """Have those of the gangs asked one by one whose PodGroup declares more than their waiting members ask for."""
    said, number = session.columns.declared, session.cluster.workspace.facts.declaration[gangs]
    # What members in place account for is taken off, one by one.
    more: Bools = said.odd[number] | session.gangs.counts[list(NOT_TO_COME)][:, gangs].any(axis=0)
    more |= (said.cpu[number] > found.cpu[gangs]) | (said.memory[number] > found.memory[gangs])
    for kind in range(KINDS):
        card, named, total = said.card[number, kind], said.named[number, kind], said.total[number, kind]
        seen = (found.card[gangs] == card[:, None]) & (card >= 0)[:, None]
        more |= named > (found.named[gangs] * seen).sum(axis=1)
        more |= total - named > (found.total[gangs] * seen).sum(axis=1)
    found.odd[gangs] |= more


def _row_votes(session: Session, voters: Sequence[Ceilings | RowCeilings], by_row: Sequence[RowCeilings]) -> RowVotes:
    """The voters in columns."""
    gangs, queues, cards = len(session.gangs), len(session.ledger), len(session.axes.cards)
    sums = by_row[0].rows.sums if by_row else []
    row_of_card: Index = np.full(cards, -1, dtype=np.int32)
    for row, ledger_rows in enumerate(sums):
        row_of_card[[at - LEDGER_CARDS for at in ledger_rows if at >= LEDGER_CARDS]] = row
    shape, nobody = (len(by_row), len(sums), queues), np.zeros(gangs, dtype=np.bool_)
    rows = rows_of(sums, np.zeros((len(sums), 0), dtype=np.int64))

    following = iter(range(len(by_row)))
    places = [-1 if isinstance(one, Ceilings) else next(following) for one in voters]

    def stacked(columns: Iterable[Ints | None], missing: int = 0) -> Ints:
        full = [np.full(shape[1:], missing, dtype=np.int64) if one is None else one for one in columns]
        return np.array(full, dtype=np.int64).reshape(shape)

    return RowVotes(
        np.array(places, dtype=np.int64),
        rows.start,
        rows.row,
        row_of_card,
        stacked(one.limits for one in by_row),
        stacked(one.used for one in by_row),
        np.array([one.whole for one in by_row], dtype=np.bool_),
        np.array([one.waved for one in by_row], dtype=np.bool_).reshape(len(by_row), gangs),
        stacked(one.back for one in by_row),
        stacked((one.line for one in by_row), NO_LIMIT),
        stacked(one.held for one in by_row),
        np.array([nobody if one.takes_back is None else one.takes_back for one in by_row], dtype=np.bool_).reshape(
            len(by_row), gangs
        ),
    )


def _shortfall(
    answers: Answers, gang: int, cards: Sequence[str], by_row: Sequence[tuple[list[str], bool]], queue: str
) -> Shortfall:
    row, asked, limit = int(answers.row[gang]), int(answers.asked[gang]), int(answers.limit[gang])
    used, promised = int(answers.used[gang]), int(answers.promised[gang])
    of_queue = answers.verdict[gang] == OVER_QUOTA
    if answers.verdict[gang] == OVER_ROWS:
        names, whole = by_row[answers.voter[gang]]
        of_queue, resource = not whole, names[row]
    else:
        resource = {CPU: "cpu", MEMORY: "memory"}.get(row) or cards[row - LEDGER_CARDS]
    return Shortfall(
        code=ReasonCode.WAITING_FOR_QUOTA if of_queue else ReasonCode.OVER_COMMITTED,
        resource=resource,
        requested=asked,
        limit=limit,
        allocated=used,
        inqueue=promised,
        short=asked + used + promised - limit,
        queue=queue if of_queue else "",
    )
