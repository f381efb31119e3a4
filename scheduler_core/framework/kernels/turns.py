"""Gangs take turns: the best gang of the best queue gets its places or none, until no gang is left.

What only Python knows is asked for: the loop stops with what it needs, gets it in arrays, and goes on where it was.
"""

from __future__ import annotations

from typing import NamedTuple

from scheduler_core.algorithms.best_of_blocks import NOWHERE
from scheduler_core.algorithms.compiled import NONE, compiled_apart, compiled_loop, from_python, int64
from scheduler_core.algorithms.heap import heap_pop, heap_push
from scheduler_core.framework.kernels.columns import (
    Bytes,
    Classes,
    Gangs,
    Ledger,
    Log,
    Quota,
    Rows,
    Shares,
    Tables,
    Tasks,
    Views,
)
from scheduler_core.framework.kernels.fragments import wished_card
from scheduler_core.framework.kernels.moves import ADD, REMOVE, choose, forget_place, put
from scheduler_core.framework.kernels.scores import Scores
from scheduler_core.framework.kernels.views import (
    ASK_CARDS,
    ASK_NODE,
    ASK_OF,
    ASK_ON,
    ASK_TASK,
    ASK_VIEW,
    ASK_WANTED,
    NEEDS_CARDS,
    NEEDS_TASK,
    NO_TASK,
    best_for_task,
    best_node,
)
from scheduler_core.state.axes import CPU, LEDGER_CARDS, MEMORY, NO_LIMIT
from scheduler_core.state.status import ALLOCATED, PENDING, PIPELINED, Bools, Floats, Index, Ints

# Why the loop stops: no gang is left; the log may be too small for a turn; which queue goes first; a gang's promises,
# that may have room by now; whether it can run as it is; whether it keeps what it got; its place in the order.
ALL_DONE, NEEDS_LOG, NEEDS_QUEUES, NEEDS_BEGIN, NEEDS_READY, NEEDS_END, NEEDS_KEY = -1, -11, -12, -13, -14, -15, -16
# Where nothing has been answered.
UNKNOWN = -1
# Of ``Turns.said``: the order of queues is up to date; whether the gang can run; whether it takes another turn.
SAID_QUEUES, SAID_READY, SAID_END = range(3)
# Of ``Turns.asks``, bits: Python says whether the gang can run; whether it keeps what it got; what of its single tasks.
ASKS_READY, ASKS_END, ASKS_TASKS = 1, 2, 4
# Of what was said at the end of a turn: another one follows, behind gangs that cannot run yet (1 = before them).
LATE = 2
# Of ``Turns.at``: the gang whose turn goes on, -1 = none; where in its tasks; how many it has placed; the turn is over.
AT_GANG, AT_TASK, AT_PLACED, AT_OVER = range(4)


class Turns(NamedTuple):
    """Who waits, and in which order (own arrays).

    ``task`` int32 flat, waiting tasks in task order, those of gang g at ``start[g]:start[g + 1]``; ``plain`` bool
    (G,), nothing is asked about the gang; ``asks`` int8 (G,), what is; ``said`` int64 (3,), the answers; ``key`` int64
    (G, words), the order of gangs, of which word ``ready`` says whether a gang can run and word ``share_word`` how
    large a part it has (-1 = no word does), by ``shares``; ``heap`` int64 flat, gangs of queue q at ``heap_start[q]``
    of which ``heap_size[q]`` wait; ``queue_rank`` int64 (shares + 1, Q), ranks in the queue order before, between and
    behind the shares; ``share`` float64 (shares, Q), the largest used part of the limits
    ``parts[part_start[s]:part_start[s + 1]]``, at least ``least`` float64 (shares, Q); ``most``, limits at which a
    queue takes no turn any more; ``failed`` int64 (K,), the turn in which the class was last refused; ``undo``
    int32 (any,), what this turn has placed; ``kept`` bool (G,), the gang got something;
    ``turn`` int64 (1,), a counter; ``at`` int64 (4,), where the loop stopped.
    """

    task: Index
    start: Ints
    plain: Bools
    asks: Bytes
    said: Ints
    key: Ints
    ready: int
    share_word: int
    shares: Shares
    part_start: Ints
    parts: Rows
    least: Floats
    most: Rows
    heap: Ints
    heap_start: Ints
    heap_size: Ints
    queue_rank: Ints
    share: Floats
    failed: Ints
    undo: Index
    kept: Bools
    turn: Ints
    at: Ints


