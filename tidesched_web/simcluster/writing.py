from dataclasses import dataclass
from typing import Any

from scheduler_core.model.podgroup import GangCondition, GangPhase
from scheduler_core.simulator.errors import Refusal, WorldError
from scheduler_core.simulator.objects import CARD_QUOTA
from tidesched_web.simcluster import intake, operations, pods
from tidesched_web.simcluster.clock import rfc3339
from tidesched_web.simcluster.errors import ApiError, bad_request, conflict, method_not_allowed, not_found, success
from tidesched_web.simcluster.machine import Machine
from tidesched_web.simcluster.patching import APPLY_PATCH, patch_type, read_object
from tidesched_web.simcluster.requests import Target, Write
from tidesched_web.simcluster.resources import (
    DEPLOYMENTS,
    JOBS,
    NODES,
    POD_GROUPS,
    PODS,
    PRIORITY_CLASSES,
    QUEUES,
    REPLICA_SETS,
)
from tidesched_web.simcluster.steps import (
    BadStep,
    Cordon,
    DeleteWorkload,
    PutPriorityClass,
    RemoveNode,
    Scale,
    SetGroupStatus,
    Step,
)
from tidesched_web.simcluster.store import Object
from tidesched_web.simcluster.write_log import WriteLog

_WORKLOADS = (JOBS, REPLICA_SETS, DEPLOYMENTS)


@dataclass(frozen=True)
class Answer:
    code: int
    body: Object


def carry_out(machine: Machine, log: WriteLog, write: Write) -> Answer:
    """Do what ``write`` asks, or refuse it; either way it is in the write log when this returns."""
    with machine.writing():
        machine.catch_up()
        steps = machine.steps
        try:
            with machine.store.attempt(keep=not write.dry_run):
                answer, detail = _do(machine, write)
        except (ApiError, WorldError, BadStep) as error:
            if machine.steps != steps:
                raise RuntimeError("a request was refused after the world had moved") from error
            refusal = error if isinstance(error, ApiError) else bad_request(str(error))
            answer, detail = Answer(refusal.code, refusal.to_status()), ""
        metadata = answer.body.get("metadata") or {}
        details = answer.body.get("details") or {}
        log.append(
            write,
            virtual=machine.world.t,
            code=answer.code,
            reason=answer.body.get("reason", "") if answer.code >= 400 else "",
            name=write.target.name or metadata.get("name", ""),
            uid=metadata.get("uid") or details.get("uid", ""),
            detail=detail,
        )
    return answer


def _do(machine: Machine, write: Write) -> tuple[Answer, str]:
    body = read_object(write.body, write.content_type)
    target = write.target
    if target.subresource == "binding":
        answer = Answer(201, pods.bind(machine, target, body, dry_run=write.dry_run))
        return answer, (body.get("target") or {}).get("name", "")
    if target.subresource == "eviction":
        return Answer(201, pods.evict(machine, target, body, dry_run=write.dry_run)), ""
    if write.verb == "delete":
        return Answer(200, _delete(machine, target, body, dry_run=write.dry_run)), ""
    return _store_object(machine, write, body)


def _store_object(machine: Machine, write: Write, body: Object) -> tuple[Answer, str]:
    store, target, now = machine.store, write.target, rfc3339(machine.world.t)
    manager, code = write.caller.manager, 200
    old = store.get(target.kind, target.namespace, target.name) if target.name else None
    if write.verb == "create":
        if target.subresource:
            raise method_not_allowed()
        if target.kind in intake.TAKEN_IN:
            return Answer(201, _take_in(machine, write, operations.prepare(store, target, body))), ""
        obj, code = operations.create(store, target, body, manager=manager, now=now), 201
    elif write.verb == "update":
        obj = operations.update(store, target, body, manager=manager, now=now)
    elif (media_type := patch_type(write.content_type, custom="volcano" in target.kind.group)) == APPLY_PATCH:
        if not write.query.get("fieldManager"):
            raise bad_request("fieldManager is required for apply patch")
        obj, made = operations.apply(store, target, body, manager=manager, force=write.force, now=now)
        code = 201 if made else 200
    else:
        obj = operations.patch(store, target, body, media_type=media_type, manager=manager, now=now)
    if not write.dry_run:
        obj = _tell_world(machine, target, obj, old)
    return Answer(code, obj), _detail(target, body, obj)


