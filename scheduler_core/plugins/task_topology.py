"""Plugin ``task-topology``: tasks of a gang that want to be on one node, or rather not.

Extension points: task_order (tasks in a bucket first, bigger buckets first, earlier buckets first, then the order and
the wishes of the roles), task_node_order. The PodGroup says which roles: ``volcano.sh/task-topology-affinity``
"ps,worker;evaluator" (sets of roles; a single role speaks of its own tasks), ``-anti-affinity`` likewise,
``volcano.sh/task-topology-task-order`` "ps,worker". A task's role is its annotation, else its label
``volcano.sh/task-spec``.
Score of a node = (bucket mates there - tasks there that the role wants to be away from + tasks of the bucket, this one
included, that still fit there together) x weight x 100 / size of the largest bucket.
Source: volcano-semantics 4.12.
Departures on purpose: tasks in place before the session are neighbours to keep away from too; a role that the gang does
not have is passed over instead of the whole annotation, and one named twice in a set is a fault of the PodGroup
(``compatibility: volcano``: those placed in the session alone; both void the annotations). In both modes mates that are
left out so that a bucket fits go in the order of the bucket, the last first: Volcano draws them."""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from scheduler_core.algorithms.buckets import Bucket, Member, Wishes, attraction, fill, wishes
from scheduler_core.framework.forms import Form, StaticKey, Suspects
from scheduler_core.framework.plugin import Argument, Plugin, number
from scheduler_core.framework.session import Session
from scheduler_core.model.resources import thousandths
from scheduler_core.state.status import ALLOCATED, HOLDS, PENDING, PIPELINED, RELEASING, Bools, Floats, Ints

NEAR = "volcano.sh/task-topology-affinity"
APART = "volcano.sh/task-topology-anti-affinity"
ORDER = "volcano.sh/task-topology-task-order"
MAX_SCORE = 100.0

_KEYS = 5

Sets = list[list[str]]


class Topology:
    """What one gang wants, and its buckets as they were when the session began."""

    def __init__(self, wanted: Wishes, buckets: list[Bucket]) -> None:
        self.wanted, self.buckets = wanted, buckets
        self.of_task = {one.task: i for i, bucket in enumerate(buckets) for one in bucket.members}
        self.waiting = [sum(1 for one in bucket.members if one.node < 0) for bucket in buckets]
        self.largest = max((len(bucket.members) for bucket in buckets), default=0)


