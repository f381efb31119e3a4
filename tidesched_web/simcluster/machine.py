"""Steps are noted in the transaction of what they changed, and done again after a crash: the world is deterministic."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from scheduler_core.model.pod import Pod
from scheduler_core.simulator.changes import Change
from scheduler_core.simulator.manifests import to_kubernetes
from scheduler_core.simulator.scenario import Scenario
from scheduler_core.simulator.workload import OwnerKind
from scheduler_core.simulator.world import World
from tidesched_web.simcluster.clock import VirtualClock, rfc3339
from tidesched_web.simcluster.resources import (
    BY_KIND,
    DEPLOYMENTS,
    JOBS,
    NAMESPACES,
    NODES,
    POD_GROUPS,
    PODS,
    REPLICA_SETS,
    ResourceType,
)
from tidesched_web.simcluster.stages import Stage
from tidesched_web.simcluster.steps import Act, Advance, Step, read_step, write_step
from tidesched_web.simcluster.store import Object, Store

log = logging.getLogger(__name__)

DUMP_SECONDS = 5.0
# Kinds whose objects come from the world; queues and priority classes are the clients' own.
WORLD_KINDS: tuple[ResourceType, ...] = (NODES, PODS, POD_GROUPS, JOBS, REPLICA_SETS, DEPLOYMENTS)


class Machine:
    def __init__(self, store: Store, clock: VirtualClock, world: World, stage: Stage) -> None:
        self.store, self.clock, self.world = store, clock, world
        self._stage = stage
        self._scenario = stage.scenario(world)
        self._began = bool(store.get_state("began", 0))
        self.steps = 0
        self._changed: dict[tuple[str, str], str] = {}
        self._dumped_at = time.monotonic()
        self._undumped = 0
        world.subscribe(self._note)

    @classmethod
    def start(cls, store: Store, *, rate: float, stage: Stage) -> Machine:
        dump = store.get_state("world")
        if dump is None:
            world = stage.fresh()
            machine = cls(store, VirtualClock(world.t, rate), world, stage)
            with machine.writing():
                for kind in WORLD_KINDS:
                    machine._changed |= {(kind.kind, key): "upsert" for key in machine._keys(kind)}
                machine._flush()
                machine._dump()
                store.put_state("stage", stage.name)
            return machine
        world = World.load(dump)
        redone = _redo(store, world, stage.scenario(world))
        horizon = max(float(store.get_state("horizon", world.t)), world.t)
        machine = cls(store, VirtualClock(horizon, rate), world, stage)
        log.info("the cluster goes on at %s; %d steps since the last dump were done again", rfc3339(horizon), redone)
        with machine.writing():
            machine._compare()
            machine._dump()
        return machine

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Where a moved world cannot be committed the process ends, and its next start goes on from the disk."""
        before = self.steps
        try:
            with self.store.transaction():
                yield
        except BaseException:
            if self.steps != before:
                log.critical(
                    "the world moved and the store did not; ending, so that the next start agrees", exc_info=True
                )
                os._exit(70)
            raise

    def run(self, step: Step) -> None:
        """Inside :meth:`writing`. WorldError, BadStep: refused; nothing has changed."""
        at, written = self.world.t, write_step(step)
        read_step(written).run(self.world, self._scenario)
        self.steps += 1
        self._undumped += 1
        self.store.connection.execute("INSERT INTO redo (at, step) VALUES (?, ?)", (at, written))
        self._flush()

    def catch_up(self) -> None:
        """Let the world reach the clock's time; inside :meth:`writing`."""
        now = self.clock.now()
        scenario = self._scenario if self._began else None
        while scenario is not None and (act := scenario.next_time) is not None and act <= now:
            self.run(Advance(act))
            self.run(Act())
        due = self.world.next_event
        if due is not None and due <= now:
            self.run(Advance(now))
        elif now > self.world.t:
            # Nothing happens on the way, so there is nothing to note: the next step brings its own time.
            self.world.advance(now)

    def keep_time(self, margin: float) -> None:
        horizon = self.clock.next_horizon(margin)
        with self.writing():
            if not self._began:
                self._began = self._stage.ready(self.store)
                if not self._began:
                    return
                self.store.put_state("began", 1)
            self.catch_up()
            self.store.put_state("horizon", horizon)
            self.store.trim_changes()
            if self._undumped and time.monotonic() - self._dumped_at >= DUMP_SECONDS:
                self._dump()
        self.clock.extend(horizon)

    def close(self) -> None:
        with self.writing():
            self.catch_up()
            self._dump()
            self.store.put_state("horizon", self.world.t)

    @property
    def rate(self) -> float:
        return self.clock.rate if self._began else 0.0

    def owns(self, kind: ResourceType, namespace: str, name: str) -> bool:
        key = f"{namespace}/{name}" if kind.namespaced else name
        return kind in WORLD_KINDS and self._has(kind, key)

    # -- from the world to the store ---------------------------------------------------------------------------

    def _note(self, change: Change) -> None:
        self._changed.pop((change.kind, change.key), None)  # the latest comes last
        self._changed[change.kind, change.key] = change.verb
        if isinstance(change.value, Pod) and change.value.owner is not None:
            # The world tells of the pod alone; the counts of its owner and its gang have changed as well.
            pod, owner = change.value, change.value.owner
            self._changed.setdefault((owner.kind, f"{pod.namespace}/{owner.name}"), "upsert")
            self._changed.setdefault((POD_GROUPS.kind, pod.group_key), "upsert")

    def _flush(self) -> None:
        changed, self._changed = self._changed, {}
        for (kind_name, key), verb in changed.items():
            kind = BY_KIND[kind_name]
            # The world's services are ReplicaSets; each has a Deployment of the same name above it.
            for shown in (kind, DEPLOYMENTS) if kind is REPLICA_SETS else (kind,):
                if shown not in WORLD_KINDS:
                    continue
                if verb == "upsert" and self._has(shown, key):
                    self._put(shown, key)
                elif verb == "delete":
                    self.store.remove(shown, *_split(shown, key))

    def refresh(self, kind: ResourceType, key: str) -> None:
        """Show the object as the world has it, whatever a client wrote over it."""
        self._put(kind, key)

    def _put(self, kind: ResourceType, key: str) -> None:
        namespace, name = _split(kind, key)
        now = rfc3339(self.world.t)
        if namespace and self.store.get(NAMESPACES, "", namespace) is None:
            self.store.put(NAMESPACES, {"metadata": {"name": namespace}, "status": {"phase": "Active"}}, now=now)
        manifest = to_kubernetes(self.world, kind.kind, key)
        if not manifest["metadata"]["uid"]:
            del manifest["metadata"]["uid"]
        old = self.store.get(kind, namespace, name)
        if old is not None and manifest["metadata"].get("uid", old["metadata"]["uid"]) != old["metadata"]["uid"]:
            self.store.remove(kind, namespace, name)
            old = None
        self.store.put(kind, _with_clients_fields(manifest, old), now=now, simulated=True)

    def _compare(self) -> None:
        """After a restart: store and world must agree; where they do not, the world is right and it is said."""
        before = self.store.version
        for kind in WORLD_KINDS:
            held = set(self._keys(kind))
            for key in sorted(held):
                self._put(kind, key)
            for namespace, name in self.store.simulated_names(kind):
                if (f"{namespace}/{name}" if kind.namespaced else name) not in held:
                    self.store.remove(kind, namespace, name)
        if self.store.version != before:
            log.warning("%d objects differed from the world after the restart", self.store.version - before)

    def _has(self, kind: ResourceType, key: str) -> bool:
        held = self._held(kind)
        if kind in (NODES, PODS, POD_GROUPS):
            return key in held
        state = self.world.workloads.get(key)
        return state is not None and (state.workload.owner_kind is OwnerKind.JOB) == (kind is JOBS)

    def _keys(self, kind: ResourceType) -> list[str]:
        return [key for key in self._held(kind) if self._has(kind, key)]

    def _held(self, kind: ResourceType) -> Mapping[str, object]:
        world = self.world
        apart: dict[ResourceType, Mapping[str, object]] = {
            NODES: world.nodes,
            PODS: world.pods,
            POD_GROUPS: world.pod_groups,
        }
        return apart.get(kind, world.workloads)

    def _dump(self) -> None:
        self.store.put_state("world", self.world.dump())
        self.store.connection.execute("DELETE FROM redo")
        self._undumped, self._dumped_at = 0, time.monotonic()


