"""nodeorder: weighted sum of node scores."""

from __future__ import annotations

import math

from tests.reference.company import company_score, spread_score
from tests.reference.nodes import matches, tolerates
from tests.reference.world import free, free_cards

DEFAULTS = {
    "leastrequested": 1,
    "mostrequested": 0,
    "nodeaffinity": 2,
    "balancedresource": 1,
    "tainttoleration": 3,
    "podaffinity": 2,
    "podtopologyspread": 2,
    "imagelocality": 1,
}


class NodeOrder:
    """Least requested, most requested, balanced, preferred nodes, soft taints."""

    def __init__(self, arguments):
        self.weight = {name: arguments.get(f"{name}.weight", default) for name, default in DEFAULTS.items()}

    def score(self, world, task, name):
        weight = self.weight
        return (
            weight["leastrequested"] * _least_requested(world, task, name)
            + weight["mostrequested"] * _most_requested(world, task, name)
            + weight["balancedresource"] * _balanced(world, task, name)
            + weight["nodeaffinity"] * _preferred(world, task, name)
            + weight["tainttoleration"] * _soft_taints(world, task, name)
            + (weight["podaffinity"] and weight["podaffinity"] * company_score(world, task, name))
            + (weight["podtopologyspread"] and weight["podtopologyspread"] * spread_score(world, task, name))
            + weight["imagelocality"] * _images(world, task, name)
        )


def _most_requested(world, task, name):
    total = 0
    for what in ("cpu", "memory"):
        capacity, used = _used(world, task, name, what)
        if capacity > 0 and used <= capacity:
            total += used * 100 // capacity
    return total // 2


def _used(world, task, name, what):
    capacity = world["nodes"][name].cpu_milli if what == "cpu" else world["nodes"][name].memory_mib
    return capacity, capacity - free(world, name, what, future=True) + task["need"][what]


def _least_requested(world, task, name):
    total = 0
    for what in ("cpu", "memory"):
        capacity, used = _used(world, task, name, what)
        if capacity > 0 and used <= capacity:
            total += (capacity - used) * 100 // capacity
    return total // 2


def _balanced(world, task, name):
    pairs = [_used(world, task, name, what) for what in ("cpu", "memory")]
    all_cards = 1000 * sum(cards.count for cards in world["nodes"][name].cards)
    left = sum(
        max(0, milli)
        for cards in world["nodes"][name].cards
        for milli in free_cards(world, name, cards.card, future=True)
    )
    pairs.append((all_cards, all_cards - left + task["milli"]))
    shares = [min(1.0, used / capacity) for capacity, used in pairs if capacity > 0]
    if not shares:
        return 100
    mean = sum(shares) / len(shares)
    spread = sum((part - mean) * (part - mean) for part in shares) / len(shares)
    return math.floor((1.0 - math.sqrt(spread)) * 100)


def _preferred(world, task, name):
    if not task["pod"].preferred_nodes:
        return 0
    raw = {
        node.name: sum(p.weight for p in task["pod"].preferred_nodes if matches(p.term, node))
        for node in world["nodes"].values()
    }
    top = max(raw.values())
    return raw[name] * 100 // top if top else 0


def _soft_taints(world, task, name):
    raw = {
        node.name: sum(
            1
            for taint in node.taints
            if taint.effect == "PreferNoSchedule"
            and not any(tolerates(t, taint.key, taint.value, taint.effect) for t in task["pod"].tolerations)
        )
        for node in world["nodes"].values()
    }
    top = max(raw.values())
    return 100 - raw[name] * 100 // top if top else 100


def _images(world, task, name):
    nodes = world["nodes"].values()
    total = 0
    for image in task["pod"].images:
        size = world["nodes"][name].images.get(image, 0)
        total += int(size * (sum(1 for node in nodes if image in node.images) / len(nodes)))
    low, top = 23 * 1024 * 1024, 1000 * 1024 * 1024 * max(1, len(task["pod"].images))
    return 100 * (min(max(total, low), top) - low) // (top - low)
