"""Plugin ``predicates``: on which nodes a task may be.

Extension point: predicate. Tests: node selector and required node affinity, unschedulable, taints, host ports.
Room (cpu, memory, cards, number of pods) is tested by the actions, for every policy.
Source: volcano-semantics 4.5; Kubernetes' filters of the same names.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from scheduler_core.algorithms.selectors import tolerates
from scheduler_core.framework.plugin import Argument, Plugin
from scheduler_core.framework.session import Session
from scheduler_core.model.node import Taint
from scheduler_core.model.pod import HostPort, NodeSelectorRequirement
from scheduler_core.state.status import HOLDS, Bools, TaskStatus
from scheduler_core.state.task_class import TaskClass

_ANY_ADDRESS = HostPort(0).host_ip
_UNSCHEDULABLE = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")


class Predicates(Plugin):
    """Node filters."""

    name: ClassVar[str] = "predicates"
    arguments: ClassVar[tuple[Argument, ...]] = (
        Argument(
            name="predicate.NodeAffinityEnable", type="bool", default=True, doc="test node selector and node affinity"
        ),
        Argument(name="predicate.NodePortsEnable", type="bool", default=True, doc="test host ports"),
        Argument(name="predicate.TaintTolerationEnable", type="bool", default=True, doc="test taints"),
    )
    not_built: ClassVar[tuple[str, ...]] = (
        "predicate.PodAffinityEnable",
        "predicate.NodeVolumeLimitsEnable",
        "predicate.VolumeZoneEnable",
        "predicate.PodTopologySpreadEnable",
        "predicate.VolumeBindingEnable",
        "predicate.CacheEnable",
    )

    def open(self, session: Session) -> None:
        """Keep the node index of the workspace, which outlives the session."""
        super().open(session)
        self._index = session.node_index
        self._ports: dict[int, list[HostPort]] | None = None

    def volatile(self, cls: TaskClass) -> bool:
        """Ports are taken by placements of this very session."""
        return bool(cls.ports)

    def predicate(self, cls: TaskClass) -> Iterator[tuple[str, Bools] | tuple[str, Bools, Bools]]:
        """The masks of the filters, each with the word that counts refused nodes."""
        index = self._index
        tolerates_cordon = any(tolerates(toleration, _UNSCHEDULABLE) for toleration in cls.tolerations)
        if not tolerates_cordon:
            yield "unschedulable", ~index.unschedulable
        if self.values["predicate.NodeAffinityEnable"]:
            for key, value in cls.selector:
                yield "node selector", index.requirement(NodeSelectorRequirement(key, "In", (value,)))
            if cls.required is not None:
                mask: Bools = np.zeros(len(index.unschedulable), dtype=np.bool_)
                for term in cls.required:
                    mask |= index.term(term)
                yield "node affinity", mask
        if self.values["predicate.TaintTolerationEnable"]:
            yield "taint", index.intolerable(cls.tolerations, preferred=False) == 0
        if cls.ports and self.values["predicate.NodePortsEnable"]:
            yield "host port", *self._free_ports(cls)

    def _free_ports(self, cls: TaskClass) -> tuple[Bools, Bools]:
        """Nodes where the ports are free at once, and once what leaves has left."""
        now: Bools = np.ones(len(self.session.nodes), dtype=np.bool_)
        later = now.copy()
        for node, port, leaving in self._taken_ports():
            if any(_clash(one, port) for one in cls.ports):
                now[node] = False
                later[node] &= leaving
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
