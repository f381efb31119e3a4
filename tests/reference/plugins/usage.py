"""usage: what was measured on the nodes."""

from __future__ import annotations


class Usage:
    """Thresholds, and more for less load."""

    def __init__(self, arguments):
        limits = arguments.get("thresholds", {})
        self.limits = (limits.get("cpu", 80), limits.get("memory", limits.get("mem", 80)))
        self.weights = (arguments.get("cpu.weight", 1), arguments.get("memory.weight", 1))
        self.weight = arguments.get("usage.weight", 5)

    def _load(self, world, name):
        """Share of cpu and memory in use, or None."""
        metrics, node = world["metrics"].get(name), world["nodes"][name]
        if metrics is None or world["now"] - metrics.at > 300:
            return None
        return metrics.cpu_milli / max(1, node.cpu_milli), metrics.memory_mib / max(1, node.memory_mib)

    def filter(self, world, task, name):
        load = self._load(world, name)
        return load is None or all(part * 100 <= limit for part, limit in zip(load, self.limits, strict=True))

    def score(self, world, task, name):
        load = self._load(world, name)
        total = sum(self.weights)
        if load is None or not total:
            return 0.0
        free = sum((1.0 - part) * weight for part, weight in zip(load, self.weights, strict=True))
        return free / total * 100.0 * self.weight
