"""binpack: the fuller node."""

from __future__ import annotations

from tests.reference.named import asked, total, used


class Binpack:
    """Weighted used share over what the task asks for."""

    def __init__(self, arguments):
        self.scale = arguments.get("binpack.weight", 1)
        extra = arguments.get("binpack.resources", [])
        own = arguments.get("binpack.resources.<name>", {})
        self.weights = {"cpu": arguments.get("binpack.cpu", 1), "memory": arguments.get("binpack.memory", 1)}
        self.weights |= {name: own.get(name, 1) for name in extra}

    def score(self, world, task, name):
        wanted = {resource: asked(world, task, resource) for resource in self.weights}
        weights = sum(weight for resource, weight in self.weights.items() if wanted[resource] > 0)
        if not weights:
            return 0
        filled = 0.0
        for resource, weight in self.weights.items():
            there = total(world, name, resource)
            if wanted[resource] <= 0 or there <= 0 or not weight:
                continue
            with_task = used(world, name, resource) + wanted[resource]
            if with_task > there:
                return 0
            filled += weight * (with_task / there)
        return 100.0 * self.scale * filled / weights