def _detail(target: Target, body: Object, obj: Object) -> str:
    if "status" in body:
        status = obj.get("status") or {}
        return str(status.get("phase") or status.get("state") or "")
    if target.kind is QUEUES:
        return str((obj["metadata"].get("annotations") or {}).get(CARD_QUOTA, ""))
    return ""


def _take_in(machine: Machine, write: Write, obj: Object) -> Object:
    """Hand a new node or workload to the world, which makes the object its own."""
    kind, name = write.target.kind, obj["metadata"]["name"]
    step = intake.step_for(kind, obj)
    if write.dry_run:
        return obj
    try:
        machine.run(step)
    except WorldError as error:
        raise intake.refuse(kind, name, error.message) from None
    return machine.store.get(kind, write.target.namespace, name) or obj


def _tell_world(machine: Machine, target: Target, obj: Object, old: Object | None) -> Object:
    kind, name = target.kind, obj["metadata"]["name"]
    key = f"{target.namespace}/{name}" if kind.namespaced else name
    if kind is PRIORITY_CLASSES:
        if old is None:
            machine.run(PutPriorityClass(name, obj["value"]))
        return obj
    if not machine.owns(kind, target.namespace, name):
        return obj
    for step in _steps(kind.kind, key, obj, old or {}):
        machine.run(step)
    machine.refresh(kind, key)
    return machine.store.get(kind, target.namespace, name) or obj


def _steps(kind: str, key: str, obj: Object, old: Object) -> list[Step]:
    spec, old_spec = obj.get("spec") or {}, old.get("spec") or {}
    if kind == POD_GROUPS.kind and obj.get("status") != old.get("status"):
        status: dict[str, Any] = obj.get("status") or {}
        conditions = tuple(
            GangCondition(
                type=line["type"],
                status=line.get("status", "True"),
                reason=line.get("reason", ""),
                message=line.get("message", ""),
            )
            for line in status.get("conditions") or []
        )
        return [SetGroupStatus(key, GangPhase(status.get("phase", "Pending")), conditions)]
    if kind == NODES.kind and spec.get("unschedulable", False) != old_spec.get("unschedulable", False):
        return [Cordon(key, bool(spec.get("unschedulable")))]
    if kind in (REPLICA_SETS.kind, DEPLOYMENTS.kind) and spec.get("replicas") != old_spec.get("replicas"):
        namespace, name = key.split("/")
        return [Scale(namespace, name, int(spec.get("replicas", 1)))]
    return []


def _delete(machine: Machine, target: Target, options: Object, *, dry_run: bool) -> Object:
    if target.subresource:
        raise method_not_allowed()
    if target.kind is PODS:
        return pods.delete(machine, target, options, dry_run=dry_run)
    if not machine.owns(target.kind, target.namespace, target.name):
        gone = operations.delete(machine.store, target, options)
        return success(target.kind, target.name, gone["metadata"]["uid"])
    obj = operations.read(machine.store, target)
    operations.check_delete_preconditions(target, obj, options)
    step: Step
    if target.kind in _WORKLOADS:
        step = DeleteWorkload(target.namespace, target.name)
    elif target.kind is NODES:
        step = RemoveNode(target.name)
    else:
        raise conflict(target.kind, target.name, "it belongs to a workload; delete the workload")
    if not dry_run:
        try:
            machine.run(step)
        except WorldError as error:
            if error.code is not Refusal.NOT_FOUND:
                raise conflict(target.kind, target.name, error.message) from None
            raise not_found(target.kind, target.name) from None
    return success(target.kind, target.name, obj["metadata"]["uid"])
