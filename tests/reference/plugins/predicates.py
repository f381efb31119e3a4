"""predicates: Kubernetes' filters of nodes."""

from __future__ import annotations


class Predicates:
    """Cordon, selector, required affinity, taints, host ports."""

    def __init__(self, arguments):
        self.affinity = arguments.get("predicate.NodeAffinityEnable", True)
        self.ports = arguments.get("predicate.NodePortsEnable", True)
        self.taints = arguments.get("predicate.TaintTolerationEnable", True)

    def filter(self, world, task, name):
        pod, node = task["pod"], world["nodes"][name]
        cordon = ("node.kubernetes.io/unschedulable", "", "NoSchedule")
        if node.unschedulable and not any(tolerates(t, *cordon) for t in pod.tolerations):
            return False
        if self.affinity and not _wanted(pod, node):
            return False
        if self.taints and not _tolerated(pod, node):
            return False
        if not self.ports:
            return True
        return not any(clash(mine, theirs) for mine in pod.host_ports for theirs in ports_of(world, name))


def _wanted(pod, node):
    if any(node.labels.get(key) != value for key, value in pod.node_selector.items()):
        return False
    return pod.required_nodes is None or any(matches(term, node) for term in pod.required_nodes)


def _tolerated(pod, node):
    for taint in node.taints:
        if taint.effect == "PreferNoSchedule":
            continue
        if not any(tolerates(t, taint.key, taint.value, taint.effect) for t in pod.tolerations):
            return False
    return True


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
