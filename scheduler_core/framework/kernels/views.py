"""Where a task class fits and which node is best, brought up from the log of changed nodes when it is asked."""

from __future__ import annotations

from scheduler_core.algorithms.best_of_blocks import NOWHERE, best, set_all, set_key, sort_key
from scheduler_core.algorithms.compiled import compiled_loop
from scheduler_core.framework.kernels.columns import Cards, Classes, Log, Nodes, Scores, Views
from scheduler_core.framework.kernels.scores import score_node, score_nodes
from scheduler_core.state.status import Bools, Index, Ints

# With more changes than this part of the nodes, all are looked at instead of those that changed.
_REPAIR_SHARE = 2


@compiled_loop
def best_node(
    nodes: Nodes, cards: Cards, classes: Classes, scores: Scores, views: Views, log: Log, view: int, later: bool
) -> int:
    """The best node for the view, -1 = none; O(changed nodes), or O(N) the first time."""
    half, size, end = classes.card.shape[0], views.seen.shape[0], log.length[0]
    slot = view + half if later else view
    key, bound, stale, place = views.key[slot], views.bound[slot], views.stale[slot], views.place[slot]
    if place != end:
        views.place[slot] = end
        if 0 <= place == end - 1:
            node = log.nodes[place]
            if fits(nodes, cards, classes, view, node, later):
                views.value[0] = score_node(nodes, cards, classes, scores, classes.of_view[view], node)
                set_key(key, bound, stale, node, sort_key(views.bits[0]))
            else:
                set_key(key, bound, stale, node, NOWHERE)
        elif place < 0 or (end - place) * _REPAIR_SHARE > size:
            for n in range(size):
                views.where[n] = n
                key[n] = NOWHERE
            count = _fitting(
                nodes,
                cards,
                classes,
                views,
                view,
                later,
                _part(views.where, classes.masks[_mask(classes, view, later)], size),
            )
            score_nodes(nodes, cards, classes, scores, views, classes.of_view[view], count)
            for i in range(count):
                key[views.where[i]] = sort_key(views.bits[i])
            set_all(key, bound, stale)
        else:
            changed = _changed_since(
                views, classes.masks[_mask(classes, view, later)], log, place, end * 2 * half + slot
            )
            count = _fitting(nodes, cards, classes, views, view, later, changed)
            score_nodes(nodes, cards, classes, scores, views, classes.of_view[view], count)
            for i in range(count):
                set_key(key, bound, stale, views.where[i], sort_key(views.bits[i]))
            for i in range(count, changed):
                set_key(key, bound, stale, views.where[i], NOWHERE)
    return best(key, bound, stale)


@compiled_loop
def _mask(classes: Classes, view: int, later: bool) -> int:
    """The row of ``classes.masks`` with the nodes that the view may use, room aside."""
    return int(classes.mask_future[view] if later else classes.mask_now[view])


@compiled_loop
def _changed_since(views: Views, mask: Bools, log: Log, place: int, mark: int) -> int:
    """Put each node of the mask that has changed since ``place`` of the log into ``views.where`` once; return how many.

    No other call bears the same ``mark``: the log has grown since this view was last here.
    """
    where, seen, changes, count = views.where, views.seen, log.nodes, 0
    for i in range(place, log.length[0]):
        node = changes[i]
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
def _part(where: Index, mask: Bools, count: int) -> int:
    """Bring the nodes of the mask to the front; return how many."""
    left = 0
    for i in range(count):
        node = where[i]
        if mask[node]:
            where[i] = where[left]
            where[left] = node
            left += 1
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


@compiled_loop
def fits(nodes: Nodes, cards: Cards, classes: Classes, view: int, node: int, later: bool) -> bool:
    """The node has room for a task of the view's class on the view's card type."""
    cls, card = classes.of_view[view], classes.card[view]
    if classes.blocked[cls] or not classes.masks[_mask(classes, view, later), node]:
        return False
    if card >= 0:
        share = classes.share[cls]
        if share:
            if (cards.best_future[card, node] if later else cards.best_now[card, node]) < share:
                return False
        elif (cards.whole_future[card, node] if later else cards.whole_now[card, node]) < classes.whole[cls]:
            return False
    free = nodes.future if later else nodes.now
    for i in range(classes.row_start[cls], classes.row_start[cls + 1]):
        row = classes.rows[i]
        if free[row, node] < classes.request[cls, row]:
            return False
    return True
