"""The cluster of one session as plain dicts; every sum is counted again from the tasks each time it is asked for.

Slow on purpose: nothing is kept that could fall out of step. Imports nothing of the engine but its model.
"""

from __future__ import annotations

import math

HOLDING = ("allocated", "bound", "running", "releasing", "unknown")
CHARGED = ("allocated", "bound", "running")
READY = ("allocated", "bound", "running", "succeeded")
VALID = (*READY, "pipelined", "pending")
# What a pod says of itself that tells tasks of one gang apart.
MARKS = (
    "tidesched.io/card-model",
    "tidesched.io/card-model-mode",
    "tidesched.io/machine-group",
    "volcano.sh/preemptable",
    "volcano.sh/revocable-zone",
)
# How much of a device: counted on the device itself.
OF_DEVICES = ("volcano.sh/vgpu-memory", "volcano.sh/vgpu-memory-percentage", "volcano.sh/vgpu-cores")
SCHEDULED = ("allocated", "bound", "running", "releasing", "succeeded", "failed")


def open_world(snapshot, options, now, memory):
    """All that a session knows, before any decision."""
    world = {
        "now": now,
        "options": options,
        "nodes": {node.name: node for node in snapshot.nodes},
        "claims": {claim.key: claim for claim in snapshot.claims},
        "volumes": {volume.name: volume for volume in snapshot.volumes},
        "storage_classes": {one.name: one for one in snapshot.storage_classes},
        "metrics": {metrics.name: metrics for metrics in snapshot.metrics},
        "namespaces": {space.name: space.labels for space in snapshot.namespaces},
        "queues": {queue.name: queue for queue in snapshot.queues},
        "gangs": {group.key: group for group in snapshot.pod_groups},
        "submitted": dict(memory.submitted) if memory else {},
        "budgets": snapshot.disruption_budgets,
        "resource_quotas": snapshot.resource_quotas,
        "numa": {one.name: one for one in snapshot.numa},
        "acted": dict(memory.acted) if memory else {},
        "election": (memory.election.gang, memory.election.nodes) if memory and memory.election else None,
        "refused_by": {},
        "resting": {rest.gang for rest in memory.spared if rest.until > now} if memory else set(),
        "promised": {},
        "phase": {},
        "evictions": [],
        "reclaims": [],
    }
    world["resource"] = {card.name: card.resource for card in snapshot.card_types}
    for node in snapshot.nodes:
        for cards in node.cards:
            world["resource"].setdefault(cards.card, cards.resource)
    world["tasks"] = {pod.key: _task(world, pod, pod.scheduler in snapshot.schedulers) for pod in snapshot.pods}
    for task in world["tasks"].values():
        gang = world["gangs"].get(task["gang"])
        if gang is None:
            task["gang"] = None
        task["queue"] = gang.queue if gang is not None and gang.queue in world["queues"] else None
    for name in sorted(world["nodes"]):
        _assign_cards(world, name)
    for name in world["gangs"]:
        world["phase"][name] = _phase_now(world, name)
    return world


def _task(world, pod, ours):
    card = pod.card if pod.card is not None and pod.card.milli > 0 else None
    names, milli = (card.names, card.milli) if card else ((), 0)
    written = bool(card and card.written)
    if names:
        choices = [name for name in names if name in world["resource"]]
    elif card:
        choices = sorted(name for name, resource in world["resource"].items() if resource == card.resource)
    else:
        choices = []
    known_scalars = {name for node in world["nodes"].values() for name in node.scalars}
    scalars = {
        name: count
        for name, count in pod.scalars.items()
        if count > 0 and (name in known_scalars or name not in OF_DEVICES)
    }
    impossible = (milli > 0 and not choices) or any(name not in known_scalars for name in scalars)
    unlimited = world["options"]["cardUnlimitedCpuMemory"] and milli > 0
    status = _status(pod, ours)
    return {
        "world": world,
        "key": pod.key,
        "pod": pod,
        "gang": pod.group_key if pod.group and ours else None,
        "status": status,
        "node": pod.node if pod.node in world["nodes"] and status in HOLDING else None,
        "card": choices[0] if choices and pod.node and pod.node not in world["nodes"] and status in HOLDING else None,
        "indices": (),
        "need": {"cpu": pod.cpu_milli, "memory": pod.memory_mib, "pods": 1, **scalars},
        "named": bool(names) and written,
        "implied": bool(names) and not written,
        "card_key": "|".join(names) or (card.resource if card else ""),
        "choices": choices,
        "milli": milli,
        "share": milli if milli % 1000 else 0,
        "whole": 0 if milli % 1000 else milli // 1000,
        "impossible": impossible or (milli % 1000 != 0 and milli > 1000),
        "best_effort": not milli and not pod.cpu_milli and not pod.memory_mib and not scalars,
        "charge_cpu": 0 if unlimited else pod.cpu_milli,
        "charge_memory": 0 if unlimited else pod.memory_mib,
        "class": (
            pod.cpu_milli,
            pod.memory_mib,
            (card.names, card.resource, card.milli, card.written) if card else None,
            tuple(sorted(pod.scalars.items())),
            tuple(sorted(pod.node_selector.items())),
            pod.required_nodes,
            pod.preferred_nodes,
            pod.tolerations,
            pod.host_ports,
            pod.relations,
            tuple(sorted(pod.labels.items())),
            pod.claims,
            pod.images,
            (pod.numa_policy, pod.whole_cpus),
            tuple(pod.annotations.get(mark, pod.labels.get(mark)) for mark in MARKS),
        ),
    }