class Rules(NamedTuple):
    """What the policy asks for: a gang is ready by its members; it may wait by them; it gives up when its minimum is
    out of reach; ``allocatable`` is a quota; the order of queues, the
    quota, the order of gangs and the cards of a task are asked for; nothing is promised."""

    by_members: bool
    waits_by_members: bool
    gives_up: bool
    quota: bool
    asks_queues: bool
    asks_quota: bool
    asks_keys: bool
    asks_cards: bool
    at_once: bool


@compiled_loop
def renew_shares(ledger: Ledger, turns: Turns, queue: int) -> None:
    """Largest used part of a limit of the queue; 1 where something is used of which nothing is allowed."""
    for number in range(turns.share.shape[0]):
        share = turns.least[number, queue]
        for row in range(turns.part_start[number], turns.part_start[number + 1]):
            used, limit = _in_use(ledger, turns.parts, row, queue), turns.parts.limits[row, queue]
            if used > 0 and limit < NO_LIMIT:
                share = max(share, used / limit if limit != 0 else 1.0)
        turns.share[number, queue] = share


@compiled_loop
@from_python
def renew_all_shares(ledger: Ledger, turns: Turns) -> None:
    """As :func:`renew_shares`, of all queues."""
    for queue in range(turns.share.shape[1]):
        renew_shares(ledger, turns, queue)


@compiled_loop
def _in_use(ledger: Ledger, rows: Rows, row: int, queue: int) -> int:
    """What a queue's tasks have and are promised of a row."""
    used = 0
    for i in range(rows.start[row], rows.start[row + 1]):
        used += ledger.allocated[rows.row[i], queue] + ledger.pipelined[rows.row[i], queue]
    return used


@compiled_loop
def _takes_no_turn(ledger: Ledger, most: Rows, queue: int) -> bool:
    """The queue has bound as much as it may before others have had theirs, of everything."""
    if most.limits.shape[0] == 0:
        return False
    for row in range(most.limits.shape[0]):
        bound = 0
        for i in range(most.start[row], most.start[row + 1]):
            bound += ledger.allocated[most.row[i], queue]
        if most.limits[row, queue] > bound:
            return False
    return True


@compiled_loop
def is_ready(gangs: Gangs, rules: Rules, gang: int) -> bool:
    """Enough members are in place."""
    return not rules.by_members or gangs.ready[gang] >= gangs.least[gang]


@compiled_loop
def push(gangs: Gangs, turns: Turns, gang: int, ready: bool) -> None:
    """Let a gang wait for its turn, at the place that it has now."""
    if turns.ready >= 0:
        turns.key[gang, turns.ready] = 1 if ready else 0
    if turns.share_word >= 0:
        turns.shares.value[0] = gang_share(turns.shares, gang)
        turns.key[gang, turns.share_word] = turns.shares.bits[0]
    queue = gangs.queue[gang]
    first, last = turns.heap_start[queue], turns.heap_start[queue + 1]
    heap_push(turns.heap[first:last], turns.heap_size[queue], turns.key, gang)
    turns.heap_size[queue] += 1


@compiled_loop
def gang_share(shares: Shares, gang: int) -> float:
    """As :func:`scheduler_core.algorithms.dominant_share.dominant_share`; numbers that are not negative are ordered as
    their bits are."""
    share = 0.0
    for row in range(shares.total.shape[0]):
        held, total = shares.held[row, gang], shares.total[row]
        if held > 0:
            share = max(share, held / total if total != 0 else 1.0)
    return share


@compiled_loop
@from_python
def push_all(gangs: Gangs, turns: Turns, waiting: Ints, ready: Bools) -> None:
    """Let several gangs wait; ``ready`` bool (G,)."""
    for gang in waiting:
        push(gangs, turns, gang, ready[gang])


@compiled_loop
def next_gang(ledger: Ledger, turns: Turns) -> int:
    """Take the best gang of the best queue, -1 when no gang waits; O(queues + log gangs)."""
    while True:
        found = NONE
        for queue in range(turns.heap_size.shape[0]):
            if turns.heap_size[queue] and (found < 0 or _goes_before(turns, queue, found)):
                found = queue
        if found < 0:
            return -1
        if not _takes_no_turn(ledger, turns.most, found):
            break
        turns.heap_size[found] = 0
    first, last = turns.heap_start[found], turns.heap_start[found + 1]
    gang = heap_pop(turns.heap[first:last], turns.heap_size[found], turns.key)
    turns.heap_size[found] -= 1
    return gang


