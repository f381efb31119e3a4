"""A3 and A4: full clusters of training, and inference that claims its cards back; decisions are checked each time."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from bench.clock import clock
from bench.clusters import CARDS, CARDS_A_NODE, Object
from scheduler_core import Result, Snapshot, SnapshotBuilder, Workspace, parse_policy, run_session
from scheduler_core.serde.policy.founding import FOUNDING_POLICY

NOW = 1_767_225_600.0
BORN = "2025-12-01T00:00:00Z"
LANES = 10  # queues of each kind
SPREAD = 4  # members of a training gang on one node
HARMLESS = ("WaitingForReclaim",)


class Storm(NamedTuple):
    """A full cluster and who claims.

    `gang`: members of a training gang, of one card each. `claims`: how many gangs claim, of `members` tasks of
    `cards` cards each; they start together if `together`, else one by one as replicas of a service do.
    """

    nodes: int
    gang: int
    claims: int
    members: int
    cards: int = 1
    together: bool = False


STORMS = {
    "A3-500": Storm(500, 8, 500, 8),
    "A3-jobs": Storm(500, 1, 4_000, 1),
    "A3-10k": Storm(10_000, 8, 5_000, 8),
    "A4": Storm(10_000, 8, 1, 64, together=True),
    "A4-nodes": Storm(10_000, 8, 1, 64, cards=8, together=True),
}

# Milliseconds; A3-jobs and A4-nodes are harder readings of the same targets: gangs of one task, claims on whole nodes.
STORM_TARGETS = (("A3-500", 100.0), ("A3-jobs", 100.0), ("A3-10k", 1500.0), ("A4", 15.0), ("A4-nodes", 15.0))


def storm(name: str, step: str = "") -> Callable[[], Callable[[], float]]:
    """Measure a session on a kept workspace, or only one of its actions."""

    def prepare() -> Callable[[], float]:
        scene = STORMS[name]
        snapshot = build(scene)
        policy = parse_policy(FOUNDING_POLICY)
        workspace = Workspace()

        def measure() -> float:
            start = clock()
            result, _ = run_session(snapshot, policy, now=NOW, workspace=workspace, timer=clock if step else None)
            taken = clock() - start
            check(scene, snapshot, result)
            return result.timings_ms[step] / 1000 if step else taken

        return measure

    return prepare


def build(scene: Storm) -> Snapshot:
    """Every card is held by a training gang; the members of a gang sit together by fours, anywhere."""
    builder = SnapshotBuilder()
    for item in objects(scene):
        builder.upsert(item)
    return builder.build()


def objects(scene: Storm) -> list[Object]:
    """Nodes, queues, running training gangs and waiting claimants."""
    rng = random.Random(42)
    made = [_node(number) for number in range(scene.nodes)]
    quota = "{" + ", ".join(f'"{card}": {scene.nodes * CARDS_A_NODE}' for card in CARDS) + "}"
    for lane in range(LANES):
        made += [queue(f"training-{lane}", quota, 20000, reclaimable=True)]
        made += [queue(f"inference-{lane}", quota, 80000, reclaimable=False)]
    serial = 0
    for kind in range(len(CARDS)):
        slots = _slots(scene, kind, rng)
        for first in range(0, len(slots) - scene.gang + 1, scene.gang):
            made += _running(serial, kind, slots[first : first + scene.gang], rng)
            serial += 1
    for claim in range(scene.claims):
        made += _claim(claim, scene)
    return made


def _slots(scene: Storm, kind: int, rng: random.Random) -> list[int]:
    """Nodes of one card type, a card at a time, in handfuls that lie anywhere."""
    nodes = [node for node in range(scene.nodes) if node % len(CARDS) == kind]
    handfuls = [node for node in nodes for _ in range(CARDS_A_NODE // SPREAD)]
    rng.shuffle(handfuls)
    return [node for node in handfuls for _ in range(SPREAD)]


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


def queue(name: str, quota: str, priority: int, *, reclaimable: bool) -> Object:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name, "annotations": {"volcano.sh/card.quota": quota}, "creationTimestamp": BORN},
        "spec": {"weight": 1, "priority": priority, "reclaimable": reclaimable},
        "status": {"state": "Open"},
    }


def group(name: str, queue: str, least: int, kind: str, phase: str) -> Object:
    owner = [{"apiVersion": "batch/v1", "kind": kind, "name": name, "uid": f"owner-{name}", "controller": True}]
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"namespace": "bench", "name": name, "creationTimestamp": BORN, "ownerReferences": owner},
        "spec": {"minMember": least, "queue": queue},
        "status": {"phase": phase},
    }


def pod(name: str, group: str, kind: int, cards: int, *, cpu: int) -> Object:
    limits = {"cpu": str(cpu), "memory": f"{4 * cpu}Gi", "nvidia.com/gpu": str(cards)}
    notes = {"scheduling.k8s.io/group-name": group, "volcano.sh/card.name": CARDS[kind]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"namespace": "bench", "name": name, "annotations": notes, "creationTimestamp": BORN},
        "spec": {
            "schedulerName": "volcano",
            "containers": [{"name": "main", "resources": {"requests": limits, "limits": limits}}],
        },
        "status": {"phase": "Pending"},
    }


def _running(serial: int, kind: int, nodes: list[int], rng: random.Random) -> list[Object]:
    """A training gang at work since some time in December."""
    name = f"training-{serial:05}"
    day, second = rng.randrange(2, 31), rng.randrange(86_400)
    started = f"2025-12-{day:02}T{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}Z"
    made = [group(name, f"training-{serial % LANES}", len(nodes), "Job", "Running")]
    for member, node in enumerate(nodes):
        member_pod = pod(f"{name}-{member}", name, kind, 1, cpu=4 + kind)
        member_pod["spec"]["nodeName"] = f"node-{node:05}"
        member_pod["status"] = {"phase": "Running", "startTime": started}
        made.append(member_pod)
    return made


def _claim(serial: int, scene: Storm) -> list[Object]:
    name = f"service-{serial:05}"
    kind = serial % len(CARDS)
    least = scene.members if scene.together else 1
    made = [group(name, f"inference-{serial // len(CARDS) % LANES}", least, "ReplicaSet", "Pending")]
    return made + [
        pod(f"{name}-{member}", name, kind, scene.cards, cpu=3 * scene.cards + serial % 2)
        for member in range(scene.members)
    ]


def check(scene: Storm, snapshot: Snapshot, result: Result) -> None:
    """All claims promised, no inference evicted, gangs whole, and no gang evicted that a reclaim can do without."""
    assert len(result.pipelined) + len(result.binds) == scene.claims * scene.members, "a claim got nothing"
    fallen = {eviction.pod for eviction in result.evictions}
    assert len(fallen) == len(result.evictions), "a pod was evicted twice"
    assert all(pod.startswith("bench/training-") for pod in fallen), "others than training were evicted"
    whole = [victim for reclaim in result.reclaims for victim in reclaim.victims]
    assert all(len(victim.pods) == scene.gang for victim in whole), "a gang was evicted in part"
    assert len(whole) * scene.gang == len(fallen), "an eviction belongs to no reclaim"
    assert {reason.code.value for reason in result.reasons} <= set(HARMLESS), "a claim waits for something else"
    _check_room(snapshot, result)
    _check_needed(snapshot, result)


def _check_room(snapshot: Snapshot, result: Result) -> None:
    """The promised cards of each node are cards that a victim leaves, each promised once."""
    places = {pod.key: pod for pod in snapshot.pods}
    freed: dict[tuple[str, str], int] = {}
    for eviction in result.evictions:
        card = places[eviction.pod].card
        assert card is not None
        key = (eviction.node, card.names[0])
        freed[key] = freed.get(key, 0) + card.milli
    for bind in result.pipelined:
        card = places[bind.pod].card
        assert card is not None
        freed[bind.node, bind.card] -= card.milli
    assert min(freed.values(), default=0) >= 0, "more was promised than is freed"


def _check_needed(snapshot: Snapshot, result: Result) -> None:
    """Without any one victim a reclaim would not have the room it has: the rest of it frees too few places."""
    pods = {pod.key: pod for pod in snapshot.pods}
    asked = {pod.group_key: pod.card for pod in snapshot.pods}
    for reclaim in result.reclaims:
        card = asked[reclaim.reclaimer]
        assert card is not None
        each, needed = card.milli, sum(reclaim.needed.cards.values()) // card.milli
        by_node: dict[str, int] = {}
        for victim in reclaim.victims:
            for pod in victim.pods:
                by_node[pods[pod].node] = by_node.get(pods[pod].node, 0) + 1000
        for victim in reclaim.victims:
            without = dict(by_node)
            for pod in victim.pods:
                without[pods[pod].node] -= 1000
            assert sum(milli // each for milli in without.values()) < needed, f"{victim.gang} was evicted in vain"


def encoded(scene: Storm) -> bytes:
    """The same cluster as a file for the command line."""
    return msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": objects(scene)})
