"""Job (``batch.volcano.sh``): the gang that its controller makes of it."""

from typing import Any

import msgspec

from scheduler_core.model.errors import BadInput
from scheduler_core.model.podgroup import EvictedPolicy
from scheduler_core.serde.kubernetes import annotations as keys
from scheduler_core.serde.kubernetes.affinity import required_terms
from scheduler_core.serde.kubernetes.decode import Int32, decode
from scheduler_core.serde.kubernetes.metadata import RawMeta, RawTemplateMeta, created, namespace_of, texts
from scheduler_core.serde.kubernetes.pod import VOLCANO_BATCH, PodRecord, read_pod
from scheduler_core.serde.kubernetes.pod_spec import RawPodSpec
from scheduler_core.serde.kubernetes.podgroup import DEFAULT_QUEUE, at_least, read_notes
from scheduler_core.serde.kubernetes.products import named_products
from scheduler_core.serde.kubernetes.quantities import card_names
from scheduler_core.serde.kubernetes.requests import effective_request
from scheduler_core.serde.kubernetes.unsupported import RawTopology, of_marks, of_pod_spec, of_topology

# What Volcano's webhook writes into a job that names no scheduler.
VOLCANO_SCHEDULER = "volcano"
# And into one that does not say how often it may be restarted.
MAX_RETRY = 3
_VERSION = f"{VOLCANO_BATCH}v1alpha1"
_EVICTED = ("PodEvicted", "*")
_ACTIONS = {policy.value: policy for policy in EvictedPolicy if policy}
# The controller has stopped it: no pods are made any more.
_SUSPENDED = ("Aborting", "Aborted")
# Its pods are made once its PodGroup is admitted.
_NOT_BEGUN = ("", "Pending")
_ENDED = ("Terminating", "Terminated", "Completing", "Completed", "Failed")


class RawPolicy(msgspec.Struct):
    action: str | None = None
    event: str | None = None
    events: list[str] | None = None


class RawTemplate(msgspec.Struct):
    metadata: RawTemplateMeta | None = None
    spec: RawPodSpec | None = None


class RawTask(msgspec.Struct, rename="camel"):
    name: str | None = None
    replicas: Int32 | None = None
    min_available: Int32 | None = None
    template: RawTemplate | None = None
    policies: list[RawPolicy] | None = None
    partition_policy: dict[str, Any] | None = None


class RawJobSpec(msgspec.Struct, rename="camel"):
    scheduler_name: str | None = None
    queue: str | None = None
    priority_class_name: str | None = None
    min_available: Int32 | None = None
    max_retry: Int32 | None = None
    policies: list[RawPolicy] | None = None
    tasks: list[RawTask] | None = None
    network_topology: RawTopology | None = None


class RawJobState(msgspec.Struct):
    phase: str | None = None


class RawJobStatus(msgspec.Struct, rename="camel"):
    state: RawJobState | None = None
    retry_count: Int32 | None = None


class RawJob(msgspec.Struct):
    """A Volcano Job object."""

    metadata: RawMeta
    spec: RawJobSpec | None = None
    status: RawJobStatus | None = None


class TaskRecord(msgspec.Struct, frozen=True):
    """One role of a job: how many pods, and what each of them asks for."""

    name: str
    replicas: int
    min_available: int
    explicit_min: bool
    priority_class: str
    cpu_milli: int
    memory_mib: int
    devices: dict[str, int]
    names: tuple[str, ...]
    products: tuple[str, ...] = ()


class JobRecord(msgspec.Struct, frozen=True):
    namespace: str
    name: str
    uid: str
    created: float
    scheduler: str
    queue: str
    priority_class: str
    min_available: int
    tasks: tuple[TaskRecord, ...]
    evicted_policy: EvictedPolicy
    suspended: bool
    ended: bool
    labels: dict[str, str]
    annotations: dict[str, str]
    unsupported: str = ""
    last_restart: bool = False
    unreadable: str = ""
    # One pod of each task as its controller would make it; empty once pods may be there, or where one cannot be read.
    templates: tuple[PodRecord, ...] = ()

    @property
    def replicas(self) -> int:
        return sum(task.replicas for task in self.tasks)

    @property
    def group_names(self) -> tuple[str, ...]:
        """Names that its PodGroup may have; the first is the one that its controller gives now."""
        return (f"{self.name}-{self.uid}", self.name) if self.uid else (self.name,)


def read_job(obj: object) -> JobRecord:
    """Decode one Volcano Job. Raises BadInput: with the path below the object."""
    raw = decode(obj, RawJob)
    meta, spec = raw.metadata, raw.spec or RawJobSpec()
    tasks = tuple(_task(task, i) for i, task in enumerate(spec.tasks or ()))
    wanted, labels, notes = spec.min_available, texts(meta.labels), texts(meta.annotations)
    if (wrong := read_notes(notes, labels).wrong) is not None:
        raise wrong
    phase = (raw.status.state.phase if raw.status and raw.status.state else None) or ""
    return JobRecord(
        namespace=namespace_of(meta),
        name=meta.name,
        uid=meta.uid,
        created=created(meta),
        scheduler=spec.scheduler_name or VOLCANO_SCHEDULER,
        queue=spec.queue or DEFAULT_QUEUE,
        priority_class=spec.priority_class_name or "",
        min_available=sum(task.min_available for task in tasks)
        if wanted is None
        else at_least(0, wanted, ".spec.minAvailable"),
        tasks=tasks,
        evicted_policy=evicted_policy(spec),
        suspended=phase in _SUSPENDED,
        ended=phase in _ENDED,
        labels=labels,
        annotations=notes,
        unsupported=unsupported_in(raw),
        last_restart=_fails_next(spec, raw.status or RawJobStatus()),
        templates=_templates(obj, raw) if phase in _NOT_BEGUN else (),
    )


