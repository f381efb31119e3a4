"""Admission in compiled code: what gangs need, and whether their queue and the cluster have room for it.

The same sums as :meth:`scheduler_core.framework.session.Session.minimum` and
:class:`scheduler_core.framework.quota.Book` for gangs whose tasks ask for one card type each.
"""

from __future__ import annotations

from typing import NamedTuple

from scheduler_core.algorithms.compiled import ZERO, compiled_apart, compiled_loop, from_python, int64
from scheduler_core.framework.kernels.columns import Bytes
from scheduler_core.state.axes import CPU, LEDGER_CARDS, MEMORY
from scheduler_core.state.status import Bools, Index, Ints

ADMITTED, OVER_QUOTA, OVER_COMMITTED, OVER_ROWS, NOT_TESTED = range(5)


class Kinds(NamedTuple):
    """Task classes: ``charge`` int64 (3, K); ``card`` int32 (K,), the one card type, -1 = none; ``named`` bool (K,);
    ``odd`` bool (K,), a choice of cards or an unknown one."""

    charge: Ints
    card: Index
    named: Bools
    odd: Bools


class Books(NamedTuple):
    """Limits, and what counts against them.

    ``limits``, ``used``, ``inqueue`` int64 (D, Q), the last one the ledger's own; ``total``, ``promised`` int64 (D,),
    of the cluster; ``in_use`` int64 (2, D), without and with what could be taken back; ``back`` int8 (G,), which of
    the two counts for a gang; ``shared`` bool (C,), cards that promised choices may use.
    """

    limits: Ints
    used: Ints
    inqueue: Ints
    total: Ints
    promised: Ints
    in_use: Ints
    back: Bytes
    shared: Bools


class RowVotes(NamedTuple):
    """Voters that count by resource, one after the other (own arrays).

    ``voter`` int64 (voters,), the order of the vote: -1 = the one that counts by card, see :class:`Books`, else a
    position in what follows. ``start``, ``row`` int32 as in :class:`Rows`; ``row_of_card`` int32 (C,); ``limits``,
    ``used`` int64 (n, R, Q); ``whole`` bool (n,), promises of all queues count; ``waved`` bool (n, G), let in without a
    look; ``back``, ``line``, ``held`` int64 (n, R, Q) and ``takes_back`` bool (n, G), what does not count as used for
    gangs that may take back, while their queue stays within its line.
    """

    voter: Ints
    start: Index
    row: Index
    row_of_card: Index
    limits: Ints
    used: Ints
    whole: Bools
    waved: Bools
    back: Ints
    line: Ints
    held: Ints
    takes_back: Bools


class Answers(NamedTuple):
    """By gang: ``verdict`` int8 (G,), and of a refusal who refused, the row and the numbers, int64 (G,)."""

    verdict: Bytes
    voter: Ints
    row: Ints
    asked: Ints
    limit: Ints
    used: Ints
    promised: Ints


@compiled_loop
@from_python
def sum_minimums(
    kinds: Kinds,
    cls: Index,
    task: Index,
    start: Ints,
    needed: Ints,
    declared: Bools,
    cpu: Ints,
    memory: Ints,
    card: Index,
    named: Ints,
    total: Ints,
    odd: Bools,
) -> None:
    """Fill the columns of ``Minimums``, which hold nothing yet, from waiting tasks in their order.

    Gangs with too few tasks that say what their minimum asks for are left out.

    ``cls`` int32 (T,), class of each task slot; ``task``, ``start`` as in ``waiting_tasks``; ``needed`` int64 (G,), how
    many members more it takes; ``declared`` bool (G,), the PodGroup says it where there are too few tasks.
    """
    for gang in range(needed.shape[0]):
        count = needed[gang]
        first, last = start[gang], start[gang + 1]
        if last - first < count and declared[gang]:
            continue
        for i in range(first, min(last, first + count)):
            kind = cls[task[i]]
            cpu[gang] += kinds.charge[CPU, kind]
            memory[gang] += kinds.charge[MEMORY, kind]
            if kinds.odd[kind]:
                odd[gang] = True
            elif kinds.card[kind] >= 0:
                at = _place_of(card[gang], kinds.card[kind], named[gang], total[gang])
                if at < 0:
                    odd[gang] = True
                else:
                    total[gang, at] += kinds.charge[2, kind]
                    if kinds.named[kind]:
                        named[gang, at] += kinds.charge[2, kind]


@compiled_loop
def _place_of(cards: Index, card: int, named: Ints, total: Ints) -> int:
    """The place of a card type among the sorted types of a gang, made room for if need be; -1 = no room left."""
    size, at = cards.shape[0], 0
    while at < size and 0 <= cards[at] < card:
        at += 1
    if at < size and cards[at] == card:
        return at
    if at == size or cards[size - 1] >= 0:
        return -1
    for i in range(size - 1, at, -1):
        cards[i], named[i], total[i] = cards[i - 1], named[i - 1], total[i - 1]
    cards[at], named[at], total[at] = card, 0, 0
    return at


@compiled_loop
@from_python
def admit(
    order: Index,
    first: int,
    queue: Index,
    cpu: Ints,
    memory: Ints,
    card: Index,
    named: Ints,
    total: Ints,
    odd: Bools,
    books: Books,
    votes: RowVotes,
    answers: Answers,
) -> int:
    """Test the gangs of ``order`` from place ``first`` on, and promise its minimum to each that is admitted.

    Returns:
        The place of the first gang that the caller must test; the length of ``order`` = none is left.
    """
    for place in range(first, order.shape[0]):
        gang = int64(order[place])
        verdict = test(gang, queue, cpu, memory, card, named, total, odd, books, votes, answers)
        if verdict == NOT_TESTED:
            return place
        if verdict == ADMITTED:
            promise(gang, queue, cpu, memory, card, total, books)
    return int(order.shape[0])


