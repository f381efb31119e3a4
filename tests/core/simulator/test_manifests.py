"""The objects of the simulated cluster read back to the same model values."""

import msgspec
import pytest

from scheduler_core.model.podgroup import GangCondition, GangPhase
from scheduler_core.serde.kubernetes import SnapshotBuilder
from scheduler_core.simulator.demo import DemoScenario, demo_world
from scheduler_core.simulator.errors import WorldError
from scheduler_core.simulator.manifests import manifest_of, to_kubernetes
from scheduler_core.simulator.scenario import advance
from scheduler_core.simulator.snapshot import SnapshotView


@pytest.fixture(scope="module")
def lived():
    """The demo's cluster after a while: some run, some wait, one is leaving."""
    world = demo_world(seed=3)
    view = SnapshotView(world)
    scenario = DemoScenario(world, seed=3)
    for _ in range(6):
        advance(world, scenario, world.t + 300)
        for key, group in list(world.pod_groups.items()):
            if group.phase is GangPhase.PENDING:
                condition = GangCondition(type="Unschedulable", reason="NotEnoughResources", message="waits")
                world.set_group_status(key, GangPhase.INQUEUE, (condition,))
        for key, pod in list(world.pods.items()):
            if not pod.node and pod.card is not None and pod.card.names:
                for node in world.nodes.values():
                    try:
                        world.bind(key, node.name)
                    except WorldError:
                        continue
                    break
    world.evict(next(key for key, pod in sorted(world.pods.items()) if pod.node))
    return world, view.take()


def objects(world):
    kinds = {
        "Node": world.nodes, "Queue": world.queues, "PriorityClass": world.priority_classes, "Pod": world.pods,
        "PodGroup": world.pod_groups,
    }  # fmt: skip
    for kind, store in kinds.items():
        for key in sorted(store):
            yield to_kubernetes(world, kind, key)
    for key, state in sorted(world.workloads.items()):
        kind = state.workload.owner_kind.value
        yield to_kubernetes(world, kind, key)
        if kind == "ReplicaSet":
            yield to_kubernetes(world, "Deployment", key)


@pytest.fixture(scope="module")
def read_back(lived):
    builder = SnapshotBuilder()
    for obj in objects(lived[0]):
        # Through JSON, as a client would get it.
        builder.upsert(msgspec.json.decode(msgspec.json.encode(obj)))
    return builder.build()


@pytest.mark.parametrize("part", ["nodes", "card_types", "priority_classes", "queues", "pods", "pod_groups"])
def test_every_object_reads_back_to_the_same_values(lived, read_back, part):
    ours, theirs = getattr(lived[1], part), getattr(read_back, part)
    if part == "queues":
        # The annotations are where the quota comes from; the world keeps the quota itself.
        ours, theirs = (
            tuple(msgspec.structs.replace(q, annotations={}) for q in side if not q.made) for side in (ours, theirs)
        )
    if part == "pod_groups":
        # The pods that a Job is still to have are read from its templates; the world makes them by itself.
        theirs = tuple(msgspec.structs.replace(group, to_come=()) for group in theirs)
    if part == "priority_classes":
        # Kubernetes has two of its own.
        theirs = tuple(item for item in theirs if not item.name.startswith("system-"))
    assert ours == theirs


def test_the_demo_has_cards_of_every_kind(read_back):
    assert {card.kind.value for card in read_back.card_types} == {"whole", "mig", "mps"}
    assert any(pod.card is not None and pod.card.is_share for pod in read_back.pods)


def test_an_object_that_is_gone_can_still_be_shown(lived):
    world, _ = lived
    heard = []
    world.subscribe(heard.append)
    namespace, name = next(key for key, state in world.workloads.items() if state.pods).split("/")
    world.delete_workload(namespace, name)
    deleted = [change for change in heard if change.verb == "delete"]
    assert deleted
    for change in deleted:
        assert manifest_of(change.kind, change.value, world)["metadata"]["name"]


def test_unknown_kinds_and_names_are_refused(lived):
    for kind, key in (("Secret", "a/b"), ("Pod", "a/b"), ("Job", "atlas-ads/ctr-model")):
        with pytest.raises(WorldError):
            to_kubernetes(lived[0], kind, key)
