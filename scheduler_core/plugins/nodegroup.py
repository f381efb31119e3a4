"""Plugin ``nodegroup``: which groups of nodes a queue's gangs may use, and which they would rather.

Extension points: task_predicate, task_node_order (a gang's queue is no part of a task class). A node's group is its
label ``volcano.sh/nodegroup-name``; a queue names groups in ``spec.affinity``. A queue's gangs may use the groups that
it requires or prefers and those that it would rather avoid, never those that it denies. A node without a group takes
no gang, unless ``strict`` is off and the gang's queue says nothing about groups. Score: required 100, preferred 50,
avoided -1; with ``enablePreferredOrder`` a preferred group gets 50 x (n - i) / n by its place i among n.
Source: volcano-semantics 4.12.
Departures on purpose: a queue that only denies or avoids groups may use all the others (upstream then refuses every
group that is not named; ``compatibility: volcano`` does so too). The annotation
``volcano.sh/nodegroup-resource-limits`` is not read."""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from scheduler_core.framework.forms import Form, OfQueue
from scheduler_core.framework.plugin import Argument, Plugin, switch
from scheduler_core.framework.session import Session
from scheduler_core.model.node_refusal import NodeRefusal
from scheduler_core.model.queue import NodeGroups
from scheduler_core.state.status import Bools, Floats

GROUP_LABEL = "volcano.sh/nodegroup-name"
REQUIRED, PREFERRED, AVOIDED = 100.0, 50.0, -1.0


class NodeGroup(Plugin):
    name: ClassVar[str] = "nodegroup"
    arguments: ClassVar[tuple[Argument, ...]] = (
        switch(
            "strict", True,
            "nodes without a group take no gang; off = they take gangs of queues that say nothing about groups",
        ),
        switch(
            "enablePreferredOrder", False, "of the groups that a queue prefers, the first is worth more than the next"
        ),
    )  # fmt: skip

    def open(self, session: Session) -> None:
        super().open(session)
        labels = (node.labels.get(GROUP_LABEL, "") for node in session.snapshot.nodes)
        self._groups = list(labels)
        self._known: dict[int, tuple[Bools, Floats]] = {}

    def task_predicate(self, task: int) -> tuple[str, Bools] | None:
        """Nodes of groups that the gang's queue may use."""
        queue = self._queue(task)
        return None if queue < 0 else (NodeRefusal.NODE_GROUP, self._of_queue(queue)[0])

    def task_node_order(self, task: int) -> Floats | None:
        queue = self._queue(task)
        return None if queue < 0 else self._of_queue(queue)[1]

    def compiled_form(self, point: str) -> Sequence[Form] | None:
        if point in ("task_predicate", "task_node_order"):
            which = 0 if point == "task_predicate" else 1
            return [OfQueue(lambda queue: self._of_queue(queue)[which])]
        return None

    def _queue(self, task: int) -> int:
        gang = int(self.session.tasks.gang[task])
        return self.session.queue_of(gang) if gang >= 0 else -1

    def _of_queue(self, queue: int) -> tuple[Bools, Floats]:
        known = self._known.get(queue)
        if known is None:
            named = self.session.ledger.queues[queue].node_groups
            may: dict[str, bool] = {}
            score: dict[str, float] = {}
            for group in dict.fromkeys(self._groups):
                may[group], score[group] = self._may_use(named, group), self._score(named, group)
            known = self._known[queue] = (
                np.array([may[group] for group in self._groups], dtype=np.bool_),
                np.array([score[group] for group in self._groups], dtype=np.float64),
            )
        return known

    def _may_use(self, named: NodeGroups | None, group: str) -> bool:
        if not group:
            return named is None and not self.values["strict"]
        if named is None or group in named.denied:
            return False
        if group in named.avoided or group in named.required or group in named.preferred:
            return True
        return not (named.required or named.preferred or self.session.compat)

    def _score(self, named: NodeGroups | None, group: str) -> float:
        if named is None or not group:
            return 0.0
        if group in named.avoided:
            return AVOIDED
        if group in named.required:
            return REQUIRED
        if group not in named.preferred:
            return 0.0
        if not self.values["enablePreferredOrder"]:
            return PREFERRED
        count = len(named.preferred)
        return PREFERRED * (count - named.preferred.index(group)) / count
