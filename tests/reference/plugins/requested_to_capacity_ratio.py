"""requested-to-capacity-ratio: along a line."""

from __future__ import annotations

from tests.reference.named import asked, total, used

LINE = [{"utilization": 0.0, "score": 0.0}, {"utilization": 100.0, "score": 10.0}]


class RequestedToCapacityRatio:
    """The weighted mean of the line's scores."""

    def __init__(self, arguments):
        self._points = [(p["utilization"], p["score"]) for p in arguments.get("functionshape", LINE)]
        self.weights = arguments.get("resourcetoweightmap", {"cpu": 1, "memory": 1})
        most = arguments.get("maxScore", 0) or (10 if max(score for _, score in self._points) <= 10 else 100)
        self.scale = arguments.get("weight", 1) * 100.0 / most

    def score(self, world, task, name):
        found = 0.0
        for resource, weight in self.weights.items():
            there = total(world, name, resource)
            with_task = used(world, name, resource) + asked(world, task, resource)
            full = 100.0 if there <= 0 or with_task >= there else 100.0 * with_task / there
            found += self._at(full) * weight
        return self.scale * found / sum(self.weights.values())

    def _at(self, full):
        if full <= self._points[0][0]:
            return self._points[0][1]
        for (at, score), (after, later) in zip(self._points, self._points[1:], strict=False):
            if full <= after:
                return score + (later - score) * (full - at) / (after - at)
        return self._points[-1][1]
