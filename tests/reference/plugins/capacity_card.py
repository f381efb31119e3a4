"""capacity-card: quotas by card type and the tide."""

from __future__ import annotations

from tests.reference import quota
from tests.reference.world import cards_on, service_type


class CapacityCard:
    """The founding plugin; its sums stand in :mod:`tests.reference.quota`."""

    falls_whole = True
    guards = ("reclaimable", "preemptable", "unified_evictable")

    def __init__(self, arguments):
        self.prefer = arguments.get("nodeOrderWeight", 1.0)
        self.unknown = arguments.get("unknownReclaimer", "deny")
        self.tide_preempt = arguments.get("tidePreempt", False)

    def queue_order(self, world, queue):
        return (-world["queues"][queue].priority, quota.share(world, queue))

    def enqueueable(self, world, gang):
        return 1 if quota.admits(world, gang) else -1

    def only_room(self, world, gang):
        """The queue's quota would let it in."""
        return quota.within_quota(world, gang)

    def quota_left(self, world, gang):
        return quota.within_quota(world, gang, admission=False)

    def allowed(self, world, task, card):
        return quota.allows(world, task, card)

    preemptive = allowed

    def well_written(self, world, gang):
        """A queue with a quota by card type cannot count cards that nobody names."""
        return not quota.nameless(world, gang)

    def score(self, world, task, name):
        """The first card of a choice is worth most."""
        names = task["pod"].card.names if task["milli"] else ()
        if len(names) < 2:
            return 0
        for place, card in enumerate(names):
            if cards_on(world, name, card):
                return 100 * 0.5**place * self.prefer
        return 0

    def reclaimer(self, world, gang):
        kind = service_type(world, gang)
        return kind == "inference" or (kind == "unknown" and self.unknown == "allow")

    def reclaimable(self, world, task, candidates):
        if not self.reclaimer(world, task["gang"]):
            return set()
        return {other["key"] for other in candidates if service_type(world, other["gang"]) == "training"}

    def unified_evictable(self, world, task, candidates):
        across = any(other["queue"] != task["queue"] for other in candidates)
        return self.reclaimable(world, task, candidates) if across or self.tide_preempt else None

    def preemptable(self, world, task, candidates):
        return self.reclaimable(world, task, candidates) if self.tide_preempt else None
