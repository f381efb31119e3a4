"""default-preemption: a pod without a node takes one from lower pods, see :mod:`tests.reference.pods`."""

from __future__ import annotations


class DefaultPreemption:
    """Pods may preempt."""

    def __init__(self, arguments):
        pass

    def post_filter(self, world, task):
        """Nothing to say beyond that it is there."""
