"""Plugin ``numa-aware``: pods that want their CPUs from one NUMA cell, on nodes whose kubelet would give them so.

Extension points: predicate, node_order, bind_notes. A pod asks with the annotation
``volcano.sh/numa-topology-policy`` (``best-effort``, ``restricted``, ``single-numa-node``); only pods of QoS class
Guaranteed have CPUs to themselves. A node will do if its Numatopology object says that its kubelet gives whole CPUs
(CPU manager policy ``static``) under the very same policy, and if its free CPUs admit every container by that policy.
Score: 100 - 100 x cells used / most cells used on any node, x weight. The chosen cells are noted on the bind as
``volcano.sh/topology-decision``.
Source: volcano-semantics 4.12.
Departures on purpose: without enough free CPUs ``best-effort`` refuses too, as the kubelet does (not with
``compatibility: volcano``); pods without the
annotation are not looked at; which CPUs pods in place hold is what the node reports, those of this session are added.
"""

import json
from collections.abc import Iterator, Sequence
from typing import ClassVar

import numpy as np

from scheduler_core.algorithms.numa import BEST_EFFORT, place, unreserved
from scheduler_core.algorithms.scoring import normalised
from scheduler_core.framework.extension_points import Where
from scheduler_core.framework.forms import Form, Term
from scheduler_core.framework.kernels.terms import STATIC
from scheduler_core.framework.plugin import Argument, Plugin, number
from scheduler_core.framework.session import Session
from scheduler_core.model.node_refusal import NodeRefusal
from scheduler_core.model.observed import NumaTopology
from scheduler_core.state.status import ALLOCATED, PIPELINED, Bools, Floats, Ints
from scheduler_core.state.task_class import TaskClass

DECISION = "volcano.sh/topology-decision"


class NumaAware(Plugin):
    name: ClassVar[str] = "numa-aware"
    arguments: ClassVar[tuple[Argument, ...]] = (
        number(
            "weight", 1, (0, 1_000_000), "weight of the score for nodes where the pod's CPUs come from few NUMA cells"
        ),
    )

    def open(self, session: Session) -> None:
        super().open(session)
        index = session.axes.node_index
        self._topologies = {index[one.name]: one for one in session.snapshot.numa if one.name in index}
        self._unreserved: dict[int, frozenset[int]] = {}
        # Node and CPUs of the pods placed in this session, as of this place in the log of changes.
        self._seen = -1
        self._given: dict[int, tuple[int, tuple[int, ...]]] = {}

    def volatile(self, cls: TaskClass) -> bool:
        """CPUs are taken by placements of this very session."""
        return _asks(cls)

    def predicate(self, cls: TaskClass) -> Iterator[tuple[str, Bools] | tuple[str, Bools, Bools]]:
        """Nodes with the same policy, and those whose free CPUs admit the pod."""
        if _asks(cls):
            alike: Bools = np.zeros(len(self.session.nodes), dtype=np.bool_)
            alike[[at for at, topology in self._topologies.items() if _suits(topology, cls)]] = True
            yield NodeRefusal.NUMA_POLICY, alike
            fits = self._cells(cls) > 0
            if self.session.compat and cls.numa_policy == BEST_EFFORT:
                fits = alike
            yield NodeRefusal.NUMA_CELLS, fits, fits

    def node_order(self, cls: TaskClass, where: Where) -> Floats:
        """Few cells are better than many."""
        if not _asks(cls):
            return np.zeros(len(self.session.nodes), dtype=np.float64)[where]
        cells = self._cells(cls)
        score = normalised(cells, reverse=True)
        score[cells == 0] = 0.0
        weighted: Floats = score * float(self.values["weight"])
        return weighted[where]

    def compiled_form(self, point: str) -> Sequence[Form] | None:
        """Nothing for classes that are not volatile."""
        return [Term(STATIC)] if point == "node_order" else None

    def bind_notes(self, task: int) -> dict[str, str]:
        """CPUs by cell, as Volcano writes them: ``{"numa": {"0": {"cpu": "4"}}}``."""
        cpus = self._of_session().get(task)
        if not cpus:
            return {}
        topology = self._topologies[int(self.session.tasks.node[task])]
        counts: dict[int, int] = {}
        for cpu in cpus:
            counts[topology.cells[cpu]] = counts.get(topology.cells[cpu], 0) + 1
        numa = {str(cell): {"cpu": str(count)} for cell, count in sorted(counts.items())}
        return {DECISION: json.dumps({"numa": numa}, separators=(",", ":"))}

    def _cells(self, cls: TaskClass) -> Ints:
        """On how many cells a pod of the class would be, by node; 0 = it is not admitted."""
        taken = self._taken()
        found: Ints = np.zeros(len(self.session.nodes), dtype=np.int64)
        for at, topology in self._topologies.items():
            if _suits(topology, cls):
                cpus = place(topology, self._free(at) - taken.get(at, frozenset()), cls.whole_cpus)
                found[at] = len({topology.cells[cpu] for cpu in cpus}) if cpus else 0
        return found

    def _free(self, node: int) -> frozenset[int]:
        known = self._unreserved.get(node)
        if known is None:
            known = self._unreserved[node] = unreserved(self._topologies[node])
        return known

    def _taken(self) -> dict[int, frozenset[int]]:
        """CPUs that placements of this session have taken, by node."""
        taken: dict[int, frozenset[int]] = {}
        for task, cpus in self._of_session().items():
            node = int(self.session.tasks.node[task])
            taken[node] = taken.get(node, frozenset()) | frozenset(cpus)
        return taken

    def _of_session(self) -> dict[int, tuple[int, ...]]:
        """CPUs of each pod placed in this session. Who has some keeps them; newcomers get theirs in order of names."""
        session, mark = self.session, len(self.session.nodes.log)
        if self._seen != mark:
            self._seen = mark
            tasks, classes = session.tasks, session.cluster.classes.classes
            asks = np.array([_asks(cls) for cls in classes], dtype=np.bool_)
            here = (tasks.status == ALLOCATED) | (tasks.status == PIPELINED)
            at = {task: int(tasks.node[task]) for task in np.flatnonzero(tasks.live & here & asks[tasks.cls]).tolist()}
            self._given = {task: given for task, given in self._given.items() if at.get(task) == given[0]}
            for task in sorted(at.keys() - self._given.keys(), key=tasks.keys.__getitem__):
                node = at[task]
                if node in self._topologies:
                    held = (cpus for where, cpus in self._given.values() if where == node)
                    free = self._free(node).difference(*held)
                    cpus = place(self._topologies[node], free, session.cluster.class_of(task).whole_cpus)
                    self._given[task] = (node, cpus or ())
        return {task: cpus for task, (_, cpus) in self._given.items()}


def _asks(cls: TaskClass) -> bool:
    return bool(cls.numa_policy) and any(cls.whole_cpus)


def _suits(topology: NumaTopology, cls: TaskClass) -> bool:
    return topology.static_cpus and topology.policy == cls.numa_policy
