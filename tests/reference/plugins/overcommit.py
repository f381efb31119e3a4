"""overcommit: a bound on what is admitted."""

from __future__ import annotations

from fractions import Fraction

from tests.reference import resources as r
from tests.reference.quota import _free_in_all
from tests.reference.world import CHARGED


class Overcommit:
    """used + promised + minimum within the enlarged cluster."""

    def __init__(self, arguments):
        self.factor = Fraction(str(arguments.get("overcommit-factor", 1.2)))

    def enqueueable(self, world, gang):
        need, unknown = r.asked(world, gang)
        limits = {what: int(amount * self.factor) for what, amount in r.total(world).items()}
        held = self._on_nodes(world)
        if {"reclaim", "gangreclaim"} & set(world["actions"]) and world["hooks"].all("reclaimer", world, gang):
            back = self._back(world, world["gangs"][gang].queue, need)
            held = {what: max(0, amount - back[what]) for what, amount in held.items()}
        return 1 if not unknown and r.fits(need, limits, held, r.promised(world, set(world["queues"]))) else -1

    def only_room(self, world, gang):
        """Whom it refuses, the room of the cluster keeps out."""
        return True

    def _on_nodes(self, world):
        found = dict.fromkeys(r.names(world), 0)
        for task in world["tasks"].values():
            if task["node"] is not None and task["status"] in (*CHARGED, "unknown", "pipelined"):
                found["cpu"] += task["need"]["cpu"]
                found["memory"] += task["need"]["memory"]
                for name, count in task["pod"].scalars.items():
                    if name in found:
                        found[name] += r.thousandths(name) * count
        for card, resource in world["resource"].items():
            there = sum(c.count for node in world["nodes"].values() for c in node.cards if c.card == card)
            found[resource] += 1000 * there - _free_in_all(world, card)
        return found

    def _line(self, world, name):
        for tier in world["hooks"].tiers:
            for plugin, _ in tier:
                if hasattr(plugin, "line"):
                    return plugin.line(world, name)
        return None

    def _back(self, world, name, need):
        """What others use beyond what they deserve, for a queue that stays within what it deserves."""
        zero = dict.fromkeys(r.names(world), 0)
        own = self._line(world, name)
        if own is not None and not r.fits(need, {**zero, **own}, r.used(world, {name})):
            return zero
        found = zero
        for other, queue in world["queues"].items():
            if other != name and queue.reclaimable and queue.service_type != "inference":
                line = {**zero, **(self._line(world, other) or {})}
                over = r.less(r.used(world, {other}), line)
                found = r.add(found, {what: max(0, amount) for what, amount in over.items()})
        return found