def _status(pod, ours):
    if pod.phase.value in ("Succeeded", "Failed"):
        return pod.phase.value.lower()
    if pod.deleted is not None:
        return "releasing" if pod.node else "gone"
    if pod.node:
        return {"Running": "running", "Pending": "bound"}.get(pod.phase.value, "unknown")
    if not ours:
        return "foreign"
    return "gated" if pod.gated else "pending"


def _phase_now(world, gang):
    """Semantics 2.7: what the members bear out, whatever was written down."""
    phase = world["gangs"][gang].phase.value
    on_nodes = count(world, gang, SCHEDULED)
    enough = on_nodes >= world["gangs"][gang].min_member
    if phase in ("Running", "Unknown") and not enough:
        return "Pending"
    if phase in ("Pending", "Unknown") and enough and members(world, gang):
        return "Running"
    return phase


# --- cards of a node -------------------------------------------------------------------------------------------------


def cards_on(world, node, card):
    """How many cards of a type a node has."""
    return sum(cards.count for cards in world["nodes"][node].cards if cards.card == card)


def _assign_cards(world, node):
    """Say which cards the pods of a node hold: those that name them first, then the others by name."""
    held = sorted((t for t in world["tasks"].values() if t["node"] == node and t["milli"]), key=lambda t: t["key"])
    loose = []
    for task in held:
        task["card"] = next((card for card in task["choices"] if cards_on(world, node, card)), None)
        if task["card"] is None:
            continue
        wanted = task["pod"].card_indices
        size = task["whole"] or 1
        free = free_cards(world, node, task["card"], future=False)
        each = task["share"] or 1000
        fits = wanted and len(set(wanted)) == size and all(0 <= i < len(free) and free[i] >= each for i in wanted)
        if fits:
            task["indices"] = tuple(sorted(wanted))
        else:
            loose.append(task)
    for task in loose:
        for card in task["choices"]:
            if cards_on(world, node, card):
                chosen = choose(free_cards(world, node, card, future=False), task)
                if chosen is not None:
                    task["card"], task["indices"] = card, chosen
                    break
        else:
            free = free_cards(world, node, task["card"], future=False)
            order = sorted(range(len(free)), key=lambda i: (-free[i], i))
            task["indices"] = tuple(sorted(order[: task["whole"] or 1]))


def free_cards(world, node, card, *, future):
    """Milli-cards free on each card of a type on a node."""
    free = []
    for index in range(cards_on(world, node, card)):
        used = leaving = promised = 0
        for task in world["tasks"].values():
            if task["node"] != node or task["card"] != card or index not in task["indices"]:
                continue
            each = task["share"] or 1000
            if task["status"] == "pipelined":
                promised += each
            elif task["status"] in HOLDING:
                used += each
                if task["status"] == "releasing":
                    leaving += each
        free.append(1000 - used + leaving - promised if future else 1000 - used - max(0, promised - leaving))
    return free


def choose(free, task):
    """Which cards to take: a share where it leaves least, whole cards from the first on."""
    if task["share"]:
        fitting = sorted((left, index) for index, left in enumerate(free) if left >= task["share"])
        return (fitting[0][1],) if fitting else None
    whole = [index for index, left in enumerate(free) if left >= 1000][: task["whole"]]
    return tuple(whole) if len(whole) == task["whole"] else None


# --- room on nodes ---------------------------------------------------------------------------------------------------


def capacity(node, resource):
    """Allocatable of one resource."""
    fixed = {"cpu": node.cpu_milli, "memory": node.memory_mib, "pods": node.pods}
    return fixed[resource] if resource in fixed else node.scalars.get(resource, 0)