class TaskTopology(Plugin):
    name: ClassVar[str] = "task-topology"
    arguments: ClassVar[tuple[Argument, ...]] = (
        number(
            "task-topology.weight", 1, (0, 1_000_000), "weight of the score for nodes with room for a task's bucket"
        ),
    )

    def open(self, session: Session) -> None:
        """Buckets are made when a gang is first asked for."""
        super().open(session)
        self._known: dict[int, Topology | None] = {}

    def job_problem(self, gang: int) -> str | None:
        notes = self.session.group(gang).annotations
        for key in () if self.session.compat else (NEAR, APART, ORDER):
            for roles in _sets(notes.get(key, "")):
                twice = [role for i, role in enumerate(roles) if role in roles[:i]]
                if twice:
                    return f"annotation {key} names {twice[0]} twice"
        return None

    def task_order(self, task: int) -> tuple[int, ...]:
        """Ascending: in a bucket, size of the bucket, its number, place of the role, its dearest wish."""
        topology = self._of(int(self.session.tasks.gang[task]))
        if topology is None:
            return (0, 0, 0, 0, 0)
        bucket = topology.of_task.get(task)
        if bucket is None:
            return (1, 0, 0, 0, 0)
        role, wanted = self.session.tasks.pod(task).role, topology.wanted
        return (0, -topology.waiting[bucket], bucket, -wanted.order.get(role, 0), -wanted.rank.get(role, 0))

    def compiled_form(self, point: str) -> Sequence[Form] | None:
        """Gangs without the annotations have nothing to say; the others are asked about one by one."""
        wishing = [
            gang
            for gang, group in enumerate(self.session.gangs.groups)
            if any(key in group.annotations for key in (NEAR, APART, ORDER))
        ]
        if point in ("task_node_order", "job_problem"):
            suspects: Bools = np.zeros(len(self.session.gangs), dtype=np.bool_)
            suspects[wishing] = True
            return [Suspects(suspects)]
        if point == "task_order":
            tasks = [task for gang in wishing for task in self.session.gangs.members(gang)]
            keys: Ints = np.zeros((_KEYS, len(self.session.tasks.status)), dtype=np.int64)
            for task in tasks:
                keys[:, task] = self.task_order(task)
            return [StaticKey(key) for key in keys] if tasks else []
        return None

    def task_node_order(self, task: int) -> Floats | None:
        """Nodes where the task's bucket is, or has room to be."""
        topology = self._of(int(self.session.tasks.gang[task]))
        number = topology.of_task.get(task) if topology is not None else None
        if topology is None or number is None:
            return None
        session = self.session
        tasks = session.tasks
        bucket = topology.buckets[number]
        score: Ints = np.zeros(len(session.nodes), dtype=np.int64)
        others = []
        for member in bucket.members:
            status = int(tasks.status[member.task])
            if status == PENDING:
                if member.task != task:
                    others.append(member.task)
            elif tasks.node[member.task] >= 0 and status != RELEASING:
                score[tasks.node[member.task]] += 1
        score += self._repulsion(topology, task)
        score += self._together(task, others)
        weight = float(self.values["task-topology.weight"])
        result: Floats = score.astype(np.float64) * weight * MAX_SCORE / topology.largest
        return result

    def _repulsion(self, topology: Topology, task: int) -> Ints:
        """Tasks of the gang on each node that the role wants to be away from, negative."""
        tasks = self.session.tasks
        there: dict[int, dict[str, int]] = {}
        for other in self.session.gangs.members(int(tasks.gang[task])):
            node, status = int(tasks.node[other]), int(tasks.status[other])
            if node >= 0 and self._counts_as_neighbour(status):
                roles = there.setdefault(node, {})
                role = tasks.pod(other).role
                roles[role] = roles.get(role, 0) + 1
        found: Ints = np.zeros(len(self.session.nodes), dtype=np.int64)
        own = tasks.pod(task).role
        for node, roles in there.items():
            found[node] = attraction(topology.wanted, own, roles, only_apart=True)
        return found

    def _counts_as_neighbour(self, status: int) -> bool:
        """The task that has a place; upstream: the one that got it in this session."""
        if self.session.compat:
            return status in (PIPELINED, ALLOCATED)
        return status == PIPELINED or bool(HOLDS[status] and status != RELEASING)

    def _together(self, task: int, others: list[int]) -> Ints:
        """How many of the bucket's waiting tasks, the task itself included, fit on each node together."""
        session = self.session
        nodes, cards = session.nodes, session.cards
        classes = [session.cluster.class_of(one) for one in (task, *others)]
        request: Ints = np.zeros(nodes.future.shape[0], dtype=np.int64)
        milli: dict[tuple[int, ...], int] = {}
        found: Ints = np.ones(len(nodes), dtype=np.int64)
        for count, cls in enumerate(classes, start=1):
            request = request + cls.request
            if cls.milli:
                milli[cls.cards] = milli.get(cls.cards, 0) + cls.milli
            rows = np.flatnonzero(request)
            fits: Bools = np.logical_and.reduce(nodes.future[rows] >= request[rows, None])
            for options, amount in milli.items():
                fits &= cards.left_future[list(options)].sum(axis=0) >= amount
            found = np.where(fits, count, found)
        return found

    def _of(self, gang: int) -> Topology | None:
        if gang not in self._known:
            self._known[gang] = self._read(gang) if gang >= 0 else None
        return self._known[gang]

    def _read(self, gang: int) -> Topology | None:
        notes, tasks = self.session.group(gang).annotations, self.session.tasks
        if not any(key in notes for key in (NEAR, APART, ORDER)):
            return None
        if self.session.compat and self._upstream_passes_over(gang):
            return None
        order = _sets(notes.get(ORDER, ""))
        wanted = wishes(_sets(notes.get(NEAR, "")), _sets(notes.get(APART, "")), order[0] if order else [])
        members = []
        for task in self.session.gangs.members(gang):
            status, node = int(tasks.status[task]), int(tasks.node[task])
            if status == PENDING or (HOLDS[status] and status != RELEASING and node >= 0):
                members.append(Member(task, tasks.pod(task).role, node, self._size(task), tasks.keys[task]))
        return Topology(wanted, fill(wanted, members))

    def _upstream_passes_over(self, gang: int) -> bool:
        """A role that no member has, or that is twice in a set, voids all annotations."""
        notes = self.session.group(gang).annotations
        there = {self.session.tasks.pod(task).role for task in self.session.gangs.members(gang)}
        groups = [roles for key in (NEAR, APART, ORDER) for roles in _sets(notes.get(key, ""))]
        return any(len(set(roles)) < len(roles) or not there.issuperset(roles) for roles in groups)

    def _size(self, task: int) -> int:
        """One number for a request: a milli-core, a MiB and a thousandth of a card weigh the same."""
        cls = self.session.cluster.class_of(task)
        others = sum(count * thousandths(name) for name, count in cls.scalars.items())
        return cls.cpu_milli + cls.memory_mib + cls.milli + others


def _sets(text: str) -> Sets:
    """``a,b;c`` to its sets of names; empty ones are left out."""
    sets = [[role.strip() for role in part.split(",") if role.strip()] for part in text.split(";")]
    return [roles for roles in sets if roles]
