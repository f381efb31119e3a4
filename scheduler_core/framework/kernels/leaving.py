"""Letting chosen units leave and taking that back, in all tables at once, and noting it for the record."""

from __future__ import annotations

from scheduler_core.algorithms.compiled import NO, ZERO, compiled_apart, compiled_branchy, from_python, int64
from scheduler_core.algorithms.victims_alone import note_alone
from scheduler_core.algorithms.victims_beside import RULES, beside
from scheduler_core.algorithms.victims_field import load_unit
from scheduler_core.algorithms.victims_room import (
    FIRST,
    GANG,
    LAST,
    LEVEL,
    LOST,
    SINGLE,
    SPARE,
    TASK,
    UNIT_TASK,
    WHOLE,
    WORK,
    Ask,
    Field,
)
from scheduler_core.framework.kernels.claim_columns import (
    C_FREE,
    C_GANG,
    C_KEPT,
    C_KIND,
    C_PASSED,
    C_PASSES,
    C_PLACED,
    C_UNIT,
    C_UNITS,
    CHOSEN,
    DONE,
    FREE,
    GROW,
    LIMIT,
    MOST_PASSED_OVER,
    PLACED,
    S_CLAIM,
    S_LEFT,
    S_PASSED,
    S_UNIT,
    U_GANG,
    U_LEVEL,
    U_SPARE,
    U_TASK,
    U_TASKS,
    U_UNIT,
    U_WORK,
    VET,
    WANTED,
    WHO,
    Claims,
    Leavers,
    Story,
)
from scheduler_core.framework.kernels.columns import Gangs, Tables, Tasks
from scheduler_core.framework.kernels.moves import put_cards
from scheduler_core.framework.kernels.turns import Turns
from scheduler_core.model.cards import WORD_BITS
from scheduler_core.model.resources import MILLI
from scheduler_core.state.axes import CPU, LEDGER_CARDS, MEMORY
from scheduler_core.state.status import ALLOCATED, RELEASING, RUNNING, Ints


@compiled_apart
def take(tables: Tables, field: Field, leavers: Leavers, claims: Claims, story: Story) -> int:
    """Let the chosen units leave."""
    tasks, gangs, log = tables.tasks, tables.gangs, tables.log
    control, size = claims.control, story.size
    first, end = size[S_LEFT], size[S_LEFT]
    for i in range(control[CHOSEN]):
        if not claims.vetted[claims.chosen[i]]:
            return VET
    for i in range(control[CHOSEN]):
        unit = claims.chosen[i]
        column = WHOLE if field.units[unit, UNIT_TASK] < 0 else SINGLE
        row = story.unit[size[S_UNIT] + i]
        row[U_UNIT], row[U_GANG], row[U_LEVEL] = unit, field.units[unit, GANG], field.units[unit, LEVEL]
        row[U_WORK], row[U_SPARE] = field.units[unit, WORK], column == SINGLE
        row[U_TASK] = end
        for at in range(field.units[unit, FIRST], field.units[unit, LAST]):
            piece = field.unit_piece[at]
            if field.pieces[piece, column] == unit:
                task = field.pieces[piece, TASK]
                story.left[end], story.lost[end] = task, field.pieces[piece, LOST]
                story.was[end], story.taken[end] = tasks.status[task], False
                end += 1
        row[U_TASKS] = end
    if log.nodes.shape[0] - log.length[0] < 4 * (end - first + control[WANTED] + control[FREE]):
        return GROW
    for i in range(first, end):
        _leave(tables, field, leavers, story.left[i])
    for i in range(control[CHOSEN]):
        look_again(tasks, gangs, field, leavers, field.units[claims.chosen[i], GANG])
    return DONE