def free(world, name, resource, *, future):
    """What a node has left of one resource, now or once all that leaves has left."""
    used = leaving = promised = 0
    for task in world["tasks"].values():
        if task["node"] != name:
            continue
        amount = task["need"].get(resource, 0)
        if task["status"] == "pipelined":
            promised += amount
        elif task["status"] in HOLDING:
            used += amount
            if task["status"] == "releasing":
                leaving += amount
    idle = capacity(world["nodes"][name], resource) - used
    later = idle + leaving - promised
    return later if future else min(idle, later)


def fits(world, task, node, card, *, future):
    """Whether a task has room on a node, with its cards of type ``card`` (None: it asks for none)."""
    if task["impossible"]:
        return False
    if any(free(world, node, name, future=future) < amount for name, amount in task["need"].items() if amount):
        return False
    if card is None:
        return True
    return choose(free_cards(world, node, card, future=future), task) is not None


# --- gangs -----------------------------------------------------------------------------------------------------------


def members(world, gang, *statuses):
    """Tasks of a gang, by name; only those in one of the statuses where some are given."""
    found = (t for t in world["tasks"].values() if t["gang"] == gang and (not statuses or t["status"] in statuses))
    return sorted(found, key=lambda task: task["key"])


def count(world, gang, statuses):
    """How many of its tasks are in one of the statuses."""
    return len(members(world, gang, *statuses))


def missing(world, gang):
    """How many more members it takes to reach minMember."""
    return max(0, world["gangs"][gang].min_member - count(world, gang, (*READY, "pipelined")))


def short_of_start(world, gang):
    """How many of them it takes to start: all, where a plugin says when a gang is ready by its members; else none."""
    keeps = any(getattr(call.__self__, "keeps_minimum", False) for call in world["hooks"].flat("ready"))
    return missing(world, gang) if keeps else 0


def task_order(task):
    """What the plugins say, then the number in a name of three parts, then creation, then the name."""
    parts = task["pod"].name.rsplit("-", 2)
    number = int(parts[2]) if len(parts) == 3 and parts[2].isdecimal() else math.inf
    said = task["world"]["hooks"].key("task_order", task["world"], task)
    return (*said, number, task["pod"].created, task["key"])


def in_task_order(tasks):
    """Sorted as they are tried."""
    return sorted(tasks, key=task_order)


def ready(world, gang):
    """All plugins agree that the gang may run as it is."""
    return world["hooks"].all("ready", world, gang)


def pipelined(world, gang):
    """The gang could run once what leaves has left."""
    return world["hooks"].vote("pipelined", world, gang)


def valid(world, gang):
    """The gang could run at all."""
    return world["hooks"].all("valid", world, gang)


def schedulable(world, gang):
    """Neither suspended nor unusable as written, and its queue takes work."""
    group = world["gangs"][gang]
    if group.suspended or group.problem or group.unsupported or not queue_open(world, group.queue):
        return False
    let_in = world["queues"][group.queue].namespaces
    if let_in is not None and group.namespace not in let_in:
        return False
    return world["hooks"].all("well_written", world, gang)


def queue_open(world, name):
    """The queue exists, is usable and Open."""
    queue = world["queues"].get(name)
    return queue is not None and queue.state.value == "Open" and not queue.problem


def service_type(world, gang):
    """Annotation, else the kind of the owner; the queue's type is the upper bound."""
    group = world["gangs"][gang]
    kind = group.owner_kind or min(
        (t["pod"].owner.kind for t in members(world, gang) if t["pod"].owner is not None), default=""
    )
    said = group.service_type or world["options"]["podOwnerReferenceToServiceType"].get(kind, "unknown")
    if said not in ("inference", "training"):
        said = "unknown"
    queue = world["queues"].get(group.queue)
    bound = queue.service_type if queue else ""
    if bound == "training":
        return "training"
    if bound == "inference":
        return "training" if group.service_type == "training" else "inference"
    return said


def waiting_since(world, gang):
    """When its place in the queue began."""
    group = world["gangs"][gang]
    return min(group.waiting_since, world["submitted"].get(lasting_name(group), math.inf))


def lasting_name(group):
    """Its owner's name where a controller would make the PodGroup anew, else its own."""
    if group.owner_kind and group.owner_name:
        return f"{group.namespace}/{group.owner_kind}/{group.owner_name}"
    return group.key


# --- changes ---------------------------------------------------------------------------------------------------------


def put(task, status, node=None, card=None, indices=()):
    """Move a task; returns how to put it back."""
    before = (task["status"], task["node"], task["card"], task["indices"])
    task["status"], task["node"], task["card"], task["indices"] = status, node, card, tuple(indices)
    return task, before


def undo(changes):
    """Take changes back, the last one first."""
    for task, (status, node, card, indices) in reversed(changes):
        task["status"], task["node"], task["card"], task["indices"] = status, node, card, indices
    changes.clear()
