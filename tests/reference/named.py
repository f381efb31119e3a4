"""Resources by the names that a policy uses: what a node has, what is used of it, what a task asks for."""

from __future__ import annotations

from tests.reference.world import capacity, cards_on, free, free_cards


def types_of(world, name):
    """Card types that a name stands for: itself, or all that the extended resource counts."""
    if name in world["resource"]:
        return [name]
    return sorted(card for card, resource in world["resource"].items() if resource == name)


def total(world, node, name):
    types = types_of(world, name)
    if types:
        return 1000 * sum(cards_on(world, node, card) for card in types)
    return capacity(world["nodes"][node], name)


def used(world, node, name):
    """In use once all that leaves has left and all promises are kept."""
    types = types_of(world, name)
    if types:
        left = sum(max(0, m) for card in types for m in free_cards(world, node, card, future=True))
        return total(world, node, name) - left
    return total(world, node, name) - free(world, node, name, future=True)


def asked(world, task, name):
    types = types_of(world, name)
    if types:
        return task["milli"] if set(types) & set(task["choices"]) else 0
    known = {scalar for node in world["nodes"].values() for scalar in node.scalars} | {"cpu", "memory"}
    return task["need"].get(name, 0) if name in known else 0
