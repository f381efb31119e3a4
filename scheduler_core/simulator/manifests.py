"""Objects of the simulated cluster as an API server would hold them."""

import json
from typing import Any

from scheduler_core.model.node import Node
from scheduler_core.model.pod import Pod, PodPhase
from scheduler_core.model.podgroup import EvictedPolicy, PodGroup
from scheduler_core.model.queue import PriorityClass, Queue
from scheduler_core.model.resources import MILLI, cards_to_json, quantity
from scheduler_core.simulator.clock import rfc3339
from scheduler_core.simulator.errors import Refusal, WorldError
from scheduler_core.simulator.objects import CARD_QUOTA, QUEUE_SERVICE_TYPE, ROLE, TASK_SPEC, pod_pattern
from scheduler_core.simulator.workload import APPS, VOLCANO_BATCH, OwnerKind, WorkloadState
from scheduler_core.simulator.world import World

Manifest = dict[str, Any]
VOLCANO_SCHEDULING = "scheduling.volcano.sh/v1beta1"


def to_kubernetes(world: World, kind: str, key: str) -> Manifest:
    """The object ``key`` of ``kind`` as JSON values. A service is a ReplicaSet that a Deployment of the same name owns:
    both kinds can be asked for. Raises WorldError: ``NOT_FOUND``; ``INVALID`` for a kind that this cluster does not
    have."""
    stores: dict[str, dict[str, Any]] = {
        "Pod": world.pods,
        "PodGroup": world.pod_groups,
        "Job": world.workloads,
        "ReplicaSet": world.workloads,
        "Deployment": world.workloads,
        "Node": world.nodes,
        "Queue": world.queues,
        "PriorityClass": world.priority_classes,
    }
    if kind not in stores:
        raise WorldError(Refusal.INVALID, f"the simulated cluster has no kind {kind}; it has {', '.join(stores)}")
    value = stores[kind].get(key)
    owner_kind = OwnerKind.JOB if kind == "Job" else OwnerKind.REPLICA_SET
    if value is None or (isinstance(value, WorkloadState) and value.workload.owner_kind is not owner_kind):
        raise WorldError(Refusal.NOT_FOUND, f"there is no {kind} {key}")
    return manifest_of(kind, value, world)


def manifest_of(kind: str, value: Any, world: World) -> Manifest:
    """The manifest of an object that a :class:`Change` brought, also of one that is gone from ``world``."""
    match kind:
        case "Pod":
            return pod_manifest(value)
        case "PodGroup":
            return pod_group_manifest(value, world)
        case "Job":
            return job_manifest(value)
        case "ReplicaSet":
            return replica_set_manifest(value)
        case "Deployment":
            return deployment_manifest(value)
        case "Node":
            return node_manifest(value)
        case "Queue":
            return queue_manifest(value)
        case _:
            return priority_class_manifest(value)


def pod_manifest(pod: Pod) -> Manifest:
    metadata = _metadata(pod.name, pod.uid, pod.created, pod.namespace, pod.labels, pod.annotations)
    if pod.owner is not None:
        metadata["ownerReferences"] = [
            _owner_reference(pod.owner.api_version, pod.owner.kind, pod.owner.name, pod.owner.uid)
        ]
    if pod.deleted is not None:
        metadata["deletionTimestamp"] = rfc3339(pod.deleted)
    spec = _pod_spec(pod)
    if pod.node:
        spec["nodeName"] = pod.node
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": _pod_status(pod)}


def pod_group_manifest(group: PodGroup, world: World) -> Manifest:
    """A PodGroup with its owner, annotations and status."""
    metadata = _metadata(group.name, group.uid, group.created, group.namespace, {}, group.annotations)
    running = succeeded = 0
    if (state := world.workloads.get(group.key)) is not None:
        metadata["ownerReferences"] = [
            _owner_reference(OwnerKind(group.owner_kind).api_version, group.owner_kind, group.owner_name, state.uid)
        ]
        running, succeeded = state.running, state.succeeded
    spec: Manifest = {"minMember": group.min_member, "queue": group.queue}
    if group.priority_class:
        spec["priorityClassName"] = group.priority_class
    if group.min_resources is not None:
        spec["minResources"] = {
            "cpu": f"{group.min_resources.cpu_milli}m",
            "memory": f"{group.min_resources.memory_mib}Mi",
        }
    conditions = [
        {"type": item.type, "status": item.status, "reason": item.reason, "message": item.message}
        for item in group.conditions
    ]
    status = {"phase": group.phase.value, "conditions": conditions, "running": running, "succeeded": succeeded}
    return {"apiVersion": VOLCANO_SCHEDULING, "kind": "PodGroup", "metadata": metadata, "spec": spec, "status": status}


