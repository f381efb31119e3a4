"""What the controllers of Jobs and services do when something happens to a pod or a gang.

Source: semantics of Volcano's job controller (a Job's pods are made once its gang is admitted; PodEvicted is seen when
the pod is gone; a full restart makes a new PodGroup) and of the ReplicaSet controller (a pod that leaves is replaced at
once). On purpose different: a restart keeps the place in the queue, and evictions do not use up the retries of a Job.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from scheduler_core.model.pod import Pod, PodPhase
from scheduler_core.model.podgroup import EvictedPolicy, GangPhase
from scheduler_core.simulator.changes import Cause
from scheduler_core.simulator.clock import rfc3339
from scheduler_core.simulator.events import EventKind
from scheduler_core.simulator.objects import make_pod_group, pod_name, pod_pattern
from scheduler_core.simulator.workload import OwnerKind, Workload, WorkloadPhase, WorkloadState

if TYPE_CHECKING:
    from scheduler_core.simulator.world import World


class Controllers:
    """The job controller and the ReplicaSet controller of one world."""

    def __init__(self, world: World) -> None:
        self._world = world

    # --- what users do ------------------------------------------------------------------------------------------------

    def submit(self, workload: Workload) -> None:
        """Enter a new workload, make its PodGroup and, for a service, its pods."""
        world = self._world
        if workload.submitted is None:
            workload = msgspec.structs.replace(workload, submitted=world.t)
        priority_class = world.priority_classes.get(workload.priority_class)
        state = WorkloadState(
            workload=workload,
            uid=world.new_uid(),
            created=world.t,
            priority=priority_class.value if priority_class is not None else 0,
        )
        world.workloads[workload.key] = state
        self._emit(state, Cause.SUBMITTED)
        if workload.owner_kind is OwnerKind.JOB or workload.replicas:
            self._make_group(state, Cause.SUBMITTED)
        if workload.owner_kind is OwnerKind.REPLICA_SET:
            self._reconcile(state)

    def scale(self, state: WorkloadState, replicas: int) -> None:
        """Give a service another size; at zero its PodGroup goes too."""
        if replicas == state.workload.replicas:
            return
        state.workload = msgspec.structs.replace(state.workload, replicas=replicas)
        self._emit(state, Cause.SCALED)
        key = state.workload.key
        if replicas == 0:
            self._world.remove_group(key, Cause.SCALED)
        elif (group := self._world.pod_groups.get(key)) is None:
            self._make_group(state, Cause.SCALED)
        else:
            self._world.put_group(msgspec.structs.replace(group, replicas=replicas), Cause.SCALED)
        self._reconcile(state)

    def delete(self, state: WorkloadState) -> None:
        """Take a workload and all that it owns away."""
        world, key = self._world, state.workload.key
        del world.workloads[key]
        for pod in list(state.pods):
            world.evict(pod, cause=Cause.KILLED)
        world.remove_group(key, Cause.DELETED)
        world.emit("delete", state.workload.owner_kind.value, key, Cause.DELETED, state)

    # --- what happens to gangs and pods -------------------------------------------------------------------------------

    def admitted(self, key: str) -> None:
        """The phase of a PodGroup changed: the pods of an admitted Job are made after the controller's delay."""
        state, group = self._world.workloads.get(key), self._world.pod_groups.get(key)
        if state is None or group is None or state.workload.owner_kind is not OwnerKind.JOB or state.made:
            return
        if group.phase in (GangPhase.INQUEUE, GangPhase.RUNNING) and state.phase is WorkloadPhase.PENDING:
            self._world.schedule(self._world.controller_delay, EventKind.MAKE, key, state.token)

    def started(self, pod: Pod) -> None:
        """A pod began to run: with enough of them the workload does."""
        state = self._owner(pod)
        if state is None:
            return
        state.running += 1
        workload = state.workload
        if state.phase is not WorkloadPhase.PENDING or state.running < workload.min_member:
            return
        state.phase = WorkloadPhase.RUNNING
        if state.started is None:
            state.started = self._world.t
            if workload.duration is not None:
                self._world.schedule(workload.duration, EventKind.FINISH, workload.key, state.token)
        self._emit(state, Cause.STARTED)

    def leaving(self, pod: Pod, cause: Cause) -> None:
        """A bound pod was asked to leave: it counts as not running from now on, a service replaces it at once."""
        state = self._owner(pod)
        if state is None:
            return
        self._stopped(state, pod)
        if state.workload.owner_kind is OwnerKind.REPLICA_SET and cause is not Cause.SCALED:
            self._reconcile(state)

    def lost(self, pod: Pod, cause: Cause) -> None:
        """A pod object is gone."""
        state = self._owner(pod)
        if state is None or pod.key not in state.pods:
            return
        del state.pods[pod.key]
        if pod.deleted is None:
            self._stopped(state, pod)
        if state.workload.owner_kind is OwnerKind.REPLICA_SET:
            if pod.deleted is None and cause is not Cause.SCALED:
                self._reconcile(state)
        elif not state.phase.ended and cause is not Cause.KILLED:
            self._world.schedule(self._world.controller_delay, EventKind.REACT, state.workload.key, state.token)

    # --- events -------------------------------------------------------------------------------------------------------

    def make(self, key: str, token: str) -> None:
        """Make the pods of a Job that was admitted."""
        state, group = self._live(key, token), self._world.pod_groups.get(key)
        if state is None or state.made or state.phase is not WorkloadPhase.PENDING:
            return
        if group is None or group.phase is GangPhase.PENDING:
            return
        state.made = True
        self._make_pods(state, range(state.workload.replicas))

    def react(self, key: str, token: str) -> None:
        """The job controller has seen that a pod of a Job is gone, and does what its PodEvicted policy says."""
        state = self._live(key, token)
        if state is None or state.phase.ended:
            return
        policy = state.workload.evicted_policy
        if not policy.fells_gang:
            gone = [i for i in range(state.workload.replicas) if self._job_pod(state, i) not in state.pods]
            self._make_pods(state, gone)
            return
        if state.phase not in (WorkloadPhase.RESTARTING, WorkloadPhase.ABORTING):
            restarts = policy is EvictedPolicy.RESTART_JOB
            state.phase = WorkloadPhase.RESTARTING if restarts else WorkloadPhase.ABORTING
            state.evictions += 1
            self._emit(state, Cause.EVICTED)
            for pod in list(state.pods):
                self._world.evict(pod, cause=Cause.KILLED)
        if state.pods:
            return
        if state.phase is WorkloadPhase.RESTARTING:
            self._restart(state)
        else:
            self._world.remove_group(key, Cause.ABORTED)
            self._end(state, WorkloadPhase.ABORTED, Cause.ABORTED)

    def finish(self, key: str, token: str) -> None:
        """The work is done."""
        state = self._live(key, token)
        if state is None or state.phase not in (WorkloadPhase.RUNNING, WorkloadPhase.PENDING):
            return
        if state.workload.owner_kind is OwnerKind.JOB and state.running < state.workload.min_member:
            # Members are leaving: what they would have finished is lost with them.
            return
        world = self._world
        for pod_key in list(state.pods):
            pod = world.pods[pod_key]
            if pod.phase is PodPhase.RUNNING and pod.deleted is None:
                world.finish_pod(pod_key)
                state.succeeded += 1
            elif not pod.node:
                world.remove_pod(pod_key, Cause.KILLED)
            else:
                world.evict(pod_key, cause=Cause.KILLED)
        state.running = 0
        if (group := world.pod_groups.get(key)) is not None:
            world.put_group(msgspec.structs.replace(group, phase=GangPhase.COMPLETED), Cause.FINISHED)
        self._end(state, WorkloadPhase.COMPLETED, Cause.FINISHED)

    def expire(self, key: str, token: str) -> None:
        """The time is up for which an ended workload is kept."""
        state = self._live(key, token)
        if state is not None:
            self.delete(state)

    # --- steps --------------------------------------------------------------------------------------------------------

    def _restart(self, state: WorkloadState) -> None:
        world, key = self._world, state.workload.key
        world.remove_group(key, Cause.REQUEUED)
        state.version += 1
        state.phase, state.made, state.started, state.running = WorkloadPhase.PENDING, False, None, 0
        self._emit(state, Cause.REQUEUED)
        self._make_group(state, Cause.REQUEUED)

    def _end(self, state: WorkloadState, phase: WorkloadPhase, cause: Cause) -> None:
        state.phase, state.ended = phase, self._world.t
        self._emit(state, cause)
        ttl = state.workload.ttl_seconds
        if ttl is not None:
            self._world.schedule(ttl, EventKind.EXPIRE, state.workload.key, state.token)

    def _reconcile(self, state: WorkloadState) -> None:
        """Make or take away pods of a service until it has as many as it wants; the youngest go first."""
        world, workload = self._world, state.workload
        if state.phase.ended or workload.key not in world.workloads:
            return
        active = [world.pods[key] for key in state.pods if world.pods[key].deleted is None]
        surplus = len(active) - workload.replicas
        if surplus < 0:
            first = state.serial
            state.serial -= surplus
            self._make_pods(state, range(first, state.serial))
        elif surplus > 0:
            active.sort(key=lambda pod: (bool(pod.node), pod.phase is PodPhase.RUNNING, -pod.created, pod.key))
            for pod in active[:surplus]:
                world.evict(pod.key, cause=Cause.SCALED)

    def _make_group(self, state: WorkloadState, cause: Cause) -> None:
        world = self._world
        submitted = state.workload.submitted if state.workload.submitted is not None else world.t
        group = make_pod_group(state, uid=world.new_uid(), now=world.t, timestamp=rfc3339(submitted))
        world.put_group(group, cause)

    def _make_pods(self, state: WorkloadState, indices: range | list[int]) -> None:
        world, pattern = self._world, pod_pattern(state)
        made = [
            msgspec.structs.replace(pattern, name=pod_name(state, index), uid=world.new_uid(), created=world.t)
            for index in indices
        ]
        # All are entered before a listener hears of the first, so that a listener sees the workload whole.
        for pod in made:
            world.pods[pod.key] = pod
            state.pods[pod.key] = None
        for pod in made:
            world.put_pod(pod, Cause.MADE)

    def _job_pod(self, state: WorkloadState, index: int) -> str:
        return f"{state.workload.namespace}/{pod_name(state, index)}"

    def _stopped(self, state: WorkloadState, pod: Pod) -> None:
        if pod.phase is not PodPhase.RUNNING:
            return
        state.running -= 1
        service = state.workload.owner_kind is OwnerKind.REPLICA_SET
        if service and state.phase is WorkloadPhase.RUNNING and state.running < state.workload.min_member:
            state.phase = WorkloadPhase.PENDING
            self._emit(state, Cause.STATUS)

    def _owner(self, pod: Pod) -> WorkloadState | None:
        if pod.owner is None:
            return None
        state = self._world.workloads.get(f"{pod.namespace}/{pod.owner.name}")
        return state if state is not None and state.uid == pod.owner.uid else None

    def _live(self, key: str, token: str) -> WorkloadState | None:
        state = self._world.workloads.get(key)
        return state if state is not None and state.token == token else None

    def _emit(self, state: WorkloadState, cause: Cause) -> None:
        self._world.emit("upsert", state.workload.owner_kind.value, state.workload.key, cause, state)
