"""Where a task goes: node filters, scores, and the choice among the nodes that have room."""

from __future__ import annotations

import math

from tests.reference.quota import allows
from tests.reference.world import cards_on, choose, fits, free, free_cards, put


def place(world, task, changes):
    """Give a task the best place; True when it got one."""
    options = [card for card in (task["choices"] or [None]) if allows(world, task, card)]
    for future in (False, True):
        best = None
        for node in sorted(world["nodes"]):
            if not admitted(world, task, node):
                continue
            if not any(on(world, node, card) and fits(world, task, node, card, future=future) for card in options):
                continue
            points = score(world, task, node)
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
            indices = () if card is None else choose(free_cards(world, node, card, future=future), task)
            changes.append(put(task, "pipelined" if future else "allocated", node, card, indices))
            return True
    return False


# --- filters ---------------------------------------------------------------------------------------------------------


def admitted(world, task, name):
    """Kubernetes' filters: cordon, selector, required affinity, taints, host ports."""
    pod, node = task["pod"], world["nodes"][name]
    cordon = ("node.kubernetes.io/unschedulable", "", "NoSchedule")
    if node.unschedulable and not any(tolerates(t, *cordon) for t in pod.tolerations):
        return False
    if any(node.labels.get(key) != value for key, value in pod.node_selector.items()):
        return False
    if pod.required_nodes is not None and not any(matches(term, node) for term in pod.required_nodes):
        return False
    for taint in node.taints:
        if taint.effect == "PreferNoSchedule":
            continue
        if not any(tolerates(t, taint.key, taint.value, taint.effect) for t in pod.tolerations):
            return False
    return not any(clash(mine, theirs) for mine in pod.host_ports for theirs in ports_of(world, name))


def tolerates(toleration, key, value, effect):
    """One toleration against one taint."""
    if toleration.effect and toleration.effect != effect:
        return False
    if toleration.operator == "Exists":
        return toleration.key in ("", key)
    return toleration.key == key and toleration.value == value


def matches(term, node):
    """All lines of a term hold; a term without lines matches nothing."""
    return bool(term) and all(holds(line, node) for line in term)


def holds(line, node):
    """One line of a node selector."""
    value = node.name if line.key == "metadata.name" else node.labels.get(line.key)
    match line.operator:
        case "In":
            return value in line.values
        case "NotIn":
            return value not in line.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
    try:
        number = int(value)
    except (TypeError, ValueError):
        return False
    return number > int(line.values[0]) if line.operator == "Gt" else number < int(line.values[0])


def ports_of(world, node):
    """Host ports taken or promised on a node."""
    here = ("allocated", "bound", "running", "releasing", "unknown", "pipelined")
    return [
        port
        for t in world["tasks"].values()
        if t["node"] == node and t["status"] in here
        for port in t["pod"].host_ports
    ]


def clash(a, b):
    """Two pods cannot have both ports on one node."""
    any_address = "0.0.0.0" in (a.host_ip, b.host_ip)
    return a.port == b.port and a.protocol == b.protocol and (any_address or a.host_ip == b.host_ip)


# --- scores ----------------------------------------------------------------------------------------------------------


def score(world, task, name):
    """Preference for the first card of a choice, then the scores of nodeorder with their default weights."""
    return (
        _first_choice(world, task, name)
        + _least_requested(world, task, name)
        + _balanced(world, task, name)
        + 2 * _preferred(world, task, name)
        + 3 * _soft_taints(world, task, name)
    )


def _first_choice(world, task, name):
    names = task["pod"].card.names if task["milli"] else ()
    if len(names) < 2:
        return 0
    for place, card in enumerate(names):
        if cards_on(world, name, card):
            return 100 * 0.5**place
    return 0


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
