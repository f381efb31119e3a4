"""machine-group: each to its own machines."""

from __future__ import annotations

GROUP = "tidesched.io/machine-group"


class MachineGroup:
    """Node and pod have the same label, or neither has it."""

    def __init__(self, arguments):
        pass

    def filter(self, world, task, name):
        pod = task["pod"]
        own = pod.annotations.get(GROUP, pod.labels.get(GROUP, ""))
        return world["nodes"][name].labels.get(GROUP, "") == own