def _redo(store: Store, world: World, scenario: Scenario | None) -> int:
    rows = store.connection.execute("SELECT at, step FROM redo ORDER BY seq").fetchall()
    for at, step in rows:
        world.advance(at)
        read_step(step).run(world, scenario)
    return len(rows)


def _split(kind: ResourceType, key: str) -> tuple[str, str]:
    namespace, _, name = key.rpartition("/")
    return (namespace, name) if kind.namespaced else ("", key)


_DISRUPTION = "DisruptionTarget"


def _with_clients_fields(manifest: Object, old: Object | None) -> Object:
    """The world's object with what clients added to it: labels, annotations, field owners, nominations."""
    metadata = dict(manifest["metadata"])
    before = old["metadata"] if old is not None else {}
    for field in ("labels", "annotations"):
        merged = {**before.get(field, {}), **metadata.get(field, {})}
        if merged:
            metadata[field] = merged
    if "managedFields" in before:
        metadata["managedFields"] = before["managedFields"]
    result = {**manifest, "metadata": metadata}
    status = (old or {}).get("status", {})
    if (nominated := status.get("nominatedNodeName")) and not manifest.get("spec", {}).get("nodeName"):
        result["status"] = {**manifest.get("status", {}), "nominatedNodeName": nominated}
    announced = [line for line in status.get("conditions") or () if line.get("type") == _DISRUPTION]
    lines = result.get("status", {}).get("conditions")
    if announced and lines and all(line["type"] != _DISRUPTION for line in lines):
        result["status"] = {**result["status"], "conditions": [*lines, *announced]}
    return result
