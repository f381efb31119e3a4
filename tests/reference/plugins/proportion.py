"""proportion: parts by weight, in fractions."""

from __future__ import annotations

from fractions import Fraction

from tests.reference import resources as r
from tests.reference.quota import queue_open
from tests.reference.world import CHARGED


class Proportion:
    """Queues share by weight what they ask for."""

    guards = ("reclaimable", "unified_evictable")

    def __init__(self, arguments):
        pass

    def real(self, world, name):
        """The most that a queue may use."""
        guarantees = [r.written(world, queue.guarantee) for queue in world["queues"].values()]
        own, most = r.written(world, world["queues"][name].guarantee), r.capability(world, world["queues"][name])
        found = {}
        for what, there in r.total(world).items():
            free = max(0, there - sum(g.get(what, 0) for g in guarantees)) + own.get(what, 0)
            found[what] = min(free, most.get(what, free))
        return found

    def deserved(self, world):
        """By queue; once per session."""
        if "deserved" not in world:
            world["deserved"] = self._fill(world)
        return world["deserved"]

    def _fill(self, world):
        zero = dict.fromkeys(r.names(world), Fraction(0))
        own = {name: {**zero, **r.written(world, q.guarantee)} for name, q in world["queues"].items()}
        got = {name: dict(zero) for name in world["queues"]}
        busy = sorted({g.queue for g in world["gangs"].values()} & world["queues"].keys())
        statuses = (*r.HELD, "pending")
        want = {
            name: r.of_tasks(
                world, [t for t in world["tasks"].values() if t["queue"] == name and t["status"] in statuses]
            )
            for name in busy
        }
        real = {name: self.real(world, name) for name in busy}
        for what, whole in r.total(world).items():
            there = max(0, whole - sum(own[name][what] for name in own if name not in busy))
            weights = sum(world["queues"][name].weight for name in busy)
            most = {name: min(real[name][what], want[name][what]) for name in busy}
            for name in busy:
                part = Fraction(there * world["queues"][name].weight, weights)
                got[name][what] = max(min(part, most[name]), own[name][what])
            self._pour(world, there, {name: got[name] for name in busy}, what, most)
        return {name: got[name] if name in busy else own[name] for name in world["queues"]}

    def _pour(self, world, there, got, what, most):
        """Raise the level for all who want more until nothing is left: from one who has enough to the next."""
        weight = {name: world["queues"][name].weight for name in got}
        while True:
            left = there - sum(got[name][what] for name in got)
            wants = [name for name in got if got[name][what] < most[name]]
            if left <= 0 or not wants:
                return
            step = min((most[name] - got[name][what]) / weight[name] for name in wants)
            step = min(step, Fraction(left) / sum(weight[name] for name in wants))
            for name in wants:
                got[name][what] += step * weight[name]

    def line(self, world, name):
        return {what: int(amount) for what, amount in self.deserved(world)[name].items()}

    def queue_order(self, world, name):
        return (-world["queues"][name].priority, r.share(r.used(world, {name}), self.line(world, name)))

    def enqueueable(self, world, gang):
        name = world["gangs"][gang].queue
        need, unknown = r.asked(world, gang)
        held = r.less(r.used(world, {name}), r.elastic(world, {name}))
        fits = r.fits(need, self.real(world, name), held, r.promised(world, {name}))
        return 1 if queue_open(world, name) and fits and not unknown else -1

    def quota_left(self, world, gang):
        name = world["gangs"][gang].queue
        return r.fits(r.asked(world, gang)[0], self.line(world, name), r.used(world, {name}))

    def overused(self, world, name):
        bound = [t for t in world["tasks"].values() if t["queue"] == name and t["status"] in CHARGED]
        held = r.of_tasks(world, bound)
        return all(most <= held[what] for what, most in self.line(world, name).items())

    def allowed(self, world, task, card):
        name = task["queue"]
        return queue_open(world, name) and r.fits(r.of_task(world, task), self.line(world, name), r.used(world, {name}))

    preemptive = allowed

    def reclaimable(self, world, task, candidates):
        wants, left, allowed = r.of_task(world, task), {}, set()
        for other in candidates:
            name, gives = other["queue"], r.of_task(world, other)
            held = left.setdefault(name, r.used(world, {name}))
            line = self.line(world, name)
            if any(wants[what] > 0 and gives[what] > 0 and held[what] > line[what] for what in wants):
                left[name] = r.less(held, gives)
                allowed.add(other["key"])
        return allowed

    def unified_evictable(self, world, task, candidates):
        """Inside the queue everybody, elsewhere as for reclaim."""
        if all(other["queue"] == task["queue"] for other in candidates):
            return {other["key"] for other in candidates}
        return self.reclaimable(world, task, candidates)