@compiled_branchy
def _leave(tables: Tables, field: Field, leavers: Leavers, task: int) -> None:
    """Let a task start to leave."""
    nodes, cards, tasks, gangs = tables.nodes, tables.cards, tables.tasks, tables.gangs
    ledger, log = tables.ledger, tables.log
    status = tasks.status[task]
    cls, node, card, gang = leavers.cls[task], tasks.node[task], tasks.card[task], tasks.gang[task]
    if node >= 0:
        for row in range(field.requests.shape[1]):
            amount = field.requests[cls, row]
            if amount:
                nodes.releasing[row, node] += amount
                idle = nodes.allocatable[row, node] - nodes.used[row, node]
                future = idle + nodes.releasing[row, node] - nodes.pipelined[row, node]
                nodes.future[row, node] = future
                nodes.now[row, node] = min(idle, future)
        if card >= 0:
            each, first = leavers.share[cls] or MILLI, cards.start[card, node]
            for i in range(cards.counts[card, node]):
                if tasks.words[task, i // WORD_BITS] >> (i % WORD_BITS) & 1:
                    cards.releasing[first + i] += each
            put_cards(cards, tasks, task, card, node, ZERO, NO)
        log.nodes[log.length[0]] = node
        log.length[0] += 1
    gangs.counts[status, gang] -= 1
    gangs.counts[RELEASING, gang] += 1
    gangs.versions[gang] += 2
    gangs.ready[gang] -= 1
    leavers.valid[gang] -= 1
    queue = gangs.queue[gang]
    if queue >= 0:
        ledger.allocated[CPU, queue] -= leavers.charge[0, cls]
        ledger.allocated[MEMORY, queue] -= leavers.charge[1, cls]
        if card >= 0:
            ledger.allocated[LEDGER_CARDS + card, queue] -= leavers.charge[2, cls]
        ledger.versions[queue] += 1
    tasks.status[task] = RELEASING


@compiled_branchy
def look_again(tasks: Tasks, gangs: Gangs, field: Field, leavers: Leavers, gang: int) -> None:
    """Bring the units of a gang up to what its members do now."""
    unit = leavers.whole[gang]
    if gangs.counts[ALLOCATED, gang]:
        leavers.barred[gang] = True
    if leavers.lenient[gang]:
        field.units[unit, SPARE] = max(0, gangs.ready[gang] - gangs.least[gang])
    load_unit(field, unit, tasks.status, leavers.charged, int64(RUNNING), leavers.barred, leavers.level)


# A gang that was passed over is noted with why: its number times so many, and the reason's.
WHYS = len(RULES)


@compiled_branchy
@from_python
def note_passed_over(field: Field, ask: Ask, claims: Claims, story: Story) -> None:
    """The cheapest gangs that may be taken whole, cost less than the chosen units, and are not among them."""
    control, size = claims.control, story.size
    top, work, found = 0, 0, 0
    for i in range(control[CHOSEN]):
        top = max(top, field.units[claims.chosen[i], LEVEL])
        work += field.units[claims.chosen[i], WORK]
    # While they are gathered these are units; those of the chosen gangs are left out.
    passed = story.passed[size[S_PASSED] : size[S_PASSED] + MOST_PASSED_OVER]
    for unit in range(field.units.shape[0]):
        level = field.units[unit, LEVEL]
        if level > top or not ask.ok[unit] or field.units[unit, UNIT_TASK] >= 0:
            continue
        if level == top and field.units[unit, WORK] >= work:
            continue
        if found == MOST_PASSED_OVER and not _comes_before(field, unit, passed[found - 1]):
            continue
        mine = False
        for i in range(control[CHOSEN]):
            mine |= field.units[claims.chosen[i], GANG] == field.units[unit, GANG]
        if mine:
            continue
        place = found if found < MOST_PASSED_OVER else found - 1
        found = place + 1
        while place and _comes_before(field, unit, passed[place - 1]):
            passed[place] = passed[place - 1]
            place -= 1
        passed[place] = unit
    for i in range(found):
        why = beside(field.units, ask.size, passed[i], claims.chosen, control[CHOSEN])
        story.cost[size[S_PASSED] + i, 0] = field.units[passed[i], WORK]
        story.cost[size[S_PASSED] + i, 1] = field.units[passed[i], ask.size]
        if why == 0:
            room = story.room[size[S_PASSED] + i]
            note_alone(field, ask, claims.limits, passed[i], control[WANTED], story.alone, story.fits, room)
        passed[i] = field.units[passed[i], GANG] * WHYS + why
    story.claim[size[S_CLAIM], C_PASSES] = size[S_PASSED] + found


@compiled_branchy
def _comes_before(field: Field, a: int, b: int) -> bool:
    """Order of whole gangs: level, work lost, name."""
    level, work = field.units[a, LEVEL] - field.units[b, LEVEL], field.units[a, WORK] - field.units[b, WORK]
    return level < 0 or (level == 0 and (work < 0 or (work == 0 and a < b)))


@compiled_branchy
def note_taken(tasks: Tasks, turns: Turns, story: Story, control: Ints, first: int) -> None:
    """Note whose very cards are taken over."""
    end = story.unit[story.size[S_UNIT] + control[CHOSEN] - 1, U_TASKS]
    for i in range(story.size[S_LEFT], end):
        gone = story.left[i]
        for k in range(control[FREE], control[PLACED]):
            task = turns.task[first + k]
            if tasks.node[task] == tasks.node[gone] and tasks.card[task] == tasks.card[gone]:
                for word in range(tasks.words.shape[1]):
                    if tasks.words[task, word] & tasks.words[gone, word]:
                        story.taken[i] = True


@compiled_branchy
def write_down(claims: Claims, story: Story, kept: bool) -> None:
    """Add the attempt that is over to the story."""
    control, size = claims.control, story.size
    row = story.claim[size[S_CLAIM]]
    row[C_GANG], row[C_KEPT] = control[WHO], kept
    row[C_FREE], row[C_PLACED] = control[FREE], control[PLACED]
    row[C_UNIT], row[C_UNITS] = size[S_UNIT], size[S_UNIT] + control[CHOSEN]
    row[C_PASSED], row[C_KIND] = size[S_PASSED], -1 if control[LIMIT] < 0 else claims.kind[control[WHO]]
    if control[CHOSEN]:
        size[S_LEFT] = story.unit[size[S_UNIT] + control[CHOSEN] - 1, U_TASKS]
        size[S_UNIT] += control[CHOSEN]
        size[S_PASSED] = row[C_PASSES]
    else:
        row[C_PASSES] = size[S_PASSED]
    size[S_CLAIM] += 1
