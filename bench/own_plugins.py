"""A15-own: plugins of one's own, as docs/own-plugins.md has them, beside the founding policy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from bench.policies import beside_founding
from bench.snapshots import Size
from scheduler_core.framework.extension_points import Where
from scheduler_core.framework.plugin import Plugin
from scheduler_core.plugins import PLUGINS
from scheduler_core.state.axes import CPU
from scheduler_core.state.status import Bools, Floats
from scheduler_core.state.task_class import TaskClass


class OverArrays(Plugin):
    """A score by use, a predicate and a queue order, asked for many nodes at a time."""

    name = "own-arrays"

    def node_order(self, cls: TaskClass, where: Where) -> Floats:
        """The more cpu is in use, the better."""
        nodes = self.session.nodes
        used: Floats = 1.0 - nodes.future[CPU, where] / nodes.allocatable[CPU, where]
        return used * 10.0

    def predicate(self, cls: TaskClass) -> Iterator[tuple[str, Bools]]:
        """Every node."""
        yield "kept away", np.ones(len(self.session.nodes), dtype=np.bool_)

    def queue_order(self, queue: int) -> tuple[Any, ...]:
        """By name."""
        return (self.session.ledger.queues[queue].name,)


class PodByPod(OverArrays):
    """The same with a word about each pod."""

    name = "own-pods"

    def task_predicate(self, task: int) -> tuple[str, Bools] | None:
        """Every node."""
        return "kept away", np.ones(len(self.session.nodes), dtype=np.bool_)


def own_plugin(size: Size, plugin: type[Plugin]) -> Callable[[], Callable[[], float]]:
    """The factor of the founding policy with such a plugin."""
    PLUGINS[plugin.name] = plugin
    return partial(beside_founding, size, plugin.name)
