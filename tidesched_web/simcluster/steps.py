import msgspec

from scheduler_core.model.node import Node
from scheduler_core.model.podgroup import GangCondition, GangPhase
from scheduler_core.model.queue import PriorityClass
from scheduler_core.simulator.scenario import Scenario
from scheduler_core.simulator.workload import Workload
from scheduler_core.simulator.world import World


class _Step(msgspec.Struct, tag_field="op"):
    """A step."""


class Advance(_Step, tag="advance"):
    until: float

    def run(self, world: World, _scenario: Scenario | None) -> None:
        world.advance(self.until)


class Act(_Step, tag="act"):
    """The users of the cluster do what is due."""

    def run(self, world: World, scenario: Scenario | None) -> None:
        if scenario is not None:
            scenario.act(world)


class Bind(_Step, tag="bind"):
    pod: str
    node: str
    card: str
    card_indices: tuple[int, ...]

    def run(self, world: World, _scenario: Scenario | None) -> None:
        world.bind(self.pod, self.node, self.card, self.card_indices)


class Evict(_Step, tag="evict"):
    pod: str

    def run(self, world: World, _scenario: Scenario | None) -> None:
        world.evict(self.pod)


class SetGroupStatus(_Step, tag="group"):
    group: str
    phase: GangPhase
    conditions: tuple[GangCondition, ...]

    def run(self, world: World, _scenario: Scenario | None) -> None:
        world.set_group_status(self.group, self.phase, self.conditions)


class Submit(_Step, tag="submit"):
    workload: Workload

    def run(self, world: World, _scenario: Scenario | None) -> None:
        world.submit(self.workload)


class Scale(_Step, tag="scale"):
    namespace: str
    name: str
    replicas: int

    def run(self, world: World, _scenario: Scenario | None) -> None:
        world.scale(self.namespace, self.name, self.replicas)


class DeleteWorkload(_Step, tag="delete"):
    namespace: str
    name: str

    def run(self, world: World, _scenario: Scenario | None) -> None:
        world.delete_workload(self.namespace, self.name)


class PutNode(_Step, tag="node"):
    node: Node

    def run(self, world: World, _scenario: Scenario | None) -> None:
        world.upsert_node(self.node)


class Cordon(_Step, tag="cordon"):
    node: str
    unschedulable: bool

    def run(self, world: World, _scenario: Scenario | None) -> None:
        world.upsert_node(msgspec.structs.replace(world.nodes[self.node], unschedulable=self.unschedulable))


class RemoveNode(_Step, tag="remove_node"):
    node: str

    def run(self, world: World, _scenario: Scenario | None) -> None:
        world.remove_node(self.node)


class PutPriorityClass(_Step, tag="priority_class"):
    name: str
    value: int

    def run(self, world: World, _scenario: Scenario | None) -> None:
        world.upsert_priority_class(PriorityClass(name=self.name, value=self.value))


Step = (
    Advance
    | Act
    | Bind
    | Evict
    | SetGroupStatus
    | Submit
    | Scale
    | DeleteWorkload
    | PutNode
    | Cordon
    | RemoveNode
    | PutPriorityClass
)
_DECODER = msgspec.json.Decoder(Step)


class BadStep(ValueError):
    """A step that could not be read back from the data file, so it must not be done."""


def write_step(step: Step) -> str:
    return msgspec.json.encode(step).decode()


def read_step(text: str) -> Step:
    try:
        return _DECODER.decode(text)
    except msgspec.ValidationError as error:
        raise BadStep(str(error)) from None