@compiled_loop
def _goes_before(turns: Turns, a: int, b: int) -> bool:
    rank, share, last = turns.queue_rank, turns.share, turns.share.shape[0]
    for number in range(last):
        if rank[number, a] != rank[number, b]:
            return bool(rank[number, a] < rank[number, b])
        if share[number, a] != share[number, b]:
            return bool(share[number, a] < share[number, b])
    return bool(rank[last, a] < rank[last, b])


@compiled_apart
def take_turns(tables: Tables, quota: Quota, scores: Scores, views: Views, turns: Turns, rules: Rules) -> int:
    """Serve gangs until none is left or something has to be asked; called again it goes on where it stopped."""
    classes, tasks, gangs, ledger, log = tables.classes, tables.tasks, tables.gangs, tables.ledger, tables.log
    while True:
        asked = 0 if turns.at[AT_GANG] >= 0 else _start(ledger, log, turns, rules)
        if asked:
            return asked
        gang = turns.at[AT_GANG]
        task = _next_task(classes, tasks, turns, gang)
        if task < 0:
            asked = _end(tables, turns, rules, gang)
        else:
            alone = turns.asks[gang] & ASKS_TASKS != 0
            asked = _place(tables, quota, scores, views, rules, alone, task)
            if asked >= 0:
                asked = _note_placed(tasks, gangs, turns, rules, task, asked == 1)
        if asked < 0:
            return asked


@compiled_loop
def _start(ledger: Ledger, log: Log, turns: Turns, rules: Rules) -> int:
    """Begin the turn of the next gang; 0, or why the loop stops."""
    at, said = turns.at, turns.said
    if log.nodes.shape[0] - log.length[0] < 4 * turns.undo.shape[0]:
        return NEEDS_LOG
    if rules.asks_queues and said[SAID_QUEUES] == UNKNOWN:
        return NEEDS_QUEUES
    said[SAID_QUEUES] = UNKNOWN
    gang = next_gang(ledger, turns)
    if gang < 0:
        return ALL_DONE
    turns.turn[0] += 1
    at[AT_GANG], at[AT_TASK], at[AT_PLACED], at[AT_OVER] = gang, turns.start[gang], 0, 0
    return NEEDS_BEGIN if turns.asks[gang] & ASKS_END else 0


@compiled_loop
def _next_task(classes: Classes, tasks: Tasks, turns: Turns, gang: int) -> int:
    """The next task of the turn that may get a place, -1 = none is left or the gang can run."""
    at, end = turns.at, turns.start[gang + 1]
    if turns.said[SAID_READY] == 1:
        at[AT_TASK] = end
    turns.said[SAID_READY] = UNKNOWN
    while at[AT_TASK] < end:
        task = turns.task[at[AT_TASK]]
        cls = tasks.cls[task]
        if tasks.status[task] == PENDING and turns.failed[cls] != turns.turn[0] and not classes.idle[cls]:
            return int(task)
        at[AT_TASK] += 1
    return -1


@compiled_loop
def _note_placed(tasks: Tasks, gangs: Gangs, turns: Turns, rules: Rules, task: int, placed: bool) -> int:
    """Go on to the next task, or to the end of the turn; 0, or why the loop stops."""
    at, gang = turns.at, int64(tasks.gang[task])
    at[AT_TASK] += 1
    if placed:
        turns.undo[at[AT_PLACED]] = task
        at[AT_PLACED] += 1
        if turns.asks[gang] & ASKS_READY:
            return NEEDS_READY
        if is_ready(gangs, rules, gang):
            at[AT_TASK] = turns.start[gang + 1]
    else:
        turns.failed[tasks.cls[task]] = turns.turn[0]
        if rules.gives_up and needed(gangs, gang) > _left(tasks, turns, gang):
            at[AT_TASK] = turns.start[gang + 1]
    return 0


