"""Claimants take turns: who leaves for them is searched, leaves, and they get the room, in all tables at once.

The same decisions as :class:`scheduler_core.actions.reclaim.Reclaim` takes gang by gang. Whatever this cannot do it
hands to the caller and goes on when it is called again: what a gang's attempt has come to is in ``Claims.control``.
"""

from __future__ import annotations

from scheduler_core.algorithms.compiled import NO, compiled_branchy, from_python, int64
from scheduler_core.algorithms.victims_choice import PICKED, SEEN, TOUCHED, Choice
from scheduler_core.algorithms.victims_field import free_cards
from scheduler_core.algorithms.victims_heap import Heap
from scheduler_core.algorithms.victims_room import Ask, Field, capacity
from scheduler_core.algorithms.victims_search import fill_heap, greedy, let_go
from scheduler_core.framework.kernels.claim_columns import (
    BEGIN,
    BY_HAND,
    CHOOSE,
    CHOSEN,
    DONE,
    END,
    FREE,
    FRESH,
    GROW,
    HOLD_BACK,
    IDLE,
    LIMIT,
    NEVER_HERE,
    NEW_KIND,
    NOT_YET,
    PLACE,
    PLACED,
    SEEK,
    SLOT,
    STAGE,
    STAMP,
    TAKE,
    TAKE_BACK,
    TARGET,
    WANTED,
    WHO,
    Claims,
    Leavers,
    Story,
)
from scheduler_core.framework.kernels.columns import Cards, Classes, Gangs, Ledger, Log, Quota, Tables, Views
from scheduler_core.framework.kernels.leaving import look_again, note_passed_over, note_taken, take, write_down
from scheduler_core.framework.kernels.scores import Scores
from scheduler_core.framework.kernels.turns import (
    Rules,
    Turns,
    is_ready,
    needed,
    next_gang,
    place_task,
    renew_shares,
)
from scheduler_core.state.axes import CPU, LEDGER_CARDS, MEMORY
from scheduler_core.state.status import ALLOCATED


@compiled_branchy
@from_python
def serve_claims(
    tables: Tables,
    quota: Quota,
    scores: Scores,
    views: Views,
    turns: Turns,
    rules: Rules,
    field: Field,
    leavers: Leavers,
    claims: Claims,
    story: Story,
) -> int:
    """Serve claimants until all are done or the caller has to do something for one of them."""
    classes, tasks, gangs, ledger, log = tables.classes, tables.tasks, tables.gangs, tables.ledger, tables.log
    control = claims.control
    while True:
        if control[STAGE] == IDLE:
            gang = next_gang(ledger, turns)
            if gang < 0:
                return DONE
            control[WHO] = gang
            if not turns.plain[gang] or claims.kind[gang] < 0:
                return BY_HAND
            control[STAGE] = BEGIN
        gang = control[WHO]
        kind, first, queue = claims.kind[gang], turns.start[gang], gangs.queue[gang]
        cls = tasks.cls[turns.task[first]]
        if control[STAGE] == BEGIN:
            if claims.first[kind] == NOT_YET:
                return NEW_KIND
            if claims.first[kind] == NEVER_HERE:
                control[STAGE] = IDLE
                return BY_HAND
            count = turns.start[gang + 1] - first
            if log.nodes.shape[0] - log.length[0] < 2 * count:
                return GROW
            control[PLACED], control[FREE], control[CHOSEN], control[LIMIT] = 0, -1, 0, -1
            control[TARGET] = _quota_for(ledger, quota, classes, queue, cls, count)
            control[STAGE] = PLACE
        if control[STAGE] == CHOOSE:
            return SEEK
        if control[STAGE] == TAKE:
            answer = take(tables, field, leavers, claims, story)
            if answer != DONE:
                return answer
            control[TARGET] = control[FREE] + control[WANTED]
            control[STAGE] = PLACE
        if control[STAGE] == PLACE:
            placed = control[PLACED]
            while placed < control[TARGET]:
                task = int64(turns.task[first + placed])
                if not place_task(tables, quota, scores, views, rules, NO, task):
                    break
                placed += 1
            control[PLACED] = placed
            if control[FREE] >= 0 and placed < control[TARGET]:
                return TAKE_BACK
            control[STAGE] = END
            if control[FREE] >= 0:
                note_taken(tasks, turns, story, control, first)
            else:
                control[FREE], control[WANTED] = placed, control[TARGET] - placed
                if control[WANTED]:
                    control[LIMIT] = _quota_for(ledger, quota, classes, queue, cls, control[WANTED])
                    control[STAGE] = CHOOSE
                    continue
        kept = control[PLACED] > 0 and _reaches(gangs, rules, gang)
        if kept:
            if not is_ready(gangs, rules, gang) and gangs.counts[ALLOCATED, gang]:
                return HOLD_BACK
            turns.kept[gang] = True
            look_again(tasks, gangs, field, leavers, gang)
            renew_shares(ledger, turns, int64(queue))
        elif control[PLACED] or control[CHOSEN]:
            return TAKE_BACK
        write_down(claims, story, kept)
        control[STAGE] = IDLE


