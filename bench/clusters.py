"""Clusters of a given size as an API server would list them: five card types, twenty queues, gangs of eight."""

from typing import Any, NamedTuple

CARDS = ("NVIDIA-H200", "NVIDIA-H800", "NVIDIA-A100", "NVIDIA-L40S", "NVIDIA-T4")
QUEUES = 20
GANG = 8
CLASSES = 50
CARDS_A_NODE = 8
BORN = "2026-01-01T00:00:00Z"

Object = dict[str, Any]


class Size(NamedTuple):
    """How many nodes and tasks."""

    name: str
    nodes: int
    tasks: int


SIZES = {size.name: size for size in (Size("S", 100, 1_000), Size("M", 1_000, 10_000))}


def objects(size: Size) -> list[Object]:
    """Return nodes, queues, gangs and their waiting pods, which ask for no more than half of the cards."""
    nodes = [_node(number) for number in range(size.nodes)]
    quota = "{" + ", ".join(f'"{card}": {size.nodes * CARDS_A_NODE}' for card in CARDS) + "}"
    queues = [_queue(number, quota) for number in range(QUEUES)]
    gangs = range(size.tasks // GANG)
    groups = [_group(gang) for gang in gangs]
    pods = [_pod(gang, member, size) for gang in gangs for member in range(GANG)]
    return [*nodes, *queues, *groups, *pods]


def _node(number: int) -> Object:
    labels = {"kubernetes.io/hostname": f"node-{number:05}", "nvidia.com/gpu.product": CARDS[number % len(CARDS)]}
    capacity = {"cpu": "256", "memory": "2Ti", "pods": "250", "nvidia.com/gpu": str(CARDS_A_NODE)}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": f"node-{number:05}", "labels": labels, "creationTimestamp": BORN},
        "spec": {},
        "status": {"allocatable": capacity},
    }


def _queue(number: int, quota: str) -> Object:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {
            "name": f"queue-{number:02}",
            "annotations": {"volcano.sh/card.quota": quota},
            "creationTimestamp": BORN,
        },
        "spec": {"weight": 1, "priority": number, "reclaimable": True},
        "status": {"state": "Open"},
    }


def _group(gang: int) -> Object:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"namespace": "bench", "name": f"gang-{gang:05}", "creationTimestamp": BORN},
        "spec": {"minMember": GANG, "queue": f"queue-{gang % QUEUES:02}"},
        "status": {"phase": "Pending"},
    }


def _pod(gang: int, member: int, size: Size) -> Object:
    kind = gang % CLASSES
    # One task in so many takes a card: with one node in five of each type, half of all cards are asked for at most.
    wants_card = size.tasks <= size.nodes * CARDS_A_NODE // 2 or gang % 3 == 0
    limits = {"cpu": f"{500 + kind * 10}m", "memory": f"{1024 + kind * 16}Mi"}
    notes = {"scheduling.k8s.io/group-name": f"gang-{gang:05}"}
    if wants_card:
        limits["nvidia.com/gpu"] = "1"
        notes["volcano.sh/card.name"] = CARDS[kind % len(CARDS)]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "namespace": "bench",
            "name": f"gang-{gang:05}-{member}",
            "annotations": notes,
            "creationTimestamp": BORN,
        },
        "spec": {
            "schedulerName": "volcano",
            "containers": [{"name": "main", "resources": {"requests": limits, "limits": limits}}],
        },
        "status": {"phase": "Pending"},
    }