def job_manifest(state: WorkloadState) -> Manifest:
    """A Volcano Job with one role."""
    workload = state.workload
    policies = [{"event": "TaskCompleted", "action": "CompleteJob"}]
    if workload.evicted_policy is not EvictedPolicy.NONE:
        policies.append({"event": "PodEvicted", "action": workload.evicted_policy.value})
    spec: Manifest = {
        "schedulerName": workload.scheduler,
        "queue": workload.queue,
        "minAvailable": workload.min_member,
        "policies": policies,
        "tasks": [{"name": ROLE, "replicas": workload.replicas, "template": _template(state)}],
    }
    if workload.priority_class:
        spec["priorityClassName"] = workload.priority_class
    if workload.ttl_seconds is not None:
        spec["ttlSecondsAfterFinished"] = int(workload.ttl_seconds)
    status = {
        "state": {"phase": state.phase.value},
        "minAvailable": workload.min_member,
        "pending": max(0, len(state.pods) - state.running - state.succeeded),
        "running": state.running,
        "succeeded": state.succeeded,
        "version": state.version + 1,
        "retryCount": 0,
    }
    return {
        "apiVersion": VOLCANO_BATCH,
        "kind": "Job",
        "metadata": _workload_metadata(state),
        "spec": spec,
        "status": status,
    }


def replica_set_manifest(state: WorkloadState) -> Manifest:
    metadata = _workload_metadata(state)
    metadata["ownerReferences"] = [_owner_reference(APPS, "Deployment", state.workload.name, _deployment_uid(state))]
    return {
        "apiVersion": APPS,
        "kind": "ReplicaSet",
        "metadata": metadata,
        "spec": _service_spec(state),
        "status": {"replicas": len(state.pods), "readyReplicas": state.running},
    }


def deployment_manifest(state: WorkloadState) -> Manifest:
    """The Deployment that owns the ReplicaSet of a service."""
    metadata = _workload_metadata(state)
    metadata["uid"] = _deployment_uid(state)
    return {
        "apiVersion": APPS,
        "kind": "Deployment",
        "metadata": metadata,
        "spec": _service_spec(state),
        "status": {"replicas": len(state.pods), "readyReplicas": state.running},
    }


def node_manifest(node: Node) -> Manifest:
    resources = {"cpu": f"{node.cpu_milli}m", "memory": f"{node.memory_mib}Mi", "pods": str(node.pods)}
    for group in node.cards:
        resources[group.resource] = str(int(resources.get(group.resource, "0")) + group.count)
    resources |= {name: quantity(name, count) for name, count in sorted(node.scalars.items())}
    spec: Manifest = {}
    if node.taints:
        spec["taints"] = [{"key": t.key, "value": t.value, "effect": t.effect} for t in node.taints]
    if node.unschedulable:
        spec["unschedulable"] = True
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": _metadata(node.name, node.uid, node.created, "", node.labels, node.annotations),
        "spec": spec,
        "status": {
            "capacity": dict(resources),
            "allocatable": resources,
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
        },
    }


def queue_manifest(queue: Queue) -> Manifest:
    """A Volcano Queue with the card quota in its annotation."""
    annotations = dict(queue.annotations)
    if queue.card_quota is not None:
        quota = {card: cards_to_json(milli) for card, milli in sorted(queue.card_quota.items())}
        annotations[CARD_QUOTA] = json.dumps(quota)
    if queue.service_type:
        annotations[QUEUE_SERVICE_TYPE] = queue.service_type
    spec: Manifest = {"weight": queue.weight, "priority": queue.priority, "reclaimable": queue.reclaimable}
    capability = {name: f"{milli}m" for name, milli in sorted(queue.scalars.items())}
    if queue.cpu_milli is not None:
        capability["cpu"] = f"{queue.cpu_milli}m"
    if queue.memory_mib is not None:
        capability["memory"] = f"{queue.memory_mib}Mi"
    if capability:
        spec["capability"] = capability
    if queue.parent:
        spec["parent"] = queue.parent
    return {
        "apiVersion": VOLCANO_SCHEDULING,
        "kind": "Queue",
        "metadata": _metadata(queue.name, queue.uid, queue.created, "", {}, annotations),
        "spec": spec,
        "status": {"state": queue.state.value},
    }


