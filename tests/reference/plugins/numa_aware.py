"""numa-aware: whole CPUs out of few cells, every combination of cells tried."""

from __future__ import annotations

import math
from itertools import combinations


class NumaAware:
    """Pods of class Guaranteed that name a policy."""

    def __init__(self, arguments):
        self.weight = arguments.get("weight", 1)
        # Who has CPUs, by pod: node and numbers; who moves is looked at anew.
        self.given = {}

    def filter(self, world, task, name):
        return not _asks(task) or (_suits(world, task, name) and self._cells(world, task, name) > 0)

    def curable(self, world, task, name):
        """Other pods may give theirs back; the policy stays."""
        return not _asks(task) or _suits(world, task, name)

    def score(self, world, task, name):
        if not _asks(task):
            return 0.0
        cells = {node: self._cells(world, task, node) for node in world["nodes"]}
        most = max(cells.values())
        if not cells[name]:
            return 0.0
        return float(100 - cells[name] * 100 // most) * self.weight

    def _cells(self, world, task, name):
        """On how many cells the pod would be, 0 = it is not let in."""
        if not _suits(world, task, name):
            return 0
        got = _admit(world["numa"][name], self._free(world, name), task["pod"].whole_cpus)
        return len({world["numa"][name].cells[cpu] for cpu in got}) if got else 0

    def _free(self, world, name):
        self._bring_up(world)
        held = {cpu for node, cpus in self.given.values() if node == name for cpu in cpus}
        return _unreserved(world["numa"][name]) - held

    def _bring_up(self, world):
        now = {
            t["key"]: t
            for t in world["tasks"].values()
            if t["status"] in ("allocated", "pipelined") and t["node"] and _asks(t)
        }
        self.given = {key: had for key, had in self.given.items() if key in now and now[key]["node"] == had[0]}
        for key in sorted(now.keys() - self.given.keys()):
            name = now[key]["node"]
            if name in world["numa"]:
                held = {cpu for node, cpus in self.given.values() if node == name for cpu in cpus}
                got = _admit(world["numa"][name], _unreserved(world["numa"][name]) - held, now[key]["pod"].whole_cpus)
                self.given[key] = (name, got or ())


def _asks(task):
    return bool(task["pod"].numa_policy) and any(task["pod"].whole_cpus)


def _suits(world, task, name):
    topology = world["numa"].get(name)
    return topology is not None and topology.static_cpus and topology.policy == task["pod"].numa_policy


def _unreserved(topology):
    kept = _pick(topology, set(topology.cells), math.ceil(topology.reserved_milli / 1000))
    return set(topology.free) - set(kept or ())


def _admit(topology, free, containers):
    """CPUs of all containers, one after the other; None where the node's policy refuses one."""
    got = []
    for number in containers:
        if not number:
            continue
        cells = _best_cells(topology, free, number)
        if cells is None:
            return None
        chosen = _pick(topology, {cpu for cpu in free if topology.cells.get(cpu) in cells}, number)
        if chosen is None:
            return None
        got += chosen
        free = free - set(chosen)
    return got


def _best_cells(topology, free, number):
    """The cells that the kubelet's policy settles on."""
    cells = sorted(set(topology.cells.values()))[:8]
    ever, today = [], []
    for size in range(1, len(cells) + 1):
        for some in combinations(cells, size):
            if sum(1 for cell in topology.cells.values() if cell in some) >= number:
                ever.append(size)
            if sum(1 for cpu, cell in topology.cells.items() if cell in some and cpu in free) >= number:
                today.append(some)
    least = min(ever, default=len(cells))
    if topology.policy == "single-numa-node":
        today = [some for some in today if len(some) == 1 == least]
    if topology.policy == "restricted":
        today = [some for some in today if len(some) == least]
    return min(today, key=lambda some: (len(some) != least, len(some), some), default=None)


def _pick(topology, free, number):
    """Whole sockets, whole cores, then what is left of cores that are used the most."""
    free = {cpu for cpu in free if cpu in topology.cells}
    if len(free) < number:
        return None
    got = []
    of_core = {cpu: (topology.sockets[cpu], topology.cores[cpu]) for cpu in topology.cells}
    for group in (topology.sockets, of_core):
        before = set(free)
        for which in sorted(set(group.values())):
            all_of_it = {cpu for cpu in topology.cells if group[cpu] == which}
            if all_of_it <= before and len(all_of_it) <= number - len(got):
                got += sorted(all_of_it)
                free -= all_of_it
    left = {cpu: sum(1 for other in free if of_core[other] == of_core[cpu]) for cpu in free}
    got += sorted(free, key=lambda cpu: (left[cpu], of_core[cpu], cpu))[: number - len(got)]
    return sorted(got)
