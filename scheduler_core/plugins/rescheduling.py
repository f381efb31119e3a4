"""Plugin ``rescheduling``: moves pods away from nodes that are used much more than others.

Extension point: victim_tasks, for the action shuffle.
Strategy ``lowNodeUtilization``, every ``interval``: a node is idle where everything asked for of it is below
``thresholds`` (percent of cpu, memory, pods and cards), and busy where something is above ``targetThresholds``. Of each
busy node pods are named, the lowest priority and then the youngest first, until it is busy no more or what has been
named no longer fits into what idle nodes have below ``targetThresholds``. Without an idle node no pod moves.
Source: volcano-semantics 4.12; the descheduler's LowNodeUtilization. On purpose: use is counted by requests, and the
last round is kept in the memory of the sessions, not in the process."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from scheduler_core.algorithms.durations import parse_duration
from scheduler_core.framework.plugin import Argument, Plugin
from scheduler_core.model.resources import MILLI
from scheduler_core.state.axes import CPU, MEMORY, PODS
from scheduler_core.state.status import Bools, Floats, Ints

_KEY = "rescheduling/lowNodeUtilization"
_ROWS = {"cpu": CPU, "memory": MEMORY, "pods": PODS}
_CARDS = "cards"


class Rescheduling(Plugin):
    name: ClassVar[str] = "rescheduling"
    arguments: ClassVar[tuple[Argument, ...]] = (
        Argument(name="interval", type="str", default="5m", doc="how long nodes are left alone after a round"),
        Argument(
            name="thresholds", type="weights", default={"cpu": 20, "memory": 20, "pods": 20}, minimum=0, maximum=100,
            doc="percent of `cpu`, `memory`, `pods` or `cards` below which a node is idle",
        ),
        Argument(
            name="targetThresholds", type="weights", default={"cpu": 50, "memory": 50, "pods": 50}, minimum=0,
            maximum=100, doc="percent above which a node is busy",
        ),
    )  # fmt: skip

    @classmethod
    def check(cls, values: Mapping[str, Any]) -> None:
        """Thresholds of known resources, none above its target."""
        parse_duration(values["interval"])
        low, high = values["thresholds"], values["targetThresholds"]
        for name in (*low, *high):
            if name not in _ROWS and name != _CARDS:
                raise ValueError(f"thresholds are of {', '.join(_ROWS)} and {_CARDS}, not of {name}")
        for name in low:
            if name in high and low[name] > high[name]:
                raise ValueError(f"the threshold of {name} is above its target")

    def remember(self) -> dict[str, float]:
        """When the last round was."""
        session = self.session
        last = session.memory.acted.get(_KEY)
        if getattr(self, "_moved", False):
            return {_KEY: session.now}
        return {_KEY: last} if last is not None and last + parse_duration(self.values["interval"]) > session.now else {}

    def victim_tasks(self, candidates: Sequence[int]) -> dict[int, str]:
        """Pods of busy nodes that idle nodes could take."""
        session = self.session
        last = session.memory.acted.get(_KEY)
        if last is not None and last + parse_duration(self.values["interval"]) > session.now:
            return {}
        low, high = self.values["thresholds"], self.values["targetThresholds"]
        names = sorted({*low, *high})
        used, capacity = self._columns(names)
        idle = self._below(used, capacity, names, low)
        limit: Floats = capacity * np.array([high.get(name, 100) / 100 for name in names])[:, None]
        busy = (used > limit).any(axis=0) & ~idle
        room: Floats = np.maximum(limit - used, 0)[:, idle].sum(axis=1)
        tasks, found = session.tasks, dict[int, str]()
        by_node: dict[int, list[int]] = {}
        for task in candidates:
            node = int(tasks.node[task])
            if node >= 0 and busy[node] and not tasks.protected[task]:
                by_node.setdefault(node, []).append(task)
        for node in sorted(by_node):
            order = sorted(by_node[node], key=lambda t: (tasks.priority[t], -tasks.started[t], tasks.keys[t]))
            for task in order:
                if not (used[:, node] > limit[:, node]).any():
                    break
                need = self._need(task, names)
                if (need > room).any():
                    continue
                used[:, node] -= need
                room -= need
                found[task] = f"node {session.axes.nodes[node]} is used more than others"
        self._moved = bool(found)
        return found

    def _columns(self, names: Sequence[str]) -> tuple[Floats, Floats]:
        """float64 (D, N) twice: what is used once all that leaves has left, and what there is."""
        nodes, cards = self.session.nodes, self.session.cards
        total: Ints = cards.count.sum(axis=0).astype(np.int64) * MILLI
        capacity = [total if name == _CARDS else nodes.allocatable[_ROWS[name]] for name in names]
        left = [cards.left_future.sum(axis=0) if name == _CARDS else nodes.future[_ROWS[name]] for name in names]
        there = np.array(capacity, dtype=np.float64).reshape(len(names), len(nodes))
        return there - np.array(left, dtype=np.float64).reshape(there.shape), there

    @staticmethod
    def _below(used: Floats, capacity: Floats, names: Sequence[str], low: Mapping[str, float]) -> Bools:
        idle: Bools = np.ones(used.shape[1], dtype=np.bool_)
        for row, name in enumerate(names):
            if name in low:
                idle &= used[row] < capacity[row] * low[name] / 100
        return idle

    def _need(self, task: int, names: Sequence[str]) -> Floats:
        cls = self.session.cluster.class_of(task)
        return np.array([cls.milli if name == _CARDS else cls.request[_ROWS[name]] for name in names], dtype=np.float64)
