"""Where a task class fits and which node is best, brought up from the log of changed nodes when it is asked."""

from __future__ import annotations

from scheduler_core.algorithms.best_of_blocks import NOWHERE, best, set_all, set_key, sort_key
from scheduler_core.algorithms.compiled import compiled_loop, int64
from scheduler_core.framework.kernels.columns import Cards, Classes, Log, Nodes, Views
from scheduler_core.framework.kernels.fragments import bring_up
from scheduler_core.framework.kernels.scores import Scores, score_node, score_nodes
from scheduler_core.state.status import Index, Ints

# Of ``Views.ask``: whether own scores are given when the loop goes on; of which view; of how many nodes at the
# beginning of ``where``; how many in ``where`` have changed; the task that is asked about, and the one that was
# answered; the node whose cards are asked for, and the task for which they were named; the only node and the only card
# type that will do, -1 = any.
ASK_STATE, ASK_VIEW, ASK_COUNT, ASK_CHANGED, ASK_WANTED, ASK_TASK, ASK_NODE, ASK_CARDS, ASK_ON, ASK_OF = range(10)
NOTHING, GIVEN = range(2)
NO_TASK = -1
# What :func:`best_node` and who calls it answer instead of a node while something has to be asked.
NEEDS_SCORES, NEEDS_VIEW, NEEDS_TASK, NEEDS_CARDS = -2, -3, -4, -5


@compiled_loop
def best_node(
    nodes: Nodes, cards: Cards, classes: Classes, scores: Scores, views: Views, log: Log, view: int, later: bool
) -> int:
    """The best node for the view, -1 = none; O(changed nodes), or O(N) the first time.

    Below -1 something is needed first (``views.ask``); asked again, it goes on with that.
    """
    slot = view + classes.card.shape[0] if later else view
    row = _row_of(views, slot)
    key, bound, stale, group = views.key[row], views.bound[row], views.stale[row], views.group[row]
    if views.place[slot] != log.length[0]:
        if classes.volatile[classes.of_view[view]]:
            views.ask[ASK_VIEW] = slot
            return NEEDS_VIEW
        if views.ask[ASK_STATE] != GIVEN:
            if 0 <= views.place[slot] == log.length[0] - 1:
                views.where[0] = node = log.nodes[views.place[slot]]
                changed = 1 if classes.masks[_mask(classes, view, later), node] else 0
            else:
                changed = _changed_since(classes, views, log, view, later)
            count = _fitting(nodes, cards, classes, views, view, later, changed)
            views.ask[ASK_COUNT], views.ask[ASK_CHANGED] = count, changed
            if count and scores.given.shape[0]:
                views.ask[ASK_STATE], views.ask[ASK_VIEW] = GIVEN, slot
                return NEEDS_SCORES
        views.ask[ASK_STATE] = NOTHING
        count, changed = views.ask[ASK_COUNT], views.ask[ASK_CHANGED]
        if scores.fragments.before.shape[0]:
            bring_up(nodes, cards, scores.fragments, log)
        cls, everything = int64(classes.of_view[view]), views.place[slot] < 0
        views.place[slot] = log.length[0]
        if count == 1:
            views.value[0] = score_node(nodes, cards, classes, scores, cls, views.where[0])
        else:
            score_nodes(nodes, cards, classes, scores, views, cls, count)
        if everything:
            key[:] = NOWHERE
            for i in range(count):
                key[views.where[i]] = sort_key(views.bits[i])
            set_all(key, bound, stale, group)
        else:
            for i in range(count):
                set_key(key, bound, stale, group, views.where[i], sort_key(views.bits[i]))
            for i in range(count, changed):
                set_key(key, bound, stale, group, views.where[i], NOWHERE)
    return best(key, bound, stale, group)


@compiled_loop
def _row_of(views: Views, slot: int) -> int:
    """The row of ``views.key`` with the view, that of the one that was not asked for longest if it has none; O(rows)
    then."""
    clock, row = views.clock, views.row[slot]
    clock[0] += 1
    if row < 0:
        row = 0
        for other in range(views.owner.shape[0]):
            if views.used[other] < views.used[row]:
                row = other
        if views.owner[row] >= 0:
            views.row[views.owner[row]], views.place[views.owner[row]] = -1, -1
        views.owner[row], views.row[slot] = slot, row
    views.used[row] = clock[0]
    return int(row)


@compiled_loop
def best_for_task(views: Views, slot: int) -> int:
    """The best node of a view for the task of which ``views.only`` and ``views.extra`` speak, -1 = none; O(N).

    Its key is in ``views.bits[0]`` then.
    """
    key, found, most = views.key[views.row[slot]], -1, NOWHERE
    for node in range(key.shape[0]):
        if key[node] != NOWHERE and views.only[node]:
            views.bits[0] = sort_key(key[node])
            views.value[0] += views.extra[node]
            score = sort_key(views.bits[0])
            if score > most:
                found, most = node, score
    views.bits[0] = most
    return found


@compiled_loop
def _mask(classes: Classes, view: int, later: bool) -> int:
    """The row of ``classes.masks`` with the nodes that the view may use, room aside."""
    return int(classes.mask_future[view] if later else classes.mask_now[view])


@compiled_loop
def _changed_since(classes: Classes, views: Views, log: Log, view: int, later: bool) -> int:
    """Put each node of the view's mask that has changed since it was last here into ``views.where`` once, all of them
    the first time and after more changes than there are nodes; return how many."""
    where, seen, half = views.where, views.seen, classes.card.shape[0]
    mask, slot, count = classes.masks[_mask(classes, view, later)], view + half if later else view, 0
    place, end = views.place[slot], log.length[0]
    if place < 0 or end - place > seen.shape[0]:
        views.place[slot] = -1
        for node in range(seen.shape[0]):
            if mask[node]:
                where[count] = node
                count += 1
        return count
    # No other call bears the same mark: the log has grown since this view was last here.
    mark = end * 2 * half + slot
    for i in range(place, end):
        node = log.nodes[i]
        if mask[node] and seen[node] != mark:
            seen[node] = mark
            where[count] = node
            count += 1
    return count


@compiled_loop
def _fitting(nodes: Nodes, cards: Cards, classes: Classes, views: Views, view: int, later: bool, count: int) -> int:
    """Bring the nodes of ``views.where[:count]`` where a task of the view fits to the front; return how many."""
    cls, card, where = classes.of_view[view], classes.card[view], views.where
    if classes.blocked[cls]:
        return 0
    free, left = nodes.future if later else nodes.now, count
    if card >= 0:
        if classes.share[cls]:
            room = cards.best_future[card] if later else cards.best_now[card]
            left = _at_least(where, room, classes.share[cls], left)
        else:
            room = cards.whole_future[card] if later else cards.whole_now[card]
            left = _at_least(where, room, classes.whole[cls], left)
    for i in range(classes.row_start[cls], classes.row_start[cls + 1]):
        row = classes.rows[i]
        left = _at_least(where, free[row], classes.request[cls, row], left)
    return left


@compiled_loop
def _at_least(where: Index, room: Ints, least: int, count: int) -> int:
    """Bring the nodes that have at least so much room to the front; return how many."""
    left = 0
    for i in range(count):
        node = where[i]
        if room[node] >= least:
            where[i] = where[left]
            where[left] = node
            left += 1
    return left
