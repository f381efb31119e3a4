"""Plugin ``predicates``: on which nodes a task may be.

Extension point: predicate. Tests: unschedulable, node selector and required node affinity, taints, host ports, pod
affinity and anti-affinity in both directions, hard topology spread constraints, volumes (binding, zone, attachable
number, claims of one pod alone). Room (cpu, memory, cards, number of pods) is tested by the actions, for every policy.

Source: volcano-semantics 4.5; Kubernetes' filters of the same names.
Departures on purpose: masks hold for all tasks of a class at once and are made anew only for classes whose answer
depends on other pods, so ``predicate.CacheEnable`` has nothing left to switch; what other pods prevent at
once follows from what will hold once they have left, see ``framework/neighbours.py`` for affinity and
``algorithms/volumes.py`` for volumes. With ``compatibility: volcano`` ports and company of who leaves count until then.
"""

from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from scheduler_core.algorithms.selectors import tolerates
from scheduler_core.framework.neighbours import Neighbours
from scheduler_core.framework.plugin import Argument, Plugin, switch
from scheduler_core.framework.session import Session
from scheduler_core.framework.volume_use import VolumeUse
from scheduler_core.model.node import Taint
from scheduler_core.model.node_refusal import NodeRefusal
from scheduler_core.model.pod import HostPort, NodeSelectorRequirement
from scheduler_core.state.status import HOLDS, Bools, TaskStatus
from scheduler_core.state.task_class import TaskClass

_ANY_ADDRESS = HostPort(0).host_ip
_UNSCHEDULABLE = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")


Filtered = tuple[str, Bools] | tuple[str, Bools, Bools]


def _switch(name: str, doc: str) -> Argument:
    return switch(f"predicate.{name}Enable", True, f"test {doc}")


