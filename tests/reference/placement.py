"""Where a task goes: the choice among the nodes that have room, by the policy's filters and scores."""

from __future__ import annotations

from tests.reference.world import cards_on, choose, fits, free_cards, put


def place(world, task, changes):
    """Give a task the best place; True when it got one."""
    options = [card for card in (task["choices"] or [None]) if allows(world, task, card)]
    for future in (False, True):
        best = None
        for node in sorted(world["nodes"]):
            if not admitted(world, task, node, future=future):
                continue
            if not world["hooks"].all("task_filter", world, task, node):
                continue
            if not any(on(world, node, card) and fits(world, task, node, card, future=future) for card in options):
                continue
            points = score(world, task, node) + world["hooks"].total("task_score", world, task, node)
            if best is None or points > best[0]:
                best = (points, node)
        if best is not None:
            take(world, task, best[1], options, changes, future=future)
            return True
    return False


def on(world, node, card):
    """A card type is asked for and there, or none is asked for."""
    return card is None or cards_on(world, node, card) > 0


def take(world, task, node, options, changes, *, future):
    """Put a task on a node, on the first of the card types that has room there."""
    for card in options:
        if on(world, node, card) and fits(world, task, node, card, future=future):
            indices = () if card is None else _chosen(world, task, node, card, future=future)
            changes.append(put(task, "pipelined" if future else "allocated", node, card, indices))
            return True
    return False


def _chosen(world, task, node, card, *, future):
    """The cards that a plugin asks for where they have room, else the usual ones."""
    free = free_cards(world, node, card, future=future)
    for call in world["hooks"].flat("card_choice"):
        wish = call(world, task, card, node)
        if wish is not None and all(free[i] >= (task["share"] or 1000) for i in wish):
            return wish
    return choose(free, task)


def allows(world, task, card):
    """One more task on a card of one type (None: it asks for none): do the plugins agree?"""
    return world["hooks"].all("allowed", world, task, card)


def admitted(world, task, name, *, future=True):
    """Every filter of the policy lets the task on the node: once what leaves has left, or at once."""
    hooks = world["hooks"]
    return hooks.all("filter", world, task, name) and (future or hooks.all("filter_now", world, task, name))


def curable(world, task, name):
    """Every filter would let the task on the node if other pods left it."""
    filters = world["hooks"].flat("filter")
    return all(getattr(call.__self__, "curable", call)(world, task, name) for call in filters)


def score(world, task, name):
    """The sum of the policy's scores."""
    return world["hooks"].total("score", world, task, name)
