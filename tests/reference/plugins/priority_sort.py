"""priority-sort: pods one by one, the higher priority first."""

from __future__ import annotations


class PrioritySort:
    """By the pod's priority."""

    def __init__(self, arguments):
        pass

    def queue_sort(self, world, task):
        return (-task["pod"].priority,)
