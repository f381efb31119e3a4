"""task-topology: which tasks of a gang want to be on one node, in plain loops."""

from __future__ import annotations

from tests.reference.resources import thousandths
from tests.reference.world import HOLDING, free, free_cards, members

KEY = "volcano.sh/task-topology-"
STAYS = tuple(status for status in HOLDING if status != "releasing")


def sets(text):
    """``a,b;c`` to lists of roles."""
    found = [[role.strip() for role in part.split(",") if role.strip()] for part in text.split(";")]
    return [roles for roles in found if roles]


class TaskTopology:
    """Buckets as they were when the session began, the order of tasks, the score of nodes."""

    def __init__(self, arguments):
        self.weight = arguments.get("task-topology.weight", 1)
        self.known = {}

    def _buckets(self, world, gang):
        if gang not in self.known:
            notes = world["gangs"][gang].annotations
            near, apart = sets(notes.get(KEY + "affinity", "")), sets(notes.get(KEY + "anti-affinity", ""))
            order = (sets(notes.get(KEY + "task-order", "")) or [[]])[0]
            said = any(KEY + kind in notes for kind in ("affinity", "anti-affinity", "task-order"))
            self.known[gang] = (self._fill(world, gang, near, apart, order), near, apart, order) if said else None
        return self.known[gang]

    def _fill(self, world, gang, near, apart, order):
        tasks = [
            t
            for t in world["tasks"].values()
            if t["gang"] == gang and (t["status"] == "pending" or (t["status"] in STAYS and t["node"]))
        ]
        wanting = [t for t in tasks if dearest(t["pod"].role, near, apart)]
        wanting.sort(
            key=lambda t: (
                t["node"] is None,
                t["node"] or "",
                -place(t["pod"].role, order),
                -dearest(t["pod"].role, near, apart),
                t["key"],
            )
        )
        buckets, by_node = [], {}
        for task in wanting:
            if task["node"] is not None:
                bucket = by_node.get(task["node"])
            else:
                bucket, best = None, 0
                for candidate in buckets:
                    pull = sum(likes(task, mate, near, apart) for mate in candidate["tasks"])
                    better = bucket is None or pull > best or (pull == best and candidate["size"] < bucket["size"])
                    if pull >= 0 and better:
                        bucket, best = candidate, pull
            if bucket is None:
                bucket = {"tasks": [], "size": 0, "waiting": 0}
                buckets.append(bucket)
                if task["node"] is not None:
                    by_node[task["node"]] = bucket
            bucket["tasks"].append(task)
            if task["node"] is None:
                others = {what: much for what, much in task["need"].items() if what not in ("cpu", "memory", "pods")}
                scalars = sum(thousandths(what) * much for what, much in others.items())
                bucket["size"] += task["need"]["cpu"] + task["need"]["memory"] + task["milli"] + scalars
                bucket["waiting"] += 1
        return buckets

    def task_order(self, world, task):
        known = self._buckets(world, task["gang"]) if task["gang"] else None
        if known is None:
            return (0, 0, 0, 0, 0)
        buckets, near, apart, order = known
        for number, bucket in enumerate(buckets):
            if any(mate is task for mate in bucket["tasks"]):
                role = task["pod"].role
                return (0, -bucket["waiting"], number, -place(role, order), -dearest(role, near, apart))
        return (1, 0, 0, 0, 0)

    def well_written(self, world, gang):
        notes = world["gangs"][gang].annotations
        kinds = ("affinity", "anti-affinity", "task-order")
        return all(len(roles) == len(set(roles)) for kind in kinds for roles in sets(notes.get(KEY + kind, "")))

    def score(self, world, task, name):
        known = self._buckets(world, task["gang"]) if task["gang"] else None
        if known is None:
            return 0.0
        buckets, _, apart, _ = known
        bucket = next((b for b in buckets if any(mate is task for mate in b["tasks"])), None)
        if bucket is None:
            return 0.0
        total = sum(1 for t in bucket["tasks"] if t["node"] == name and t["status"] not in ("pending", "releasing"))
        for other in members(world, task["gang"], *STAYS, "pipelined"):
            if other["node"] == name and apart_from(task["pod"].role, other["pod"].role, apart):
                total -= 1
        together = [task] + [t for t in bucket["tasks"] if t["status"] == "pending" and t is not task]
        fitting = 1
        for count in range(1, len(together) + 1):
            if fits(world, together[:count], name):
                fitting = count
        largest = max(len(b["tasks"]) for b in buckets)
        return float(total + fitting) * float(self.weight) * 100.0 / largest


def fits(world, tasks, name):
    """All of them at once, once what leaves has left."""
    node = world["nodes"][name]
    for what in {what for task in tasks for what, much in task["need"].items() if much}:
        if free(world, name, what, future=True) < sum(task["need"].get(what, 0) for task in tasks):
            return False
    wanted = {}
    for task in tasks:
        if task["milli"]:
            choices = tuple(sorted(task["choices"]))
            wanted[choices] = wanted.get(choices, 0) + task["milli"]
    for choices, milli in wanted.items():
        left = 0
        for cards in node.cards:
            if cards.card in choices:
                left += sum(max(0, part) for part in free_cards(world, name, cards.card, future=True))
        if left < milli:
            return False
    return True


def place(role, order):
    """Higher for roles that are named earlier."""
    return len(order) - order.index(role) if role in order else 0


def dearest(role, near, apart):
    """Worth of the role's dearest wish, 0 = it has none."""
    worth = [2 if len(roles) == 1 else 3 for roles in near if role in roles]
    worth += [4 if len(roles) == 1 else 1 for roles in apart if role in roles]
    return max(worth, default=0)


def meant(role, other, groups):
    """One of the sets speaks of the two roles."""
    return any(role in roles and other in roles and (role != other or len(roles) == 1) for roles in groups)


def apart_from(role, other, apart):
    """They want to be apart."""
    return meant(role, other, apart)


def likes(task, mate, near, apart):
    """1 for together, -1 for apart, 0 for neither or both."""
    role, other = task["pod"].role, mate["pod"].role
    return int(meant(role, other, near)) - int(meant(role, other, apart))
