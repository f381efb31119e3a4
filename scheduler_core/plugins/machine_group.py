"""Plugin ``machine-group``: private machines take the pods of their group and no others.

Extension point: predicate. Node and pod label ``tidesched.io/machine-group``: a pod with the label lands on nodes with
the same value only, a pod without it only on nodes without it.
Source: document 001 (machine groups), contracts 4: a filter instead of anti-affinities that a webhook would have to
write into every other pod."""

from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from scheduler_core.framework.plugin import Plugin
from scheduler_core.framework.session import Session
from scheduler_core.model.node_refusal import NodeRefusal
from scheduler_core.state.status import Bools
from scheduler_core.state.task_class import TaskClass

GROUP = "tidesched.io/machine-group"


class MachineGroup(Plugin):
    name: ClassVar[str] = "machine-group"

    def open(self, session: Session) -> None:
        super().open(session)
        groups = [node.labels.get(GROUP, "") for node in session.snapshot.nodes]
        self._numbers = {group: number for number, group in enumerate(sorted(set(groups)))}
        self._of_node = np.array([self._numbers[group] for group in groups], dtype=np.int64)

    def predicate(self, cls: TaskClass) -> Iterator[tuple[str, Bools]]:
        number = self._numbers.get(cls.marks.get(GROUP, ""), -1)
        yield NodeRefusal.MACHINE_GROUP, self._of_node == number