class Predicates(Plugin):
    name: ClassVar[str] = "predicates"
    arguments: ClassVar[tuple[Argument, ...]] = (
        _switch("NodeAffinity", "node selector and node affinity"),
        _switch("NodePorts", "host ports"),
        _switch("TaintToleration", "taints"),
        _switch("PodAffinity", "pod affinity and anti-affinity, also that of the pods which are there"),
        _switch("NodeVolumeLimits", "how many volumes of a driver may be attached to a node"),
        _switch("VolumeZone", "the zone labels of bound volumes"),
        _switch("PodTopologySpread", "topology spread constraints with DoNotSchedule"),
        _switch("VolumeBinding", "that claims are bound, or can be bound on the node"),
        switch("predicate.CacheEnable", False, "accepted for Volcano's sake; equal tasks always share one answer"),
    )

    not_built: ClassVar[tuple[str, ...]] = (
        "predicate.DynamicResourceAllocationEnable", "predicate.GPUSharingEnable", "predicate.GPUNumberEnable",
        "predicate.ProportionalEnable", "predicate.resources",
    )  # fmt: skip

    def open(self, session: Session) -> None:
        """Keep the node index of the workspace, which outlives the session."""
        super().open(session)
        self._index = session.node_index
        self._on = {name.removeprefix("predicate.").removesuffix("Enable"): on for name, on in self.values.items()}
        self._neighbours = Neighbours(session)
        self._kept_volumes: VolumeUse | None = None

    @property
    def _volumes(self) -> VolumeUse:
        """Made when the first class with claims is asked for."""
        if self._kept_volumes is None:
            self._kept_volumes = VolumeUse(self.session)
        return self._kept_volumes

    def volatile(self, cls: TaskClass) -> bool:
        """Ports, company and volumes change by placements of this very session."""
        between, on = cls.relations, self._on
        return (
            (bool(cls.ports) and on["NodePorts"])
            or (on["PodAffinity"] and between is not None and bool(between.affinity or between.anti_affinity))
            or (on["PodAffinity"] and self._neighbours.is_unwanted(cls))
            or (on["PodTopologySpread"] and between is not None and any(one.hard for one in between.spread))
            or (bool(cls.claims) and self._volumes.depends_on_others(cls))
        )

    def predicate(self, cls: TaskClass) -> Iterator[Filtered]:
        """The masks of the filters, each with the word that counts refused nodes."""
        index, on = self._index, self._on
        if not any(tolerates(toleration, _UNSCHEDULABLE) for toleration in cls.tolerations):
            yield NodeRefusal.UNSCHEDULABLE, ~index.unschedulable
        if on["NodeAffinity"]:
            for key, value in cls.selector:
                yield NodeRefusal.NODE_SELECTOR, index.requirement(NodeSelectorRequirement(key, "In", (value,)))
            if cls.required is not None:
                yield NodeRefusal.NODE_AFFINITY, index.any_term(cls.required)
        if on["TaintToleration"]:
            yield NodeRefusal.TAINT, index.intolerable(cls.tolerations, preferred=False) == 0
        if cls.claims:
            yield from self._of_volumes(cls)
        if cls.ports and on["NodePorts"]:
            yield NodeRefusal.HOST_PORT, *self._free_ports(cls)
        if on["PodTopologySpread"] and cls.relations is not None:
            for labelled, within in self._neighbours.spread(cls):
                yield NodeRefusal.NO_TOPOLOGY_LABEL, labelled
                yield NodeRefusal.TOPOLOGY_SPREAD, within, within
        if on["PodAffinity"]:
            yield from self._of_company(cls)

    def _of_company(self, cls: TaskClass) -> Iterator[Filtered]:
        if cls.relations is not None and cls.relations.affinity:
            now, later = self._neighbours.affinity(cls)
            # No eviction brings company, so this is nothing that eviction cures.
            yield NodeRefusal.POD_AFFINITY, later
            yield NodeRefusal.POD_AFFINITY, now, later
        if cls.relations is not None and cls.relations.anti_affinity:
            yield NodeRefusal.POD_ANTI_AFFINITY, *self._neighbours.anti_affinity(cls)
        if self._neighbours.is_unwanted(cls):
            yield NodeRefusal.UNWANTED, *self._neighbours.unwanted(cls)

    def _of_volumes(self, cls: TaskClass) -> Iterator[Filtered]:
        volumes, on = self._volumes, self._on
        needs = volumes.needs(cls)
        nowhere: Bools = np.zeros(len(self.session.nodes), dtype=np.bool_)
        if needs.problem and on["VolumeBinding"]:
            yield needs.problem, nowhere
            return
        if needs.bound and on["VolumeBinding"]:
            yield NodeRefusal.VOLUME_AFFINITY, volumes.near(cls)
        if needs.bound and on["VolumeZone"]:
            yield NodeRefusal.VOLUME_ZONE, volumes.in_zone(cls)
        if needs.waiting and on["VolumeBinding"]:
            yield NodeRefusal.NO_VOLUME, volumes.can_bind(cls)
        if needs.single:
            now, later = volumes.alone(cls)
            yield NodeRefusal.VOLUME_IN_USE, (~nowhere if now else nowhere), (~nowhere if later else nowhere)
        if needs.attached and on["NodeVolumeLimits"]:
            yield NodeRefusal.VOLUME_LIMIT, *volumes.attachable(cls)

    def _free_ports(self, cls: TaskClass) -> tuple[Bools, Bools]:
        """Nodes where the ports are free at once, and once what leaves has left."""
        now: Bools = np.ones(len(self.session.nodes), dtype=np.bool_)
        later = now.copy()
        for node, port, leaving in self._taken_ports():
            if any(_clash(one, port) for one in cls.ports):
                now[node] = False
                later[node] &= leaving and not self.session.compat
        return now, later

    def _taken_ports(self) -> list[tuple[int, HostPort, bool]]:
        """(node, port, whether its pod leaves) of every port that is taken or promised."""
        session = self.session
        taken: list[tuple[int, HostPort, bool]] = []
        tasks = session.tasks
        with_ports = np.array([bool(c.ports) for c in session.cluster.classes.classes], dtype=np.bool_)
        on_node = HOLDS[tasks.status] | (tasks.status == TaskStatus.PIPELINED)
        for task in np.flatnonzero(tasks.live & on_node & (tasks.node >= 0) & with_ports[tasks.cls]).tolist():
            leaving = bool(tasks.status[task] == TaskStatus.RELEASING)
            taken += [(int(tasks.node[task]), port, leaving) for port in tasks.pod(task).host_ports]
        return taken


def _clash(a: HostPort, b: HostPort) -> bool:
    any_ip = _ANY_ADDRESS in (a.host_ip, b.host_ip)
    return a.port == b.port and a.protocol == b.protocol and (any_ip or a.host_ip == b.host_ip)