@compiled_apart
def test(
    gang: int,
    queue: Index,
    cpu: Ints,
    memory: Ints,
    card: Index,
    named: Ints,
    total: Ints,
    odd: Bools,
    books: Books,
    votes: RowVotes,
    answers: Answers,
) -> int:
    """The verdict on one gang, noted in ``answers`` too; ``NOT_TESTED`` where the caller must test it."""
    if odd[gang]:
        return NOT_TESTED
    for i in range(card.shape[1]):
        kind = card[gang, i]
        if kind < 0:
            break
        if books.shared[kind]:
            return NOT_TESTED
    verdict = ADMITTED
    for i in range(votes.voter.shape[0]):
        voter = votes.voter[i]
        if voter >= 0:
            verdict = _over_rows(gang, queue[gang], cpu[gang], memory[gang], card, total, books, votes, voter, answers)
        else:
            verdict = _over_quota(gang, queue[gang], cpu[gang], memory[gang], card, named, books, answers)
            if verdict == ADMITTED:
                verdict = _over_committed(gang, cpu[gang], memory[gang], card, total, books, answers)
        if verdict != ADMITTED:
            answers.voter[gang] = voter
            break
    answers.verdict[gang] = verdict
    return verdict


@compiled_loop
def promise(gang: int, queue: Index, cpu: Ints, memory: Ints, card: Index, total: Ints, books: Books) -> None:
    """Promise a gang its minimum."""
    of = queue[gang]
    books.inqueue[CPU, of] += cpu[gang]
    books.inqueue[MEMORY, of] += memory[gang]
    books.promised[CPU] += cpu[gang]
    books.promised[MEMORY] += memory[gang]
    for i in range(card.shape[1]):
        kind = card[gang, i]
        if kind < 0:
            break
        books.inqueue[LEDGER_CARDS + kind, of] += total[gang, i]
        books.promised[LEDGER_CARDS + kind] += total[gang, i]


@compiled_loop
def _over_quota(
    gang: int, of: int, cpu: int, memory: int, card: Index, named: Ints, books: Books, answers: Answers
) -> int:
    for i in range(-2, card.shape[1]):
        row, asked = _part(i, cpu, memory, card, named, gang)
        if row < 0:
            break
        limit, used, promised = books.limits[row, of], books.used[row, of], books.inqueue[row, of]
        if asked > 0 and asked + used + promised > limit:
            _refuse(answers, gang, row, asked, limit, used, promised)
            return OVER_QUOTA
    return ADMITTED


@compiled_loop
def _over_committed(gang: int, cpu: int, memory: int, card: Index, total: Ints, books: Books, answers: Answers) -> int:
    back = books.back[gang]
    for i in range(-2, card.shape[1]):
        row, asked = _part(i, cpu, memory, card, total, gang)
        if row < 0:
            break
        limit, used, promised = books.total[row], books.in_use[back, row], books.promised[row]
        if asked > 0 and asked + used + promised > limit:
            _refuse(answers, gang, row, asked, limit, used, promised)
            return OVER_COMMITTED
    return ADMITTED


@compiled_loop
def _over_rows(
    gang: int,
    of: int,
    cpu: int,
    memory: int,
    card: Index,
    total: Ints,
    books: Books,
    votes: RowVotes,
    voter: int,
    answers: Answers,
) -> int:
    """As :meth:`scheduler_core.framework.resource_rows.ResourceRows.shortfall`, for one voter."""
    if votes.waved[voter, gang]:
        return ADMITTED
    rows, back = votes.limits.shape[1], votes.takes_back[voter, gang]
    for row in range(rows):
        asked = _of_row(row, cpu, memory, card, total, votes, gang)
        if asked > 0 and asked + votes.held[voter, row, of] > votes.line[voter, row, of]:
            back = False
    for row in range(rows):
        asked, promised = _of_row(row, cpu, memory, card, total, votes, gang), ZERO
        for i in range(votes.start[row], votes.start[row + 1]):
            at = votes.row[i]
            promised += books.promised[at] if votes.whole[voter] else books.inqueue[at, of]
        limit, used = votes.limits[voter, row, of], votes.used[voter, row, of]
        if back:
            used = max(0, used - votes.back[voter, row, of])
        if asked > 0 and asked + used + promised > limit:
            _refuse(answers, gang, row, asked, limit, used, promised)
            return OVER_ROWS
    return ADMITTED


@compiled_loop
def _of_row(row: int, cpu: int, memory: int, card: Index, total: Ints, votes: RowVotes, gang: int) -> int:
    """What a gang asks for of a resource."""
    if row == CPU:
        return cpu
    if row == MEMORY:
        return memory
    asked = 0
    for i in range(card.shape[1]):
        if card[gang, i] >= 0 and votes.row_of_card[card[gang, i]] == row:
            asked += total[gang, i]
    return asked


@compiled_loop
def _part(i: int, cpu: int, memory: int, card: Index, milli: Ints, gang: int) -> tuple[int, int]:
    """The ledger row and amount of a part: -2 cpu, -1 memory, then the cards; row -1 = no more."""
    if i == -2:
        return CPU, cpu
    if i == -1:
        return MEMORY, memory
    if card[gang, i] < 0:
        return -1, 0
    return LEDGER_CARDS + card[gang, i], milli[gang, i]


@compiled_loop
def _refuse(answers: Answers, gang: int, row: int, asked: int, limit: int, used: int, promised: int) -> None:
    answers.row[gang], answers.asked[gang], answers.limit[gang] = row, asked, limit
    answers.used[gang], answers.promised[gang] = used, promised