@compiled_loop
def _end(tables: Tables, turns: Turns, rules: Rules, gang: int) -> int:
    """End a turn; 0, or why the loop stops."""
    classes, tasks, gangs, ledger = tables.classes, tables.tasks, tables.gangs, tables.ledger
    at, said, by_loop = turns.at, turns.said, turns.asks[gang] & ASKS_END == 0
    if not at[AT_OVER]:
        if not by_loop and said[SAID_END] == UNKNOWN:
            return NEEDS_END
        kept, said[SAID_END] = said[SAID_END], UNKNOWN
        if by_loop:
            kept = _settle(tables, turns, rules, gang)
        if kept:
            renew_shares(ledger, turns, int64(gangs.queue[gang]))
            if by_loop and turns.share_word >= 0:
                _note_held(classes, tasks, turns, gang)
        goes_on = kept and (not by_loop or is_ready(gangs, rules, gang))
        if not goes_on or not _has_more(classes, tasks, turns, gang):
            at[AT_GANG] = -1
            return 0
        late = gangs.ready[gang] >= gangs.least[gang] if by_loop else kept == LATE
        at[AT_OVER] = LATE if late else 1
        if rules.asks_keys:
            return NEEDS_KEY
    at[AT_GANG] = -1
    push(gangs, turns, gang, at[AT_OVER] == LATE)
    return 0


@compiled_loop
def _note_held(classes: Classes, tasks: Tasks, turns: Turns, gang: int) -> None:
    """Count what the gang has got in this turn towards its share."""
    shares = turns.shares
    for i in range(turns.at[AT_PLACED]):
        task = turns.undo[i]
        view = classes.view_start[tasks.cls[task]]
        while classes.card[view] != tasks.card[task]:
            view += 1
        for row in range(shares.total.shape[0]):
            shares.held[row, gang] += shares.asked[row, view]


@compiled_loop
def _settle(tables: Tables, turns: Turns, rules: Rules, gang: int) -> int:
    """Keep what a turn has placed, as promises where the gang cannot run yet, or undo it; 1 when something is kept."""
    tasks, gangs, placed = tables.tasks, tables.gangs, turns.at[AT_PLACED]
    keeps = not rules.by_members or needed(gangs, gang) == 0
    turns.kept[gang] |= keeps
    if not keeps or not is_ready(gangs, rules, gang):
        for i in range(placed - 1, -1, -1):
            if not keeps or tasks.status[turns.undo[i]] == ALLOCATED:
                take_off(tables, int64(turns.undo[i]), keeps)
    return 1 if keeps and placed > 0 else 0


@compiled_loop
def needed(gangs: Gangs, gang: int) -> int:
    """How many more members it takes to reach minMember, promised ones counted as there."""
    return int(max(0, gangs.least[gang] - gangs.ready[gang] - gangs.counts[PIPELINED, gang]))


@compiled_loop
def _left(tasks: Tasks, turns: Turns, gang: int) -> int:
    """Waiting members of classes that were not refused in this turn."""
    left, turn = 0, turns.turn[0]
    for i in range(turns.start[gang], turns.start[gang + 1]):
        task = turns.task[i]
        left += tasks.status[task] == PENDING and turns.failed[tasks.cls[task]] != turn
    return left


@compiled_loop
def _has_more(classes: Classes, tasks: Tasks, turns: Turns, gang: int) -> bool:
    turn = turns.turn[0]
    for i in range(turns.start[gang], turns.start[gang + 1]):
        task = turns.task[i]
        cls = tasks.cls[task]
        if tasks.status[task] == PENDING and turns.failed[cls] != turn and not classes.idle[cls]:
            return True
    return False


@compiled_loop
def take_off(tables: Tables, task: int, promise: bool) -> None:
    """Take back the place of a task, or leave it the place as a promise: none of its gang's members starts yet."""
    put(tables, task, REMOVE)
    if promise:
        tables.tasks.status[task] = PIPELINED
        put(tables, task, ADD)
    else:
        forget_place(tables.tasks, task)


@compiled_apart
def place_task(tables: Tables, quota: Quota, scores: Scores, views: Views, rules: Rules, alone: bool, task: int) -> int:
    """As a turn places a task; for those who call it outside of turns."""
    return _place(tables, quota, scores, views, rules, alone, task)


