"""capacity: ceilings, lines and guarantees, flat or as a tree."""

from __future__ import annotations

from tests.reference import resources as r
from tests.reference.quota import queue_open


def of_the_spec(work_out):
    """What depends on the specs alone is worked out once for a session."""

    def known(self, world, name):
        key = ("capacity", work_out.__name__, name)
        if key not in world:
            world[key] = work_out(self, world, name)
        return world[key]

    return known


def _no_more_than(above, own):
    """What a child names, at most what its parent does; what it does not name is the parent's."""
    return {what: min(own.get(what, most), most) for what, most in above.items()} | {
        what: amount for what, amount in own.items() if what not in above
    }


class Capacity:
    """Queues with a ceiling, a line and a part that stays free."""

    guards = ("reclaimable", "unified_evictable")

    def __init__(self, arguments):
        self.level = arguments.get("ancestorReclaimLevel", 0)

    def tree(self, world):
        """Whether queues form one."""
        return self.switches.get("hierarchy", False)

    def above(self, world, name):
        """The parent, None for the children of the root."""
        parent = world["queues"][name].parent if self.tree(world) else ""
        return parent if parent in world["queues"] and parent != "root" else None

    @of_the_spec
    def path(self, world, name):
        """From the queue up."""
        found = [name]
        while (up := self.above(world, found[-1])) is not None:
            found.append(up)
        return found

    @of_the_spec
    def children(self, world, name):
        return [q for q in world["queues"] if q != "root" and self.above(world, q) == name]

    @of_the_spec
    def below(self, world, name):
        """The queue and all below it."""
        return {q for q in world["queues"] if name in self.path(world, q)}

    @of_the_spec
    def broken(self, world, name):
        """Its place, or that of a queue above it, cannot be."""
        return any(self._wrong(world, q) for q in self.path(world, name))

    def _wrong(self, world, name):
        parent = world["queues"][name].parent
        return self.tree(world) and parent not in ("", "root") and parent not in world["queues"]

    @of_the_spec
    def capability(self, world, name):
        up, own = self.above(world, name), r.capability(world, world["queues"][name])
        return _no_more_than(self.capability(world, up), own) if up else own

    def added_up(self, world, name, field):
        """As written; a parent that says nothing has what its children have together."""
        found = r.written(world, getattr(world["queues"][name], field))
        kids = [self.added_up(world, kid, field) for kid in self.children(world, name)]
        for what in r.names(world):
            if what not in found and any(what in kid for kid in kids):
                found[what] = sum(kid.get(what, 0) for kid in kids)
        return found

    @of_the_spec
    def guarantee(self, world, name):
        return self._as_far_as_the_parent(world, name, "guarantee")

    @of_the_spec
    def named(self, world, name):
        return self._as_far_as_the_parent(world, name, "deserved")

    def _as_far_as_the_parent(self, world, name, field):
        found, up = self.added_up(world, name, field), self.above(world, name)
        most = self._as_far_as_the_parent(world, up, field) if up else {}
        return {what: min(amount, most.get(what, amount)) for what, amount in found.items()}

    @of_the_spec
    def real(self, world, name):
        up = self.above(world, name)
        room = self.real(world, up) if up else self.whole(world)
        beside = [q for q in world["queues"] if self.above(world, q) == up and (q != "root" or not self.tree(world))]
        own, most = self.guarantee(world, name), self.capability(world, name)
        found = {}
        for what, there in room.items():
            free = max(0, there - sum(self.guarantee(world, q).get(what, 0) for q in beside)) + own.get(what, 0)
            found[what] = min(free, most.get(what, free))
        return found

    def whole(self, world):
        """What all queues together may use."""
        total = r.total(world)
        if not self.tree(world) or "root" not in world["queues"]:
            return total
        return {what: min(there, self.of_root(world).get(what, there)) for what, there in total.items()}

    def of_root(self, world):
        """The ceiling that is written on the root."""
        written = self.tree(world) and "root" in world["queues"]
        return r.capability(world, world["queues"]["root"]) if written else {}

    def below_all_ceilings(self, world, name, need):
        """Of the queue, of those above it and of the root; and nothing is lent that others are guaranteed."""
        for q in self.path(world, name):
            if not r.fits(need, self.real(world, q), r.used(world, self.below(world, q))):
                return False
        if self.of_root(world) and not r.fits(need, self.whole(world), r.used(world, set(world["queues"]))):
            return False
        owed = bool({"reclaim", "gangreclaim"} & set(world["actions"])) and self.within_a_line(world, name, need)
        return all(self._lent(world, name, what, amount, owed) for what, amount in need.items() if amount > 0)

    def _lent(self, world, name, what, amount, owed):
        """With so much more, the queue and what is kept for its siblings, and that branch and its siblings, find room;
        or it is within a guarantee on the way up."""
        would, kept_from_it = r.used(world, {name})[what] + amount, False
        for q in self.path(world, name):
            if would <= self.guarantee(world, q).get(what, 0):
                return True
            up = self.above(world, q)
            beside = [o for o in world["queues"] if o != q and self.above(world, o) == up and self._in_tree(world, o)]
            kept_from_it |= any(self.guarantee(world, o).get(what, 0) for o in beside)
            there = self.real(world, up) if up else self.whole(world)
            would += sum(self._kept(world, o, what, owed) for o in beside)
            if kept_from_it and would > there[what]:
                return False
            would += r.used(world, {up})[what] if up else 0
        return True

    def _in_tree(self, world, name):
        return name != "root" or not self.tree(world)

    def _kept(self, world, name, what, owed):
        """In use or guaranteed, whichever is more, of each queue in a branch. ``owed``: nobody has a right to what is
        beyond a line and may be taken back."""
        held = r.used(world, {name})[what]
        if owed and world["queues"][name].reclaimable:
            held = min(held, self.line(world, name).get(what, 0))
        held += sum(self._kept(world, kid, what, owed) for kid in self.children(world, name))
        return max(held, self.guarantee(world, name).get(what, 0))

    @of_the_spec
    def line(self, world, name):
        want, least, most = self.named(world, name), self.guarantee(world, name), self.real(world, name)
        return {
            what: max(min(want.get(what, 0), most[what]), least.get(what, 0))
            for what in r.names(world)
            if what in want or least.get(what, 0)
        }

    def share(self, world, name):
        line = self.line(world, name)
        return r.share(r.used(world, self.below(world, name)), line) if line else 1.0

    def queue_order(self, world, name):
        places = [
            (self.share(world, q), not self.line(world, q), world["queues"][q].created, q)
            for q in reversed(self.path(world, name))
        ]
        return (-world["queues"][name].priority, tuple(places))

    def well_written(self, world, gang):
        name = world["gangs"][gang].queue
        leaf = not self.children(world, name) and (name != "root" or not self.tree(world))
        return leaf and not self.broken(world, name)

    def enqueueable(self, world, gang):
        name = world["gangs"][gang].queue
        need, unknown = r.asked(world, gang)
        if not self.well_written(world, gang) or not self._open(world, name) or unknown:
            return -1
        for q in self.path(world, name):
            below = self.below(world, q)
            held = r.less(r.used(world, below), r.elastic(world, below))
            if not r.fits(need, self.real(world, q), held, r.promised(world, below)):
                return -1
        everywhere = set(world["queues"])
        held = r.less(r.used(world, everywhere), r.elastic(world, everywhere))
        if self.of_root(world) and not r.fits(need, self.whole(world), held, r.promised(world, everywhere)):
            return -1
        return 1

    def quota_left(self, world, gang):
        return self.below_all_ceilings(world, world["gangs"][gang].queue, r.asked(world, gang)[0])

    def _open(self, world, name):
        return all(queue_open(world, q) for q in self.path(world, name))

    def allowed(self, world, task, card):
        name = task["queue"]
        return self._open(world, name) and self.below_all_ceilings(world, name, r.of_task(world, task))

    def preemptive(self, world, task, card):
        name, need = task["queue"], r.of_task(world, task)
        free = self._open(world, name) and self.below_all_ceilings(world, name, need)
        return free and self.within_a_line(world, name, need)

    def within_a_line(self, world, name, need):
        """Of the queue, or of one of the ancestors that may lend theirs."""
        return any(self._within(world, q, need) for q in self.path(world, name)[: self.level + 1])

    def _within(self, world, name, need):
        held = r.used(world, self.below(world, name))
        tests = [held[what] + need[what] <= most for what, most in self.line(world, name).items() if need[what] > 0]
        return bool(tests) and all(tests)

    def reclaimable(self, world, task, candidates):
        if self.broken(world, task["queue"]):
            return set()
        wants, left, allowed = r.of_task(world, task), {}, set()
        shared = self.path(world, task["queue"])
        for other in candidates:
            gives, path = r.of_task(world, other), self.path(world, other["queue"])
            for q in path:
                left.setdefault(q, r.used(world, self.below(world, q)))
            tested = [q for q in path if q not in shared][: self.level + 1] or path[:1]
            common = any(gives[what] > 0 and wants[what] > 0 for what in wants)
            if (
                common
                and not self.broken(world, other["queue"])
                and all(self._lets_go(world, q, left[q], gives, wants) for q in tested)
            ):
                allowed.add(other["key"])
                for q in path:
                    left[q] = r.less(left[q], gives)
        return allowed

    def unified_evictable(self, world, task, candidates):
        """Inside the queue everybody, elsewhere as for reclaim."""
        if all(other["queue"] == task["queue"] for other in candidates):
            return {other["key"] for other in candidates}
        return self.reclaimable(world, task, candidates)

    def _lets_go(self, world, name, held, gives, wants):
        for what, least in self.guarantee(world, name).items():
            if gives[what] > 0 and least > 0 and held[what] - gives[what] < least:
                return False
        line = {what: most for what, most in self.line(world, name).items() if gives[what] > 0}
        if not line:
            return True
        wanted = [what for what in line if wants[what] > 0] or list(line)
        return any(held[what] > line[what] for what in wanted)