def priority_class_manifest(priority_class: PriorityClass) -> Manifest:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": priority_class.name},
        "value": priority_class.value,
        "globalDefault": priority_class.global_default,
        "preemptionPolicy": priority_class.preemption_policy,
    }


def _metadata(
    name: str, uid: str, created: float, namespace: str, labels: dict[str, str], annotations: dict[str, str]
) -> Manifest:
    metadata: Manifest = {"name": name, "uid": uid, "creationTimestamp": rfc3339(created)}
    if namespace:
        metadata["namespace"] = namespace
    if labels:
        metadata["labels"] = dict(labels)
    if annotations:
        metadata["annotations"] = dict(annotations)
    return metadata


def _workload_metadata(state: WorkloadState) -> Manifest:
    workload = state.workload
    return _metadata(workload.name, state.uid, state.created, workload.namespace, workload.labels, workload.annotations)


def _owner_reference(api_version: str, kind: str, name: str, uid: str) -> Manifest:
    return {
        "apiVersion": api_version,
        "kind": kind,
        "name": name,
        "uid": uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def _deployment_uid(state: WorkloadState) -> str:
    # The ReplicaSet's uid in another variant: unique because that one is.
    return f"{state.uid[:19]}9{state.uid[20:]}"


def _service_spec(state: WorkloadState) -> Manifest:
    template = _template(state)
    app = template["metadata"]["labels"]["app"]
    return {"replicas": state.workload.replicas, "selector": {"matchLabels": {"app": app}}, "template": template}


def _template(state: WorkloadState) -> Manifest:
    pod = pod_pattern(state)
    skipped = ("scheduling.k8s.io/group-name", TASK_SPEC)
    annotations = {key: value for key, value in pod.annotations.items() if key not in skipped}
    return {"metadata": {"labels": dict(pod.labels), "annotations": annotations}, "spec": _pod_spec(pod)}


def _pod_spec(pod: Pod) -> Manifest:
    resources = {"cpu": f"{pod.cpu_milli}m", "memory": f"{pod.memory_mib}Mi"}
    if pod.card is not None and pod.card.resource:
        resources[pod.card.resource] = str(pod.card.milli // MILLI)
    resources |= {name: quantity(name, count) for name, count in sorted(pod.scalars.items())}
    container = {
        "name": "main",
        "image": pod.images[0],
        "resources": {"requests": dict(resources), "limits": resources},
    }
    spec: Manifest = {
        "schedulerName": pod.scheduler,
        "restartPolicy": "Never" if pod.role else "Always",
        "priority": pod.priority,
        "preemptionPolicy": pod.preemption_policy,
        "containers": [container],
    }
    if pod.priority_class:
        spec["priorityClassName"] = pod.priority_class
    if pod.node_selector:
        spec["nodeSelector"] = dict(pod.node_selector)
    return spec


def _pod_status(pod: Pod) -> Manifest:
    conditions = [{"type": "PodScheduled", "status": "True" if pod.node else "False"}]
    if pod.deleted is not None:
        conditions.append({"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"})
    status: Manifest = {"phase": pod.phase.value, "conditions": conditions}
    if pod.started is not None:
        started = rfc3339(pod.started)
        ready = pod.phase is PodPhase.RUNNING
        conditions.append({"type": "Ready", "status": "True" if ready else "False"})
        status["startTime"] = started
        container_state = {"running": {"startedAt": started}} if ready else {"terminated": {"exitCode": 0}}
        status["containerStatuses"] = [{"name": "main", "ready": ready, "restartCount": 0, "state": container_state}]
    return status
