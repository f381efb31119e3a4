"""A2 and A6: a cluster that runs, where gangs end and others arrive between sessions."""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import msgspec

from bench.checks import check
from bench.clock import clock
from bench.snapshots import BORN, GANG, Size, gang, waiting
from scheduler_core import Result, SnapshotBuilder, Workspace, parse_policy, run_session
from scheduler_core.model.memory import Memory
from scheduler_core.model.node import Node
from scheduler_core.model.pod import Pod, PodPhase
from scheduler_core.model.podgroup import GangPhase, PodGroup
from scheduler_core.model.snapshot import Snapshot
from scheduler_core.serde.policy.founding import FOUNDING_POLICY
from scheduler_core.simulator.manifests import node_manifest, pod_manifest, queue_manifest

ENDS = 13  # gangs of eight: their members ran on about a hundred nodes
ARRIVES = 63  # gangs of eight: five hundred tasks


class Running:
    """A cluster behind a builder, as a watcher feeds it.

    Attributes:
        builder: what the watch events go to. result: the last session's.
    """

    def __init__(self, size: Size) -> None:
        start = waiting(size)
        self.policy, self.workspace, self.memory = parse_policy(FOUNDING_POLICY), Workspace(), Memory()
        self.builder = SnapshotBuilder()
        self.size, self.now, self.next = size, BORN, len(start.pod_groups)
        self.nodes = start.nodes
        self.pods: dict[str, Pod] = {pod.key: pod for pod in start.pods}
        self.gangs: deque[PodGroup] = deque(start.pod_groups)
        self.waiting = list(start.pod_groups)
        for queue in start.queues:
            self.builder.upsert(queue_manifest(queue))
        for node in start.nodes:
            self.builder.upsert(node_manifest(node))
        self._tell(self.waiting, self.pods.values())
        self.decide()
        self.carry_out()

    def decide(self) -> Snapshot:
        """One session over what the builder knows."""
        snapshot = self.builder.build()
        self.now += 1
        self.result: Result
        self.result, self.memory = run_session(
            snapshot, self.policy, now=self.now, memory=self.memory, workspace=self.workspace
        )
        return snapshot

    def carry_out(self) -> None:
        """Watch events of bound pods that run, and of their gangs."""
        changed = []
        for bind in self.result.binds:
            pod = self.pods[bind.pod]
            notes = pod.annotations
            if bind.card_indices:
                notes = {**notes, "tidesched.io/card-indices": ",".join(map(str, bind.card_indices))}
            self.pods[bind.pod] = msgspec.structs.replace(
                pod, node=bind.node, phase=PodPhase.RUNNING, started=self.now, annotations=notes
            )
            changed.append(self.pods[bind.pod])
        ready = {pod.group for pod in changed}
        self._tell(
            [msgspec.structs.replace(group, phase=GangPhase.RUNNING) for group in self.waiting if group.name in ready],
            changed,
        )
        self.waiting = [group for group in self.waiting if group.name not in ready]

    def end(self, count: int) -> None:
        """The oldest gangs are done and deleted."""
        for _ in range(count):
            group = self.gangs.popleft()
            for member in range(GANG):
                name = f"{group.name}-worker-{member}"
                self.builder.delete("Pod", group.namespace, name)
                del self.pods[f"{group.namespace}/{name}"]
            self.builder.delete("PodGroup", group.namespace, group.name)

    def arrive(self, count: int) -> None:
        """As many new gangs."""
        for _ in range(count):
            group, pods = gang(self.next)
            self.next += 1
            self.gangs.append(group)
            self.waiting.append(group)
            self.pods |= {pod.key: pod for pod in pods}
            self._tell([group], pods)

    def touch(self, nodes: Iterable[Node]) -> None:
        """Node objects change without a change that counts for scheduling."""
        for node in nodes:
            manifest = node_manifest(node)
            manifest["metadata"]["annotations"] = {"bench/heartbeat": str(self.now)}
            self.builder.upsert(manifest)

    def _tell(self, groups: Iterable[PodGroup], pods: Iterable[Pod]) -> None:
        for group in groups:
            self.builder.upsert(_group_manifest(group))
        for pod in pods:
            self.builder.upsert(_pod_manifest(pod))


def steady_session(size: Size, nodes: int = 0) -> Callable[[], Callable[[], float]]:
    """Gangs ended and others arrived (and ``nodes`` Node objects were written); from there to the decisions."""
    return partial(_prepare_steady, size, nodes)


def _prepare_steady(size: Size, nodes: int) -> Callable[[], float]:
    running = Running(size)
    ends, arrives = ENDS * size.tasks // 100_000 or 1, ARRIVES * size.tasks // 100_000 or 1
    step = 0
    gc.collect()
    gc.freeze()

    def measure() -> float:
        nonlocal step
        running.carry_out()
        running.end(arrives - ends)
        running.decide()
        running.end(ends)
        running.arrive(arrives)
        running.touch(running.nodes[number % size.nodes] for number in range(step * nodes, (step + 1) * nodes))
        step += 1
        start = clock()
        snapshot = running.decide()
        decided = list(running.result.binds)
        taken = clock() - start
        assert len(decided) == arrives * GANG, f"{len(decided)} of {arrives * GANG} tasks were placed"
        if step % 10 == 1:
            check(snapshot, running.result)
        return taken

    return measure


def what_if(size: Size) -> Callable[[], Callable[[], float]]:
    """A6: one queue's quota raised in a fork of a cluster that runs; the session, and what it decides otherwise."""
    return partial(_prepare_what_if, size)


def _prepare_what_if(size: Size) -> Callable[[], float]:
    running = Running(size)
    running.arrive(ARRIVES)
    full = running.builder.build()
    none = tuple(
        msgspec.structs.replace(queue, card_quota={}, cpu_milli=1) if queue.name == "queue-00" else queue
        for queue in full.queues
    )
    snapshot = msgspec.structs.replace(full, queues=none)
    decide = partial(run_session, policy=running.policy, now=running.now + 1, memory=running.memory)
    before, _ = decide(snapshot, workspace=running.workspace)
    bound, phases = {bind.pod: bind.node for bind in before.binds}, {gang.name: gang.phase for gang in before.podgroups}

    def measure() -> float:
        start = clock()
        changed = msgspec.structs.replace(snapshot, queues=full.queues)
        after, _ = decide(changed, workspace=running.workspace.fork())
        moved = [bind for bind in after.binds if bound.get(bind.pod) != bind.node]
        other = [gang.name for gang in after.podgroups if phases[gang.name] != gang.phase]
        taken = clock() - start
        assert moved, "more quota made no difference"
        assert other, "more quota made no difference"
        return taken

    return measure


def _group_manifest(group: PodGroup) -> dict[str, Any]:
    owner = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": group.owner_name, "uid": group.name}
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {
            "namespace": group.namespace,
            "name": group.name,
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "ownerReferences": [{**owner, "controller": True}],
        },
        "spec": {"minMember": group.min_member, "queue": group.queue},
        "status": {"phase": group.phase.value},
    }


def _pod_manifest(pod: Pod) -> dict[str, Any]:
    manifest = pod_manifest(pod)
    assert pod.owner is not None
    manifest["metadata"]["ownerReferences"] = [
        {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": pod.owner.name, "uid": pod.group,
         "controller": True}
    ]  # fmt: skip
    return manifest
