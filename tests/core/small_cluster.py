"""Small clusters out of model values, and a world that carries decisions out, for the tests of the engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from scheduler_core import Memory, PluginOption, Policy, Result, Snapshot, Workspace, run_session
from scheduler_core.model.cards import CardRequest, NodeCards
from scheduler_core.model.node import Node
from scheduler_core.model.pod import OwnerReference, Pod, PodPhase
from scheduler_core.model.podgroup import EvictedPolicy, GangPhase, PodGroup
from scheduler_core.model.queue import Queue

H, A = "NVIDIA-H200", "NVIDIA-A100"
OWNERS = {"ReplicaSet": "inference", "Deployment": "inference", "Job": "training"}

Gang = tuple[PodGroup, list[Pod]]


def policy(
    actions: str = "enqueue allocate backfill reclaim",
    *,
    gang: Mapping[str, bool] | None = None,
    reclaim: Mapping[str, Any] | None = None,
    predicates: Mapping[str, Any] | None = None,
    nodeorder: Mapping[str, Any] | None = None,
    **capacity_card: Any,
) -> Policy:
    """The founding policy, with over-commit 2 unless another is given."""
    arguments = {
        "overCommitFactor": 2.0,
        "cardUnlimitedCpuMemory": True,
        "podOwnerReferenceToServiceType": OWNERS,
        **capacity_card,
    }
    return Policy(
        actions=tuple(actions.split()),
        tiers=(
            (
                PluginOption(name="priority"),
                PluginOption(name="gang", switches=dict(gang or {"reclaimable": False})),
                PluginOption(name="conformance", switches={"reclaimable": False}),
            ),
            (
                PluginOption(name="predicates", arguments=dict(predicates or {})),
                PluginOption(name="capacity-card", arguments=arguments),
                PluginOption(name="nodeorder", arguments=dict(nodeorder or {})),
            ),
        ),
        action_arguments={"reclaim": dict(reclaim or {})},
    )


def node(name: str, cards: int = 8, card: str = H, *, cpu: int = 64_000, memory: int = 512_000, **more: Any) -> Node:
    """A node with cards of one type; ``cpu`` in milli-cores, ``memory`` in MiB."""
    held = (NodeCards(card, "nvidia.com/gpu", cards),) if cards else ()
    return Node(name=name, cpu_milli=cpu, memory_mib=memory, cards=held, **more)


def queue(name: str, quota: Mapping[str, float] | None, **more: Any) -> Queue:
    """A queue; quota in cards."""
    cards = None if quota is None else {card: round(count * 1000) for card, count in quota.items()}
    return Queue(name=name, card_quota=cards, **more)


def inference(name: str = "inference", quota: Mapping[str, float] | None = None, **more: Any) -> Queue:
    """A queue of document 000 for services."""
    return queue(name, {H: 16} if quota is None else quota, **{"priority": 80000, "reclaimable": False, **more})


def training(name: str = "training", quota: Mapping[str, float] | None = None, **more: Any) -> Queue:
    """A queue of document 000 for training."""
    return queue(name, {H: 64} if quota is None else quota, **{"priority": 20000, "reclaimable": True, **more})


def gang(
    name: str,
    pods: int,
    cards: float,
    queue: str,
    *,
    on: Sequence[str] = (),
    started: float = 0.0,
    least: int | None = None,
    card: str = H,
    kind: str = "Job",
    policy: EvictedPolicy = EvictedPolicy.RESTART_JOB,
    phase: GangPhase | None = None,
    cpu: int = 1000,
    memory: int = 1024,
    group: Mapping[str, Any] | None = None,
    **pod: Any,
) -> Gang:
    """A gang of equal pods, running on the nodes ``on`` or waiting; ``cards`` each, less than one is a share."""
    request = None
    if cards:
        request = CardRequest(tuple(card.split("|")) if card else (), "nvidia.com/gpu", round(cards * 1000))
    running = {"phase": PodPhase.RUNNING, "started": started}
    members = [
        Pod(
            **{
                "namespace": "ns",
                "name": f"{name}-{i}",
                "scheduler": "volcano",
                "group": name,
                "cpu_milli": cpu,
                "memory_mib": memory,
                "card": request,
                "owner": OwnerReference(kind, name),
                **({"node": on[i], **running} if i < len(on) else {}),
                **pod,
            }
        )
        for i in range(pods)
    ]
    least = pods if least is None else least
    made = PodGroup(
        **{
            "namespace": "ns",
            "name": name,
            "queue": queue,
            "min_member": least,
            "owner_kind": kind,
            "owner_name": name,
            "evicted_policy": policy if kind == "Job" else EvictedPolicy.NONE,
            "phase": phase or (GangPhase.RUNNING if len(on) >= least else GangPhase.PENDING),
            **(group or {}),
        }
    )
    return made, members


def service(name: str, pods: int, cards: float, queue: str = "inference", **more: Any) -> Gang:
    """A ReplicaSet: one PodGroup with minMember 1."""
    return gang(name, pods, cards, queue, **{"least": 1, "kind": "ReplicaSet", **more})


def snapshot(nodes: Sequence[Node], queues: Sequence[Queue], *gangs: Gang, pods: Sequence[Pod] = ()) -> Snapshot:
    """All of it, sorted as a snapshot is."""
    members = [*pods, *(pod for _, of_gang in gangs for pod in of_gang)]
    return Snapshot(
        nodes=tuple(sorted(nodes, key=lambda n: n.name)),
        queues=tuple(sorted(queues, key=lambda q: q.name)),
        pod_groups=tuple(sorted((group for group, _ in gangs), key=lambda g: g.key)),
        pods=tuple(sorted(members, key=lambda p: p.key)),
    )


def decide(
    given: Snapshot, rules: Policy | None = None, *, now: float = 1000.0, memory: Memory | None = None
) -> Result:
    """One session with all books checked."""
    return run_session(given, rules or policy(), now=now, memory=memory, check=True)[0]


def binds(result: Result) -> dict[str, str]:
    """Pod name (without namespace) to node."""
    return {bind.pod.removeprefix("ns/"): bind.node for bind in result.binds}


def evicted(result: Result) -> list[str]:
    """Gangs that fall, by name."""
    return sorted({eviction.gang.removeprefix("ns/") for eviction in result.evictions})


def code(result: Result, name: str) -> str:
    """Reason code of a gang, empty when it needs nothing."""
    return next((reason.code.value for reason in result.reasons if reason.podgroup == f"ns/{name}"), "")


class World:
    """Carries decisions out at once, with an eviction grace of one session; keeps memory and workspace."""

    def __init__(self, given: Snapshot, rules: Policy | None = None) -> None:
        self.snapshot, self.policy = given, rules or policy()
        self.memory: Memory | None = None
        self.workspace = Workspace()
        self.now = 1000.0

    def step(self, seconds: float = 10.0) -> Result:
        """One session; afterwards bound pods run, pods that were leaving are gone, evicted ones are leaving."""
        result, self.memory = run_session(
            self.snapshot, self.policy, now=self.now, memory=self.memory, workspace=self.workspace, check=True
        )
        placed = {bind.pod: bind for bind in result.binds}
        leaving = {eviction.pod for eviction in result.evictions}
        phases = {outcome.name: outcome.phase for outcome in result.podgroups}
        pods = []
        for pod in self.snapshot.pods:
            if pod.deleted is not None:
                continue
            bind = placed.get(pod.key)
            changes: dict[str, Any] = {"deleted": self.now} if pod.key in leaving else {}
            if bind is not None:
                changes |= {"node": bind.node, "card_indices": bind.card_indices}
                changes |= {"phase": PodPhase.RUNNING, "started": self.now}
            pods.append(msgspec.structs.replace(pod, **changes) if changes else pod)
        groups = tuple(msgspec.structs.replace(g, phase=phases[g.key]) for g in self.snapshot.pod_groups)
        self.snapshot = msgspec.structs.replace(self.snapshot, pods=tuple(pods), pod_groups=groups)
        self.now += seconds
        return result
