"""predicates: Kubernetes' filters of nodes."""

from __future__ import annotations

from tests.reference.company import COMING, PRESENT, STAYS, even_enough, far_enough, near_enough
from tests.reference.nodes import matches, tolerates
from tests.reference.volumes import alone, attachable, bindable, reachable, usable, zone_fits


class Predicates:
    """Cordon, selector, required affinity, taints, host ports, company, spread."""

    def __init__(self, arguments):
        self.affinity = arguments.get("predicate.NodeAffinityEnable", True)
        self.ports = arguments.get("predicate.NodePortsEnable", True)
        self.taints = arguments.get("predicate.TaintTolerationEnable", True)
        self.company = arguments.get("predicate.PodAffinityEnable", True)
        self.binding = arguments.get("predicate.VolumeBindingEnable", True)
        self.zone = arguments.get("predicate.VolumeZoneEnable", True)
        self.limits = arguments.get("predicate.NodeVolumeLimitsEnable", True)
        self.spread = arguments.get("predicate.PodTopologySpreadEnable", True)

    def filter(self, world, task, name):
        """Once what leaves has left."""
        if not self.curable(world, task, name):
            return False
        if self.spread and not even_enough(world, task, name):
            return False
        if self.company and not far_enough(world, task, name, COMING):
            return False
        if task["pod"].claims and usable(world, task):
            if not alone(world, task, later=True):
                return False
            if self.limits and not attachable(world, task, name, later=True):
                return False
        return self._ports_free(world, task, name, COMING)

    def curable(self, world, task, name):
        """Nothing but other pods stands in the way: if they left, the node would do."""
        pod, node = task["pod"], world["nodes"][name]
        cordon = ("node.kubernetes.io/unschedulable", "", "NoSchedule")
        if node.unschedulable and not any(tolerates(t, *cordon) for t in pod.tolerations):
            return False
        if self.affinity and not _wanted(pod, node):
            return False
        if self.taints and not _tolerated(pod, node):
            return False
        constraints = pod.relations.spread if pod.relations else ()
        if self.spread and any(one.hard and one.topology_key not in node.labels for one in constraints):
            return False
        if self.company and not near_enough(world, task, name, COMING):
            return False
        return not pod.claims or self._volumes_reached(world, task, name)

    def _volumes_reached(self, world, task, name):
        if not usable(world, task):
            return not self.binding
        if self.binding and not (reachable(world, task, name) and bindable(world, task, name)):
            return False
        return not self.zone or zone_fits(world, task, name)

    def filter_now(self, world, task, name):
        """What is leaving still stands in the way, and what is promised is no company yet."""
        if self.company and not (near_enough(world, task, name, STAYS) and far_enough(world, task, name, PRESENT)):
            return False
        if task["pod"].claims and usable(world, task):
            if not alone(world, task, later=False):
                return False
            if self.limits and not attachable(world, task, name, later=False):
                return False
        return self._ports_free(world, task, name, PRESENT)

    def _ports_free(self, world, task, name, states):
        if not self.ports:
            return True
        return not any(clash(a, b) for a in task["pod"].host_ports for b in ports_of(world, name, states))


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


def ports_of(world, node, states):
    """Host ports of the pods in these states on a node."""
    here = (t for t in world["tasks"].values() if t["node"] == node and t["status"] in states)
    return [port for t in here for port in t["pod"].host_ports]


def clash(a, b):
    """Two pods cannot have both ports on one node."""
    any_address = "0.0.0.0" in (a.host_ip, b.host_ip)
    return a.port == b.port and a.protocol == b.protocol and (any_address or a.host_ip == b.host_ip)