@compiled_branchy
def _reaches(gangs: Gangs, rules: Rules, gang: int) -> bool:
    """minMember is reached with what is promised, or no plugin asks for it."""
    return not (rules.by_members or rules.waits_by_members) or needed(gangs, gang) == 0


@compiled_branchy
def _quota_for(ledger: Ledger, quota: Quota, classes: Classes, queue: int, cls: int, most: int) -> int:
    """How many tasks of a class with one card option at most the queue's quota still allows."""
    card, count = classes.card[classes.view_start[cls]], most
    for row in (CPU, MEMORY):
        each = classes.charge[row, cls]
        if each > 0:
            left = quota.limits[row, queue] - ledger.allocated[row, queue] - ledger.pipelined[row, queue]
            count = min(count, max(0, left // each))
    if card >= 0 and (quota.named[cls] or quota.counted[queue]):
        row = LEDGER_CARDS + card
        left = quota.limits[row, queue] - ledger.allocated[row, queue] - ledger.pipelined[row, queue]
        count = min(count, max(0, left // classes.milli[cls]))
    return int(count)


@compiled_branchy
@from_python
def seek(
    cards: Cards, log: Log, field: Field, ask: Ask, choice: Choice, claims: Claims, story: Story, kind: int
) -> bool:
    """Search the cheapest units for as many tasks as possible; the next stage is ``TAKE`` or ``END``.

    False where more than the offers of one node have to be weighed against each other.
    """
    control, limits = claims.control, claims.limits
    limits[0] = control[LIMIT]
    first, last = claims.first[kind], claims.first[kind] + claims.levels[kind]
    _bring_up_cards(cards, log, field, claims)
    most = 0
    for slot in range(first, last):
        _bring_up(log, field, ask, choice, claims, slot)
        most = max(most, min(claims.sums[slot, 0], control[LIMIT]))
    control[WANTED] = min(control[WANTED], most)
    while control[WANTED]:
        for slot in range(first, last):
            if claims.sums[slot, 0] < control[WANTED]:
                continue
            heap, rank = Heap(claims.keys[slot], claims.current[slot]), claims.rank[slot]
            offers = greedy(field, ask, limits, choice, rank, heap, control[WANTED])
            if offers == 1:
                control[CHOSEN] = choice.control[PICKED]
                for i in range(control[CHOSEN]):
                    place = i
                    while place and choice.picked[i] < claims.chosen[place - 1]:
                        claims.chosen[place] = claims.chosen[place - 1]
                        place -= 1
                    claims.chosen[place] = choice.picked[i]
            let_go(field, ask, limits, choice)
            for row in range(2):
                # The nodes that left the heap come back, and those that were touched.
                count = choice.control[TOUCHED] if row else choice.control[SEEN]
                fill_heap(field, ask, choice, rank, heap, choice.touched[2 - row], count)
            if offers != 1:
                control[SLOT] = slot
                return False
            note_passed_over(field, ask, claims, story)
            control[STAGE] = TAKE
            return True
        control[WANTED] -= 1
    control[STAGE] = END
    return True


@compiled_branchy
def _bring_up_cards(cards: Cards, log: Log, field: Field, claims: Claims) -> None:
    """Let the search see what has changed on single cards."""
    control = claims.control
    count = _changed_since(log, claims, control[FRESH])
    control[FRESH] = log.length[0]
    free_cards(field.card_at, claims.changed[:count], cards.used, cards.releasing, cards.pipelined, field.card_free)


@compiled_branchy
def _bring_up(log: Log, field: Field, ask: Ask, choice: Choice, claims: Claims, slot: int) -> None:
    """Bring what a level could gain up to what has changed, O(changed nodes)."""
    place = claims.place[slot]
    if place == log.length[0]:
        return
    claims.place[slot] = log.length[0]
    count, changed, rank = _changed_since(log, claims, place), claims.changed, claims.rank[slot]
    for i in range(count):
        node = changed[i]
        claims.sums[slot, 0] -= claims.room[slot, node, 0]
        claims.room[slot, node, 0] = 0
        if ask.nodes[node]:
            capacity(field, ask, claims.bounds, ask.ok, rank, node, claims.room[slot, node])
            claims.sums[slot, 0] += claims.room[slot, node, 0]
    fill_heap(field, ask, choice, rank, Heap(claims.keys[slot], claims.current[slot]), changed, count)


@compiled_branchy
def _changed_since(log: Log, claims: Claims, place: int) -> int:
    """Put the nodes that have changed since a place of the log into ``claims.changed``, each once; return how many."""
    changed, mark = claims.changed, claims.mark
    if place < 0:
        for node in range(changed.shape[0]):
            changed[node] = node
        return int(changed.shape[0])
    claims.control[STAMP] += 1
    stamp, count = claims.control[STAMP], 0
    for i in range(place, log.length[0]):
        node = log.nodes[i]
        if mark[node] != stamp:
            mark[node] = stamp
            changed[count] = node
            count += 1
    return count
