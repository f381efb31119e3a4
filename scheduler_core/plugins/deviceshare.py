"""Plugin ``deviceshare``: single cards and shares of cards as Volcano's own device plugins count them.

Extension points: predicate, node_order, bind_notes. One of three kinds, by argument: shares by memory
(``volcano.sh/gpu-memory``: one card with so much left), whole cards (``volcano.sh/gpu-number``: so many idle ones),
virtual cards (``volcano.sh/vgpu-number`` cards with ``vgpu-memory`` or ``vgpu-memory-percentage`` and ``vgpu-cores``
percent of the cores on each). A node's cards are ``gpu-number`` with ``gpu-memory`` between them, or those of its
annotation ``volcano.sh/node-vgpu-register``; what pods hold is in ``volcano.sh/gpu-index`` and
``volcano.sh/vgpu-ids-new``, which are noted on the binds too.
Score by ``SchedulePolicy``, 0 to 100 x ``ScheduleWeight``: binpack = share of memory in use on the chosen cards,
spread = 100 where they are idle.
Source: volcano-semantics 4.12.
Departures on purpose: the cards are chosen by the policy too (fullest or emptiest first; without one the first); the
score is the mean over the cards (``compatibility: volcano``: the last cards, and the sum); a pod's containers count as
one. Shares of cards that a card quota counts are written
with ``tidesched.io/card-milli`` instead and need no plugin."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from scheduler_core.algorithms.devices import GPU_INDEX, VGPU_ASSIGNED, DeviceTable, Holding, Wish, assigned, wish_of
from scheduler_core.framework.extension_points import Where
from scheduler_core.framework.forms import Form, Term
from scheduler_core.framework.kernels.terms import STATIC
from scheduler_core.framework.plugin import Argument, Plugin, number, switch
from scheduler_core.framework.session import Session
from scheduler_core.model.node_refusal import NodeRefusal
from scheduler_core.state.status import HOLDS, PIPELINED, RELEASING, Bools, Floats
from scheduler_core.state.task_class import TaskClass

MAX_SCORE = 100.0
_KINDS = ("deviceshare.GPUSharingEnable", "deviceshare.GPUNumberEnable", "deviceshare.VGPUEnable")


class DeviceShare(Plugin):
    name: ClassVar[str] = "deviceshare"
    arguments: ClassVar[tuple[Argument, ...]] = (
        switch(_KINDS[0], False, "pods share a card by volcano.sh/gpu-memory"),
        switch(_KINDS[1], False, "pods take idle cards by volcano.sh/gpu-number"),
        switch(_KINDS[2], False, "pods take virtual cards by volcano.sh/vgpu-…"),
        switch(
            "deviceshare.NodeLockEnable", False,
            "accepted for Volcano's sake; a session is the only one that places, so there is nothing to lock",
        ),
        Argument(
            name="deviceshare.SchedulePolicy", type="str", default="", choices=("", "binpack", "spread"),
            doc="fill cards that are in use (binpack) or use idle ones (spread); empty = neither",
        ),
        number("deviceshare.ScheduleWeight", 0, (0, 1_000_000), "weight of the score by SchedulePolicy"),
    )  # fmt: skip

    @classmethod
    def check(cls, values: Mapping[str, Any]) -> None:
        """One kind at a time: they would count the same cards."""
        on = [kind for kind in _KINDS if values[kind]]
        if len(on) > 1:
            raise ValueError(f"{on[0]} and {on[1]} cannot both be true")

    def open(self, session: Session) -> None:
        """Read the cards; who holds which is found when a class first asks."""
        super().open(session)
        self._policy: str = self.values["deviceshare.SchedulePolicy"]
        self._choice = "last" if session.compat else self._policy
        self._virtual = bool(self.values[_KINDS[2]])
        self._wishes: dict[int, Wish | None] = {}
        self._table: DeviceTable | None = None
        # Node, whether it leaves, and the devices of each pod that is in place or promised a place.
        self._seen = -1
        self._given: dict[int, tuple[int, bool, tuple[Holding, ...]]] = {}

    def volatile(self, cls: TaskClass) -> bool:
        """Cards are taken by placements of this very session."""
        return self._wish(cls.index) is not None

    def predicate(self, cls: TaskClass) -> Iterator[tuple[str, Bools, Bools]]:
        """Nodes with room on single cards."""
        wish = self._wish(cls.index)
        if wish is not None:
            table, count = self._brought_up(), len(self.session.nodes)
            yield NodeRefusal.DEVICES, table.nodes_with_room(wish, 0, count), table.nodes_with_room(wish, 1, count)

    def node_order(self, cls: TaskClass, where: Where) -> Floats:
        """By the policy, for the cards that the pod would get."""
        wish, weight = self._wish(cls.index), self.values["deviceshare.ScheduleWeight"]
        score: Floats = np.zeros(len(self.session.nodes), dtype=np.float64)
        if wish is not None and self._policy and weight:
            table = self._brought_up()
            for node in table.rows_of:
                chosen = table.choose(wish, node, self._choice)
                if chosen:
                    worth = sum(self._worth(table, one) for one in chosen)
                    score[node] = worth if self.session.compat else worth / len(chosen)
        weighted: Floats = score[where] * float(weight)
        return weighted

    def compiled_form(self, point: str) -> Sequence[Form] | None:
        """Nothing for classes that are not volatile."""
        return [Term(STATIC)] if point == "node_order" else None

    def bind_notes(self, task: int) -> dict[str, str]:
        """Which cards, as the agents of the node read it."""
        if self._wish(int(self.session.tasks.cls[task])) is None:
            return {}
        table = self._brought_up()
        holdings = self._given[task][2]
        if not self._virtual:
            return {GPU_INDEX: ",".join(str(table.index[one.row]) for one in holdings)}
        cards = "".join(f"{table.uuid[one.row]},NVIDIA,{one.memory},{one.cores}:" for one in holdings)
        return {VGPU_ASSIGNED: cards, "volcano.sh/vgpu-node": self.session.axes.nodes[self._given[task][0]]}

    def _worth(self, table: DeviceTable, one: Holding) -> float:
        if self._policy == "spread":
            return MAX_SCORE if table.pods[1, one.row] == 0 else 0.0
        memory = int(table.memory[one.row])
        return MAX_SCORE * (int(table.held[1, one.row]) + one.memory) / memory if memory else 0.0

    def _wish(self, cls: int) -> Wish | None:
        if cls not in self._wishes:
            tasks = self.session.tasks
            # All pods of a class ask for the same; one of them speaks for it.
            of_class = np.flatnonzero(tasks.live & (tasks.cls == cls))
            scalars = tasks.pod(int(of_class[0])).scalars if len(of_class) else {}
            sharing, numbers = bool(self.values[_KINDS[0]]), bool(self.values[_KINDS[1]])
            wish = wish_of(scalars, sharing=sharing, numbers=numbers, virtual=self._virtual) if scalars else None
            self._wishes[cls] = wish
        return self._wishes[cls]

    def _brought_up(self) -> DeviceTable:
        """The table with what every pod holds now; who has devices keeps them, newcomers choose in order of names."""
        session, mark = self.session, len(self.session.nodes.log)
        if self._table is None:
            self._table = DeviceTable(session.snapshot.nodes, virtual=self._virtual)
        if self._seen == mark:
            return self._table
        self._seen, table, tasks = mark, self._table, session.tasks
        asks = np.array([self._wish(i) is not None for i in range(len(session.cluster.classes))], dtype=np.bool_)
        here = (HOLDS[tasks.status] | (tasks.status == PIPELINED)) & (tasks.node >= 0)
        at = np.flatnonzero(tasks.live & here & asks[tasks.cls]).tolist()
        now = {task: (int(tasks.node[task]), bool(tasks.status[task] == RELEASING)) for task in at}
        for task, (node, leaving, holdings) in list(self._given.items()):
            if now.get(task) != (node, leaving):
                table.hold(holdings, -1, leaving=leaving)
                del self._given[task]
                # A pod that starts to leave keeps its cards until it is gone.
                if task in now and now[task][0] == node:
                    self._give(table, task, node, now[task][1], holdings)
        for task in sorted(now.keys() - self._given.keys(), key=tasks.keys.__getitem__):
            node, leaving = now[task]
            wish = self._wish(int(tasks.cls[task]))
            assert wish is not None
            said = assigned(table, node, tasks.pod(task).annotations, wish)
            self._give(table, task, node, leaving, said or table.choose(wish, node, self._choice) or ())
        return table

    def _give(self, table: DeviceTable, task: int, node: int, leaving: bool, holdings: tuple[Holding, ...]) -> None:
        table.hold(holdings, 1, leaving=leaving)
        self._given[task] = (node, leaving, holdings)
