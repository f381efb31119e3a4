"""Amounts by Kubernetes resource, as the plugins of upstream Volcano share them out; summed anew each time."""

from __future__ import annotations

from tests.reference.quota import minimum, nobody_makes_the_rest
from tests.reference.world import CHARGED, in_task_order, members, missing

HELD = (*CHARGED, "pipelined")


def thousandths(name):
    """In one unit of what a node has: native resources other than bytes are counted in thousandths at once."""
    return 1 if "kubernetes.io/" in name and not name.endswith(("memory", "storage")) else 1000


def names(world):
    """cpu, memory, resources that count cards, and other resources of nodes."""
    others = {name for node in world["nodes"].values() for name in node.scalars}
    return ["cpu", "memory", *sorted({*world["resource"].values(), *others})]


def total(world):
    """What all nodes have."""
    found = dict.fromkeys(names(world), 0)
    for node in world["nodes"].values():
        found["cpu"] += node.cpu_milli
        found["memory"] += node.memory_mib
        for cards in node.cards:
            found[cards.resource] += 1000 * cards.count
        for name, count in node.scalars.items():
            found[name] += thousandths(name) * count
    return found


def of_task(world, task):
    """What one task counts."""
    found = dict.fromkeys(names(world), 0)
    found["cpu"], found["memory"] = task["charge_cpu"], task["charge_memory"]
    card = task["card"] or next(iter(task["choices"]), None)
    resource = world["resource"][card] if card else task["pod"].card.resource if task["milli"] else None
    if resource in found:
        found[resource] += task["milli"]
    for name, count in task["pod"].scalars.items():
        if name in found:
            found[name] += thousandths(name) * count
    return found


def add(*parts):
    """Amounts together."""
    return {name: sum(part[name] for part in parts) for name in parts[0]}


def less(left, right):
    """Amounts without others."""
    return {name: left[name] - right[name] for name in left}


def of_tasks(world, tasks):
    """What tasks count together."""
    return add(dict.fromkeys(names(world), 0), *(of_task(world, task) for task in tasks))


def used(world, queues):
    """What tasks of the queues hold or are promised."""
    return of_tasks(world, [t for t in world["tasks"].values() if t["queue"] in queues and t["status"] in HELD])


def by_choice(world, amounts):
    """A demand by choice of cards, by resource."""
    found = dict.fromkeys(names(world), 0)
    found["cpu"], found["memory"] = amounts["cpu"], amounts["memory"]
    for kind in ("cards", "unnamed"):
        for choice, milli in amounts[kind].items():
            found[world["resource"][choice[0]]] += milli
    return found


def _scalars(world, gang):
    """Other resources of what a gang still needs: its pods say it, or where too few are there its PodGroup."""
    group, wanted = world["gangs"][gang], missing(world, gang)
    if nobody_makes_the_rest(world, gang):
        return dict.fromkeys(names(world), 0)
    seen = _of_pods(world, in_task_order(members(world, gang, "pending"))[:wanted])
    held = _of_pods(world, members(world, gang, "pipelined", "allocated", "bound", "running", "succeeded", "gated"))
    others = {name for node in world["nodes"].values() for name in node.scalars}
    written = {name: thousandths(name) * group.min_scalars.get(name, 0) for name in others}
    declared = {name: written[name] - held[name] for name in held if name in others}
    return {name: max(amount, declared.get(name, 0)) for name, amount in seen.items()}


def _of_pods(world, tasks):
    found = dict.fromkeys(names(world), 0)
    for task in tasks:
        for name, count in task["pod"].scalars.items():
            if name in found:
                found[name] += thousandths(name) * count
    return found


def asked(world, gang):
    """A gang's minimum by resource, and whether a card that no node has is in it."""
    need = minimum(world, gang)
    return add(by_choice(world, need), _scalars(world, gang)), bool(need["unknown"])


def promised(world, queues):
    """What admitted gangs of the queues still need."""
    found = [gang for gang in world["promised"] if world["gangs"][gang].queue in queues]
    parts = [add(by_choice(world, world["promised"][gang]), _scalars(world, gang)) for gang in found]
    return add(dict.fromkeys(names(world), 0), *parts)


def elastic(world, queues):
    """What gangs of the queues had beyond their minimum when the action began."""
    found = dict.fromkeys(names(world), 0)
    for (queue, what), amount in world.get("elastic", {}).items():
        if queue in queues:
            found[world["resource"].get(what, what)] += amount
    return found


def capability(world, queue):
    """The ceiling that a queue's spec names."""
    found = dict(queue.scalars)
    if queue.cpu_milli:
        found["cpu"] = queue.cpu_milli
    if queue.memory_mib:
        found["memory"] = queue.memory_mib
    return {name: amount for name, amount in found.items() if name in names(world)}


def written(world, amounts):
    """deserved or guarantee of a spec."""
    return {name: amount for name, amount in amounts.items() if name in names(world)}


def fits(need, limits, *taken):
    """Whether what is asked for is there, beside what is taken."""
    return all(need[name] + sum(part[name] for part in taken) <= limits[name] for name in need if need[name] > 0)


def share(held, line):
    """Largest used part of a line."""
    parts = [(held[name] / most if most else 1.0) for name, most in line.items() if held[name] > 0]
    return max(parts, default=0.0)