def _templates(obj: Any, raw: RawJob) -> tuple[PodRecord, ...]:
    """A pod of each task as the controller would make it: under the Job's scheduler, with the name of its role."""
    meta, spec = raw.metadata, raw.spec or RawJobSpec()
    found = []
    for index, task in enumerate(obj["spec"]["tasks"] if spec.tasks else ()):
        name, template = task.get("name") or f"default{index}", task.get("template") or {}
        marks, of_pod = template.get("metadata") or {}, template.get("spec") or {}
        owner = {"kind": "Job", "name": meta.name, "uid": meta.uid, "apiVersion": _VERSION, "controller": True}
        made = {
            "metadata": {
                **marks,
                "name": f"{meta.name}-{name}",
                "namespace": namespace_of(meta),
                "creationTimestamp": meta.creation_timestamp,
                "annotations": {**(marks.get("annotations") or {}), keys.TASK_SPEC: name},
                "ownerReferences": [owner],
            },
            "spec": {
                **of_pod,
                "schedulerName": of_pod.get("schedulerName") or spec.scheduler_name or VOLCANO_SCHEDULER,
            },
        }
        try:
            found.append(read_pod(made))
        except BadInput:
            return ()  # the session says so of the pods themselves, once they are there
    return tuple(found)


def _fails_next(spec: RawJobSpec, status: RawJobStatus) -> bool:
    """Whether the next restart fails the job: its controller counts the restart, and ends the job at ``maxRetry``."""
    return (status.retry_count or 0) + 1 >= (spec.max_retry or MAX_RETRY)


def unsupported_in(job: RawJob) -> str:
    """The first field that asks for what the scheduler does not do; empty for none."""
    spec = job.spec or RawJobSpec()
    of_tasks = (_unsupported(task, i) for i, task in enumerate(spec.tasks or ()))
    return of_topology(spec.network_topology) or next(filter(None, of_tasks), "")


def _unsupported(task: RawTask, index: int) -> str:
    """The first field of a role that asks for what the scheduler does not do; empty for none."""
    path, template = f"spec.tasks[{index}]", task.template or RawTemplate()
    if task.partition_policy:
        return f"{path}.partitionPolicy"
    marks = template.metadata
    of_spec = of_pod_spec(template.spec, f"{path}.template.spec") if template.spec else ""
    if of_spec or marks is None:
        return of_spec
    return of_marks(texts(marks.labels), texts(marks.annotations), f"{path}.template.metadata")


def _task(task: RawTask, index: int) -> TaskRecord:
    path = f".spec.tasks[{index}]"
    replicas = at_least(0, 1 if task.replicas is None else task.replicas, f"{path}.replicas")
    template = task.template or RawTemplate()
    pod_spec = template.spec or RawPodSpec()
    notes = texts(template.metadata.annotations) if template.metadata else {}
    cpu, memory, devices = effective_request(pod_spec, f"{path}.template.spec")
    least = task.min_available
    return TaskRecord(
        name=task.name or f"default{index}",
        replicas=replicas,
        min_available=replicas if least is None else at_least(0, least, f"{path}.minAvailable"),
        explicit_min=least is not None,
        priority_class=pod_spec.priority_class_name or "",
        cpu_milli=cpu,
        memory_mib=memory,
        devices=devices,
        names=card_names(notes[keys.CARD_NAME]) if keys.CARD_NAME in notes else (),
        products=named_products(texts(pod_spec.node_selector), required_terms(affinity.node_affinity))
        if (affinity := pod_spec.affinity)
        else named_products(texts(pod_spec.node_selector), None),
    )


def evicted_policy(spec: RawJobSpec) -> EvictedPolicy:
    """What happens to the job when one of its pods is evicted. For each role its own policies are asked first, then the
    job's; the first that matches counts. Where roles differ, one that ends or restarts the job wins: which role loses a
    pod is not known beforehand."""
    of_job = _first_match(spec.policies)
    policies = [_first_match(task.policies) or of_job for task in spec.tasks or ()] or [of_job]
    return next((p for p in policies if p.fells_gang), policies[0])


def _first_match(policies: list[RawPolicy] | None) -> EvictedPolicy:
    for policy in policies or ():
        events = [*(policy.events or ()), *((policy.event,) if policy.event else ())]
        if any(event in _EVICTED for event in events):
            return _ACTIONS.get(policy.action or "", EvictedPolicy.NONE)
    return EvictedPolicy.NONE