@compiled_loop
def _place(tables: Tables, quota: Quota, scores: Scores, views: Views, rules: Rules, alone: bool, task: int) -> int:
    """Allocate the task where it fits at once, else promise it a place; 1, 0 when there is none, or what is asked.

    ``alone``: Python says something of this very task, see ``Views.only``.
    """
    nodes, cards, classes, tasks = tables.nodes, tables.cards, tables.classes, tables.tasks
    gangs, ledger, log = tables.gangs, tables.ledger, tables.log
    if (alone or rules.asks_quota) and views.ask[ASK_TASK] != task:
        views.ask[ASK_WANTED] = task
        return NEEDS_TASK
    cls, queue = tasks.cls[task], gangs.queue[tasks.gang[task]]
    half = classes.card.shape[0]
    for stage in range(2):
        later = stage == 1
        if later and rules.at_once:
            break
        found, most = NONE, NOWHERE
        for view in range(classes.view_start[cls], classes.view_start[cls + 1]):
            if not _is_open(ledger, quota, classes, views, rules, queue, view):
                continue
            node = best_node(nodes, cards, classes, scores, views, log, view, later)
            if node < -1:
                return node
            if views.ask[ASK_ON] >= 0:
                node = views.ask[ASK_ON] if views.key[views.row[view], views.ask[ASK_ON]] != NOWHERE else NONE
            if node >= 0 and alone:
                node = best_for_task(views, view + half if later else view)
            if node < 0:
                continue
            score = views.bits[0] if alone else views.key[views.row[view + half if later else view], node]
            if found < 0 or score > most or (score == most and node < found):
                found, most = node, score
        if found < 0:
            continue
        first, last = classes.view_start[cls], classes.view_start[cls + 1]
        for view in range(first, last):
            if last - first > 1 and not _is_open(ledger, quota, classes, views, rules, queue, view):
                continue
            if views.key[views.row[view + half if later else view], found] != NOWHERE:
                return take_on(tables, scores, views, rules, task, view, found, later)
    views.ask[ASK_TASK] = NO_TASK
    return 0


@compiled_loop
def take_on(
    tables: Tables, scores: Scores, views: Views, rules: Rules, task: int, view: int, node: int, later: bool
) -> int:
    """Give the task a place on a node where it fits by the view; 1, or what is asked."""
    nodes, cards, classes, tasks = tables.nodes, tables.cards, tables.classes, tables.tasks
    cls, card = tasks.cls[task], classes.card[view]
    tasks.node[task], tasks.card[task] = node, card
    if card >= 0:
        if rules.asks_cards and views.ask[ASK_CARDS] != task:
            forget_place(tasks, task)
            views.ask[ASK_WANTED], views.ask[ASK_VIEW], views.ask[ASK_NODE] = task, view, node
            if later:
                views.ask[ASK_VIEW] += classes.card.shape[0]
            return NEEDS_CARDS
        wish, share = NONE, classes.share[cls]
        if share and scores.fragments.before.shape[0]:
            wish = wished_card(nodes, cards, classes, scores.fragments, cls, view, node)
        choose(cards, tasks, task, classes.whole[cls], share, later, wish)
        if rules.asks_cards:
            _wear(tasks, views, task)
    tasks.status[task] = PIPELINED if later else ALLOCATED
    put(tables, task, ADD)
    views.ask[ASK_TASK] = views.ask[ASK_CARDS] = NO_TASK
    return 1


@compiled_loop
def _wear(tasks: Tasks, views: Views, task: int) -> None:
    """Give the task the cards that were named for it, if any were."""
    named = False
    for word in range(views.wish.shape[0]):
        named = named or views.wish[word] != 0
    if named:
        for word in range(views.wish.shape[0]):
            tasks.words[task, word] = views.wish[word]


@compiled_loop
def _is_open(ledger: Ledger, quota: Quota, classes: Classes, views: Views, rules: Rules, queue: int, view: int) -> bool:
    """The queue's quota has room for one more task on the view's card type, which is the one that is asked for."""
    if views.ask[ASK_OF] >= 0 and classes.card[view] != views.ask[ASK_OF]:
        return False
    if rules.asks_quota:
        return bool(views.open[view])
    return not rules.quota or within(ledger, quota, classes, queue, view)


@compiled_loop
def within(ledger: Ledger, quota: Quota, classes: Classes, queue: int, view: int) -> bool:
    """The queue's quota has room for one more task on the view's card type."""
    cls, card = classes.of_view[view], classes.card[view]
    for row in (CPU, MEMORY):
        asked = classes.charge[row, cls]
        if asked > 0 and _used(ledger, row, queue) + asked > quota.limits[row, queue]:
            return False
    if card >= 0 and (quota.named[cls] or quota.counted[queue]):
        row = LEDGER_CARDS + card
        if _used(ledger, row, queue) + classes.milli[cls] > quota.limits[row, queue]:
            return False
    for row in range(quota.rows.limits.shape[0]):
        asked = quota.asked[row, view]
        if asked > 0 and _in_use(ledger, quota.rows, row, queue) + asked > quota.rows.limits[row, queue]:
            return False
    return True


@compiled_loop
def _used(ledger: Ledger, row: int, queue: int) -> int:
    return int(ledger.allocated[row, queue] + ledger.pipelined[row, queue])
