"""One plugin alone in an open session, and clusters of plain nodes and queues to open it on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from scheduler_core import Memory, PluginOption, Policy, Snapshot
from scheduler_core.framework.plugin import Plugin
from scheduler_core.model.node import Node
from scheduler_core.model.podgroup import PodGroup
from scheduler_core.model.queue import Queue
from scheduler_core.model.resources import Amount
from tests.core import open_session

P = TypeVar("P", bound=Plugin)


def opened(
    kind: type[P],
    given: Snapshot,
    *,
    switches: Mapping[str, bool] | None = None,
    actions: str = "enqueue allocate backfill",
    compat: bool = False,
    now: float = 1000.0,
    memory: Memory | None = None,
    beside: tuple[Plugin, ...] = (),
    **arguments: Any,
) -> P:
    """The plugin in a session of its own; ``beside`` stand in the same tier after it."""
    plugin = kind(arguments)
    rules = Policy(
        actions=tuple(actions.split()),
        tiers=((PluginOption(name=kind.name),),),
        compatibility="volcano" if compat else "",
    )
    tier = [(plugin, dict(switches or {})), *((other, {}) for other in beside)]
    # A plugin does not keep its session, so the test has to.
    plugin.kept = open_session.opened(given, rules, tiers=[tier], now=now, memory=memory)
    return plugin


def cores(name: str, cpu: int, memory_mib: int = 1_000_000) -> Node:
    """A node of so many cores."""
    return Node(name=name, cpu_milli=cpu * 1000, memory_mib=memory_mib, pods=1000)


def plain_queue(name: str, **more: Any) -> Queue:
    """A queue without a card quota; ``cpu``, ``deserved``, ``guarantee`` in cores."""
    for part in ("deserved", "guarantee"):
        if isinstance(more.get(part), int):
            more[part] = {"cpu": more[part] * 1000}
    if "cpu" in more:
        more["cpu_milli"] = more.pop("cpu") * 1000
    return Queue(name=name, **more)


def waiting_job(name: str, queue: str, cpu: int, *, scalars: Mapping[str, int] | None = None, **more: Any) -> PodGroup:
    """A PodGroup of a Job whose pods are made once it is admitted; ``cpu`` cores in all."""
    return PodGroup(
        namespace="ns",
        name=name,
        queue=queue,
        min_resources=Amount(cpu * 1000, 0),
        min_scalars=dict(scalars or {}),
        waits_for_admission=True,
        **more,
    )
