"""Plugin ``usage``: keep off nodes that are loaded, whatever has been requested there.

Extension points: predicate (a node above a threshold takes no pod), node_order (more for less load):
score = weight x 100 x sum of ((1 - used/allocatable) x w) / sum of w.
Units: thresholds in percent of the node's allocatable amount.
Source: volcano-semantics 4.12. The numbers come from NodeMetrics objects in the snapshot (contracts 3.7); a measurement
older than five minutes, or none, filters no node and scores 0.
Departures on purpose: the clock is the session's ``now``; ``memory`` is accepted beside ``mem`` as a threshold's name.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from scheduler_core.framework.forms import Form, Term
from scheduler_core.framework.kernels.terms import STATIC
from scheduler_core.framework.node_scores import ScoredByTerms
from scheduler_core.framework.plugin import Argument, number
from scheduler_core.framework.session import Session
from scheduler_core.model.node_refusal import NodeRefusal
from scheduler_core.state.axes import CPU, MEMORY
from scheduler_core.state.status import Bools, Floats
from scheduler_core.state.task_class import TaskClass

STALE_SECONDS = 300.0
MAX_SCORE = 100.0


def _weight(name: str, default: int, doc: str) -> Argument:
    return number(name, default, (0, 1_000_000), doc)


class Usage(ScoredByTerms):
    name: ClassVar[str] = "usage"
    arguments: ClassVar[tuple[Argument, ...]] = (
        _weight("usage.weight", 5, "weight of the whole score"),
        _weight("cpu.weight", 1, "weight of cpu in the score"),
        _weight("memory.weight", 1, "weight of memory in the score"),
        Argument(
            name="thresholds", type="weights", default={"cpu": 80, "mem": 80}, minimum=0, maximum=1000,
            doc="percent of cpu and mem in use above which a node takes no pod; 80 each where it is not said",
        ),
    )  # fmt: skip

    @classmethod
    def check(cls, values: Mapping[str, Any]) -> None:
        """Only cpu and memory are measured."""
        unknown = sorted(set(values["thresholds"]) - {"cpu", "mem", "memory"})
        if unknown:
            raise ValueError(f"thresholds: {unknown[0]} is not measured; cpu and mem are")

    def open(self, session: Session) -> None:
        """Compare the measurements with the thresholds once."""
        super().open(session)
        nodes = session.nodes
        used: Floats = np.zeros((2, len(nodes)), dtype=np.float64)
        fresh: Bools = np.zeros(len(nodes), dtype=np.bool_)
        index = session.axes.node_index
        for metrics in session.snapshot.metrics:
            at = index.get(metrics.name)
            if at is not None and session.now - metrics.at <= STALE_SECONDS:
                fresh[at] = True
                used[0, at], used[1, at] = metrics.cpu_milli, metrics.memory_mib
        share = np.divide(used, np.maximum(nodes.allocatable[[CPU, MEMORY]], 1))
        limits = {"cpu": 80.0, "mem": 80.0, **self.values["thresholds"]}
        limits["mem"] = self.values["thresholds"].get("memory", limits["mem"])
        self._cpu_ok: Bools = ~(fresh & (share[0] * 100 > limits["cpu"]))
        self._memory_ok: Bools = ~(fresh & (share[1] * 100 > limits["mem"]))
        weights = np.array([self.values["cpu.weight"], self.values["memory.weight"]], dtype=np.float64)
        total = float(weights.sum())
        free = (1.0 - share[0]) * weights[0] + (1.0 - share[1]) * weights[1]
        score = free / total * MAX_SCORE * self.values["usage.weight"] if total else free
        self._score: Floats = np.where(fresh, score, 0.0)

    def predicate(self, cls: TaskClass) -> Iterator[tuple[str, Bools]]:
        """Nodes below the thresholds."""
        yield NodeRefusal.CPU_LOAD, self._cpu_ok
        yield NodeRefusal.MEMORY_LOAD, self._memory_ok

    def compiled_form(self, point: str) -> Sequence[Form] | None:
        """The less loaded the better; what was measured does not change in a session."""
        return [Term(STATIC, of_class=lambda _: self._score)] if point == "node_order" else None
