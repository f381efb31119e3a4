"""Who is near whom, in plain loops: affinity between pods and topology spread, one node at a time."""

from __future__ import annotations

import math

from tests.reference.nodes import holds, matches, tolerates

STAYS = ("allocated", "bound", "running", "unknown")
COMING = (*STAYS, "pipelined")
PRESENT = (*COMING, "releasing")


def speaks_of(world, subject, pod):
    """A term's subject means this pod."""
    if pod.namespace not in subject.namespaces:
        if subject.namespace_selector is None:
            return False
        labels = world["namespaces"].get(pod.namespace, {"kubernetes.io/metadata.name": pod.namespace})
        if not all(holds(line, labels.get(line.key)) for line in subject.namespace_selector):
            return False
    return subject.selector is not None and all(holds(line, pod.labels.get(line.key)) for line in subject.selector)


def there(world, task, states):
    """Tasks on nodes, the one in question left out."""
    return [t for t in world["tasks"].values() if t is not task and t["node"] and t["status"] in states]


def together(world, key, one, other):
    """Two nodes are in the same place."""
    mine, theirs = world["nodes"][one].labels.get(key), world["nodes"][other].labels.get(key)
    return mine is not None and mine == theirs


def near_enough(world, task, name, states):
    """Required affinity."""
    terms = task["pod"].relations.affinity if task["pod"].relations else ()
    if not terms:
        return True
    if any(term.topology_key not in world["nodes"][name].labels for term in terms):
        return False

    def mates(states):
        return [
            t
            for t in there(world, task, states)
            if all(speaks_of(world, term.subject, t["pod"]) for term in terms)
            and any(term.topology_key in world["nodes"][t["node"]].labels for term in terms)
        ]

    if not mates(COMING) and all(speaks_of(world, term.subject, task["pod"]) for term in terms):
        return True
    found = mates(states)
    return all(any(together(world, term.topology_key, name, t["node"]) for t in found) for term in terms)


def far_enough(world, task, name, states):
    """Required anti-affinity, that of the task and that of the others."""
    own = task["pod"].relations.anti_affinity if task["pod"].relations else ()
    for other in there(world, task, states):
        theirs = other["pod"].relations.anti_affinity if other["pod"].relations else ()
        for terms, meant in ((own, other["pod"]), (theirs, task["pod"])):
            for term in terms:
                if speaks_of(world, term.subject, meant) and together(world, term.topology_key, name, other["node"]):
                    return False
    return True


def counted(task, node, constraint):
    """A node is a place for a spread constraint."""
    pod = task["pod"]
    if constraint.honor_affinity:
        if any(node.labels.get(key) != value for key, value in pod.node_selector.items()):
            return False
        if pod.required_nodes is not None and not any(matches(term, node) for term in pod.required_nodes):
            return False
    if constraint.honor_taints:
        for taint in node.taints:
            hard = taint.effect != "PreferNoSchedule"
            if hard and not any(tolerates(t, taint.key, taint.value, taint.effect) for t in pod.tolerations):
                return False
    return True


def loads(world, task, constraint, all_of_them):
    """Pods by value of the label, over the nodes that count."""
    found = {}
    for node in world["nodes"].values():
        if not counted(task, node, constraint) or any(c.topology_key not in node.labels for c in all_of_them):
            continue
        value = node.labels[constraint.topology_key]
        found.setdefault(value, 0)
        found[value] += sum(
            1
            for t in there(world, task, COMING)
            if t["node"] == node.name and speaks_of(world, constraint.subject, t["pod"])
        )
    return found


def even_enough(world, task, name):
    """Hard spread constraints."""
    constraints = [c for c in (task["pod"].relations.spread if task["pod"].relations else ()) if c.hard]
    labels = world["nodes"][name].labels
    for constraint in constraints:
        if constraint.topology_key not in labels:
            return False
        found = loads(world, task, constraint, constraints)
        least = min(found.values(), default=0) if len(found) >= constraint.min_domains else 0
        own = 1 if speaks_of(world, constraint.subject, task["pod"]) else 0
        if found.get(labels[constraint.topology_key], 0) + own - least > constraint.max_skew:
            return False
    return True


def liking(world, task, name):
    """Preferred terms of the task for those around, and theirs for it."""
    total = 0
    own = task["pod"].relations.preferred if task["pod"].relations else ()
    for other in there(world, task, COMING):
        theirs = other["pod"].relations.preferred if other["pod"].relations else ()
        for wishes, meant in ((own, other["pod"]), (theirs, task["pod"])):
            for wish in wishes:
                key = wish.term.topology_key
                if speaks_of(world, wish.term.subject, meant) and together(world, key, name, other["node"]):
                    total += wish.weight
    return total


def company_score(world, task, name):
    """0 for the least liked node, 100 for the most liked."""
    raw = {node: liking(world, task, node) for node in world["nodes"]}
    low, top = min(raw.values()), max(raw.values())
    return math.floor(100 * ((raw[name] - low) / (top - low))) if top > low else 0


def spread_score(world, task, name):
    """Soft spread constraints."""
    constraints = [c for c in (task["pod"].relations.spread if task["pod"].relations else ()) if not c.hard]
    if not constraints:
        return 0
    costs = {}
    for node in world["nodes"].values():
        if any(c.topology_key not in node.labels for c in constraints):
            continue
        cost = 0.0
        for constraint in constraints:
            found = loads(world, task, constraint, constraints)
            size = len(found)
            if constraint.topology_key == "kubernetes.io/hostname":
                size = sum(
                    1
                    for n in world["nodes"].values()
                    if counted(task, n, constraint) and all(c.topology_key in n.labels for c in constraints)
                )
            here = found.get(node.labels[constraint.topology_key], 0)
            cost += here * math.log(size + 2) + (constraint.max_skew - 1)
        costs[node.name] = math.floor(cost + 0.5)
    if name not in costs:
        return 0
    top, low = max(costs.values()), min(costs.values())
    return 100 if top == 0 else 100 * (top + low - costs[name]) // top
