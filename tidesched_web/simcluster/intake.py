from typing import Any

from scheduler_core.model.errors import BadInput
from scheduler_core.model.podgroup import EvictedPolicy
from scheduler_core.model.resources import MILLI
from scheduler_core.serde.kubernetes.job import read_job
from scheduler_core.serde.kubernetes.node import read_node
from scheduler_core.serde.kubernetes.pod import read_pod
from scheduler_core.serde.kubernetes.quantities import card_names
from scheduler_core.simulator.workload import OwnerKind, PodTemplate, Workload
from tidesched_web.simcluster.errors import ApiError, invalid
from tidesched_web.simcluster.resources import DEPLOYMENTS, JOBS, NODES, ResourceType
from tidesched_web.simcluster.steps import PutNode, Step, Submit
from tidesched_web.simcluster.store import Object

# Says how long the simulated work of a Job or service takes, in seconds of the cluster's clock; for ever without it.
RUN_SECONDS = "tidesched.io/run-seconds"
_CARD_NAME, _CARD_MILLI = "volcano.sh/card.name", "tidesched.io/card-milli"
_SERVICE_TYPE, _QUEUE = "volcano.sh/service.type", "scheduling.volcano.sh/queue-name"
_MIN_MEMBER = "scheduling.volcano.sh/group-min-member"
_CONTROLLERS_OWN = ("scheduling.k8s.io/group-name", "volcano.sh/task-spec", _CARD_NAME, _CARD_MILLI, _QUEUE)

TAKEN_IN: tuple[ResourceType, ...] = (NODES, JOBS, DEPLOYMENTS)


def step_for(kind: ResourceType, obj: Object) -> Step:
    name = obj["metadata"]["name"]
    try:
        if kind is NODES:
            return PutNode(read_node(obj).node)
        if kind is JOBS:
            return Submit(_job(obj))
        return Submit(_service(obj))
    except BadInput as error:
        raise invalid(kind, name, (error.path or "").lstrip("."), error.message) from None


def _job(obj: Object) -> Workload:
    job, name = read_job(obj), obj["metadata"]["name"]
    tasks = obj.get("spec", {}).get("tasks") or []
    if not tasks:
        raise invalid(JOBS, name, "spec.tasks", "Required value: a job has at least one task")
    templates = [task.get("template") or {} for task in tasks]
    if any(template != templates[0] for template in templates):
        raise invalid(JOBS, name, "spec.tasks", "the simulated cluster runs jobs whose pods are all alike")
    annotations = obj["metadata"].get("annotations") or {}
    return Workload(
        namespace=job.namespace,
        name=name,
        queue=job.queue,
        service_type=annotations.get(_SERVICE_TYPE, "training"),
        owner_kind=OwnerKind.JOB,
        template=_template(JOBS, name, templates[0]),
        replicas=job.replicas,
        min_member=max(1, job.min_available),
        priority_class=job.priority_class or _priority_class(templates[0]),
        evicted_policy=job.evicted_policy,
        duration=_run_seconds(JOBS, name, annotations),
        ttl_seconds=_ttl(obj),
        labels=job.labels,
        annotations=job.annotations,
        scheduler=job.scheduler,
    )


def _service(obj: Object) -> Workload:
    metadata, spec = obj["metadata"], obj.get("spec") or {}
    annotations, template = metadata.get("annotations") or {}, spec.get("template") or {}
    of_pod = (template.get("metadata") or {}).get("annotations") or {}
    return Workload(
        namespace=metadata["namespace"],
        name=metadata["name"],
        queue=of_pod.get(_QUEUE, "default"),
        service_type=annotations.get(_SERVICE_TYPE, "inference"),
        owner_kind=OwnerKind.REPLICA_SET,
        template=_template(DEPLOYMENTS, metadata["name"], template),
        replicas=spec.get("replicas", 1),
        min_member=_min_member(metadata["name"], annotations),
        priority_class=_priority_class(template),
        evicted_policy=EvictedPolicy.NONE,
        duration=_run_seconds(DEPLOYMENTS, metadata["name"], annotations),
        labels=metadata.get("labels") or {},
        annotations=annotations,
        scheduler=(template.get("spec") or {}).get("schedulerName", "default-scheduler"),
    )


def _template(kind: ResourceType, name: str, template: Object) -> PodTemplate:
    metadata = template.get("metadata") or {}
    annotations: dict[str, str] = metadata.get("annotations") or {}
    as_pod = {"metadata": {"name": name, "namespace": "x", "annotations": annotations}, "spec": template.get("spec")}
    record = read_pod({"apiVersion": "v1", "kind": "Pod", **as_pod})
    if len(record.devices) > 1:
        raise invalid(kind, name, "spec.template", "the simulated cluster runs pods with one extended resource at most")
    resource, count = next(iter(record.devices.items()), ("", 0))
    return PodTemplate(
        cpu_milli=record.pod.cpu_milli,
        memory_mib=record.pod.memory_mib,
        card_names=card_names(annotations[_CARD_NAME]) if _CARD_NAME in annotations else (),
        resource=resource,
        card_milli=record.share or count * MILLI,
        node_selector=record.pod.node_selector,
        labels=metadata.get("labels") or {},
        annotations={key: value for key, value in annotations.items() if key not in _CONTROLLERS_OWN},
    )


def _priority_class(template: Object) -> str:
    return str((template.get("spec") or {}).get("priorityClassName") or "")


def _run_seconds(kind: ResourceType, name: str, annotations: dict[str, str]) -> float | None:
    text = annotations.get(RUN_SECONDS)
    if text is None:
        return None
    try:
        return float(text)
    except ValueError:
        why = f"{text!r} is not a number of seconds"
        raise invalid(kind, name, f"metadata.annotations[{RUN_SECONDS}]", why) from None


def _min_member(name: str, annotations: dict[str, str]) -> int:
    text = annotations.get(_MIN_MEMBER, "1")
    if not (text.isascii() and text.isdigit()):
        raise invalid(DEPLOYMENTS, name, f"metadata.annotations[{_MIN_MEMBER}]", f"{text!r} is not a whole number")
    return int(text)


def _ttl(obj: Object) -> float | None:
    ttl: Any = obj.get("spec", {}).get("ttlSecondsAfterFinished")
    return None if ttl is None else float(ttl)


def refuse(kind: ResourceType, name: str, message: str) -> ApiError:
    return ApiError(403, "Forbidden", f'{kind.qualified} "{name}" is forbidden: {message}', kind=kind, name=name)
