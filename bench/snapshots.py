"""Snapshots of a given size, made from the engine's own values: eight resources of which five are card types."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from scheduler_core.model.cards import CardRequest, CardType, NodeCards
from scheduler_core.model.node import Node
from scheduler_core.model.pod import OwnerReference, Pod
from scheduler_core.model.podgroup import PodGroup
from scheduler_core.model.queue import Queue
from scheduler_core.model.snapshot import Snapshot

CARDS = ("NVIDIA-A100", "NVIDIA-H200", "NVIDIA-H800", "NVIDIA-L40S", "NVIDIA-T4")
RESOURCE = "nvidia.com/gpu"
QUEUES = 20
GANG = 8
CLASSES = 50
CARDS_A_NODE = 8
MILLI = 1000
BORN = 1_767_225_600.0
SCHEDULER = "volcano"
# Cards of one task by class: three quarters of all cards when there are ten tasks for each node.
_CARDS_OF_A_TASK = (0, 1, 0, 2, 0)


class Size(NamedTuple):
    """How many nodes and tasks."""

    name: str
    nodes: int
    tasks: int


SIZES = {
    size.name: size
    for size in (Size("S", 100, 1_000), Size("M", 1_000, 10_000), Size("L", 5_000, 50_000), Size("XL", 10_000, 100_000))
}


@cache
def waiting(size: Size, classes: int = CLASSES) -> Snapshot:
    """An empty cluster and tasks of ``classes`` kinds that wait for it; all of them have room."""
    return snapshot_of(nodes(size), queues(size), [gang(number, classes) for number in range(size.tasks // GANG)])


def snapshot_of(
    nodes: tuple[Node, ...], queues: tuple[Queue, ...], gangs: list[tuple[PodGroup, tuple[Pod, ...]]]
) -> Snapshot:
    """A snapshot of parts that come in the order of their names."""
    return Snapshot(
        nodes=nodes,
        queues=queues,
        pod_groups=tuple(group for group, _ in gangs),
        pods=tuple(pod for _, pods in gangs for pod in pods),
        card_types=tuple(CardType(name=card, resource=RESOURCE) for card in CARDS),
        latest=BORN,
    )


def nodes(size: Size) -> tuple[Node, ...]:
    """Nodes of eight cards, a fifth of them of each type."""
    return tuple(node(number) for number in range(size.nodes))


def node(number: int) -> Node:
    """One of them."""
    card = CARDS[number % len(CARDS)]
    return Node(
        name=f"node-{number:05}",
        created=BORN,
        labels={"kubernetes.io/hostname": f"node-{number:05}", "nvidia.com/gpu.product": card},
        cpu_milli=256_000,
        memory_mib=2 * 1024 * 1024,
        pods=250,
        cards=(NodeCards(card, RESOURCE, CARDS_A_NODE),),
    )


def queues(size: Size) -> tuple[Queue, ...]:
    """Queues that share all cards evenly."""
    quota = size.nodes * CARDS_A_NODE // len(CARDS) // QUEUES * MILLI
    return tuple(
        Queue(name=f"queue-{number:02}", created=BORN, priority=number % 4, card_quota=dict.fromkeys(CARDS, quota))
        for number in range(QUEUES)
    )


def gang(number: int, classes: int = CLASSES, name: str = "gang") -> tuple[PodGroup, tuple[Pod, ...]]:
    """A gang of eight equal tasks that wait; each queue gets gangs of each class."""
    kind = number // QUEUES % classes
    cards = _CARDS_OF_A_TASK[kind // len(CARDS) % len(_CARDS_OF_A_TASK)]
    key, born = f"{name}-{number:06}", BORN + number // 7
    group = PodGroup(
        namespace="bench",
        name=key,
        created=born,
        queue=f"queue-{number % QUEUES:02}",
        min_member=GANG,
        owner_kind="Job",
        owner_name=key,
    )
    card = CARDS[kind % len(CARDS)]
    notes = {"scheduling.k8s.io/group-name": key}
    if cards:
        notes["volcano.sh/card.name"] = card
    pods = tuple(
        Pod(
            namespace="bench",
            name=f"{key}-worker-{member}",
            created=born,
            scheduler=SCHEDULER,
            group=key,
            annotations=notes,
            cpu_milli=4_000 + kind * 20,
            memory_mib=8_192 + kind * 16,
            card=CardRequest((card,), RESOURCE, cards * MILLI) if cards else None,
            owner=OwnerReference("Job", key),
            images=("registry.example/trainer:1",),
        )
        for member in range(GANG)
    )
    return group, pods
