"""The PodGroups that a controller would make, and what a gang's owner says of it. Source: semantics 5.3 (PodGroup
creation) and 5.2 (policies); ``volcano.sh/*`` annotations flow from the workload to its PodGroup, and those of the pod
override them."""

from collections.abc import Mapping
from typing import Protocol

import msgspec

from scheduler_core.model.pod import OwnerReference, Pod
from scheduler_core.model.podgroup import EvictedPolicy, PodGroup
from scheduler_core.model.resources import MAX_CARDS, MAX_COUNT, MAX_CPU_MILLI, MAX_MEMORY_MIB, MILLI, Amount
from scheduler_core.serde.kubernetes import annotations as keys
from scheduler_core.serde.kubernetes.catalogue import Catalogue
from scheduler_core.serde.kubernetes.job import JobRecord, TaskRecord
from scheduler_core.serde.kubernetes.kinds import BATCH_JOB
from scheduler_core.serde.kubernetes.pod import VOLCANO_BATCH, PodRecord
from scheduler_core.serde.kubernetes.podgroup import DEFAULT_QUEUE, PodGroupRecord, flowing, read_notes
from scheduler_core.serde.kubernetes.workload import WorkloadRecord

# Owners right above their pods and whose annotations flow, by group and kind: how they are called here.
OTHERS = {("apps", "StatefulSet"): "StatefulSet", ("apps", "DaemonSet"): "DaemonSet", ("batch", "Job"): BATCH_JOB}


class Priorities(Protocol):
    """Value of a priority class by name."""

    def value(self, name: str) -> int:
        """The value of class ``name``, or of the global default."""


class Owners(msgspec.Struct, frozen=True):
    """Objects that own gangs, by namespace/name."""

    jobs: Mapping[str, JobRecord]
    replica_sets: Mapping[str, WorkloadRecord]
    deployments: Mapping[str, WorkloadRecord]
    others: Mapping[str, Mapping[str, WorkloadRecord]]
    namespaces: Mapping[str, Mapping[str, str]]


def completed(
    record: PodGroupRecord, members: list[PodRecord], job_key: str, owners: Owners, catalogue: Catalogue,
    priorities: Priorities,
) -> PodGroup:  # fmt: skip
    """A PodGroup of the input with what its class, its owner and its pods say of it. ``job_key``: the Job whose
    PodGroup has this name, for one that has neither an owner nor pods; empty for none."""
    group = record.group
    fields: dict[str, object] = {"priority": priorities.value(group.priority_class)}
    kind, name = group.owner_kind, group.owner_name
    version = record.owner.api_version if record.owner else ""
    if not kind and members and members[0].owner is not None:
        kind, name = members[0].owner.kind, members[0].owner.name
        fields["owner_kind"], fields["owner_name"], fields["owner_uid"] = kind, name, members[0].owner.uid
        version = members[0].owner.api_version
    elif not kind and job_key:
        kind, name, version = "Job", owners.jobs[job_key].name, VOLCANO_BATCH
        fields["owner_kind"], fields["owner_name"], fields["owner_uid"] = kind, name, owners.jobs[job_key].uid
    if (other := _other(version, kind)) is not None:
        above = owners.others[other].get(f"{group.namespace}/{name}")
        fields["replicas"] = above.replicas if above is not None else 0
    elif kind == "Job":
        job = owners.jobs.get(f"{group.namespace}/{name}")
        if job is not None:
            fields.update(_said_by_job(job))
            said = read_notes(job.annotations, job.labels)
            # Its annotations flow to the PodGroup; one that was made by hand may lack them.
            fields["service_type"] = group.service_type or said.service_type
            fields["preemptable"] = said.preemptable if group.preemptable is None else group.preemptable
            fields["card_request"] = group.card_request or said.card_request or job_cards(job, catalogue, priorities)
            fields["unsupported"] = group.unsupported or job.unsupported
            if job.unreadable:
                fields["problem"], fields["preemptable"] = group.problem or f"its Job: {job.unreadable}", False
        elif version.startswith(VOLCANO_BATCH):
            fields["waits_for_admission"] = True
    elif kind == "ReplicaSet":
        replica_set = owners.replica_sets.get(f"{group.namespace}/{name}")
        if replica_set is not None:
            fields["replicas"] = replica_set.replicas
    return msgspec.structs.replace(group, **fields)


def group_of_job(job: JobRecord, name: str, catalogue: Catalogue, priorities: Priorities) -> PodGroup:
    """The PodGroup that the job's controller would make."""
    said = read_notes(job.annotations, job.labels)
    return PodGroup(
        namespace=job.namespace,
        name=name,
        uid=job.uid,
        created=job.created,
        submitted=said.submitted,
        queue=job.queue,
        min_member=job.min_available or 1,
        min_task_member={task.name: task.min_available for task in job.tasks if task.explicit_min},
        min_resources=job_minimum(job, priorities),
        min_scalars=job_scalars(job, priorities),
        priority=priorities.value(job.priority_class),
        priority_class=job.priority_class,
        service_type=said.service_type,
        owner_kind="Job",
        owner_name=job.name,
        owner_uid=job.uid,
        preemptable=False if job.unreadable else said.preemptable,
        problem=job.unreadable,
        annotations=job.annotations,
        made=True,
        card_request=said.card_request or job_cards(job, catalogue, priorities),
        **_said_by_job(job),  # type: ignore[arg-type]  # fields of PodGroup by name
    )


def group_of_pods(name: str, members: list[PodRecord], owners: Owners, priorities: Priorities) -> PodGroup:
    """The PodGroup that a controller would make for pods that have none. ``name``: as the pods have it. ``members``:
    the pods, by name; at least one."""
    first = members[0]
    pod, namespace = first.pod, first.pod.namespace
    owner = pod.owner
    replicas, notes, unreadable = _owner_notes(first, owners)
    notes.update((key, text) for key, text in flowing(pod.annotations).items() if key not in keys.OF_THE_POD)
    said = read_notes(notes, pod.labels)
    least, problem = _least(pod, notes), unreadable or said.problem
    named = keys.GROUP_NAME in pod.annotations or keys.GROUP_NAME_VOLCANO in pod.annotations
    if named and name != group_name_of(owner, pod):
        # The author of the name was to make the PodGroup; its size is not known, so it must not start.
        problem = problem or f"its pods name the PodGroup {namespace}/{name}, which does not exist"
    priority = priorities.value(pod.priority_class) if pod.priority_class or not first.has_priority else pod.priority
    return PodGroup(
        namespace=namespace,
        name=name,
        uid=name,
        created=min(member.pod.created for member in members),
        submitted=said.submitted,
        queue=pod.annotations.get(keys.QUEUE_NAME)
        or owners.namespaces.get(namespace, {}).get(keys.QUEUE_NAME)
        or DEFAULT_QUEUE,
        min_member=least,
        min_resources=countable(Amount(pod.cpu_milli, pod.memory_mib).times(least)),
        min_scalars=_times(first.devices, least),
        card_request=said.card_request,
        priority=priority,
        priority_class=pod.priority_class,
        service_type=said.service_type,
        owner_kind=owner.kind if owner else "",
        owner_name=owner.name if owner else "",
        owner_uid=owner.uid if owner else "",
        preemptable=False if unreadable else said.preemptable,
        replicas=replicas,
        made=True,
        problem=problem,
        annotations=notes,
    )


def revision(group: PodGroup, first: PodRecord | None, owners: Owners, priorities: Priorities) -> PodGroup | None:
    """What a PodGroup that TideSched made would be if it were made now; None where that is what it is. ``group``: as it
    is. ``first``: the first of its pods, by name; without one nothing else is said. What cannot be read changes
    nothing: the PodGroup stays as it was made."""
    if first is None:
        return None
    made = group_of_pods(group.name, [first], owners, priorities)
    if made.problem or _wanted(made) == _wanted(group):
        return None
    return made


def _wanted(group: PodGroup) -> tuple[object, ...]:
    least = group.min_resources or Amount()
    return (
        group.min_member,
        group.queue,
        group.priority_class,
        (least.cpu_milli, least.memory_mib),
        {name: amount for name, amount in group.min_scalars.items() if amount},
        {key: text for key, text in group.annotations.items() if key.startswith(keys.FLOWING_PREFIX)},
    )


def group_name_of(owner: OwnerReference | None, pod: Pod) -> str:
    """How a controller would call the PodGroup of a pod; one of that name can be made anew at any time."""
    above = (owner.uid or owner.name) if owner else (pod.uid or pod.name)
    return f"podgroup-{above}"


def job_minimum(job: JobRecord, priorities: Priorities) -> Amount:
    """CPU and memory of the smallest set of pods with which the job may start."""
    total = Amount()
    for task, count in minimal_pods(job, priorities):
        total = total + Amount(task.cpu_milli, task.memory_mib).times(count)
    return countable(total)


def job_scalars(job: JobRecord, priorities: Priorities) -> dict[str, int]:
    """Other resources of that set in whole units, cards by the resource that counts them."""
    scalars: dict[str, int] = {}
    for task, count in minimal_pods(job, priorities):
        for name, amount in _times(task.devices, count).items():
            scalars[name] = min(scalars.get(name, 0) + amount, MAX_COUNT)
    return scalars


def _times(scalars: Mapping[str, int], count: int) -> dict[str, int]:
    return {name: min(amount * count, MAX_COUNT) for name, amount in sorted(scalars.items()) if amount and count}


def countable(amount: Amount) -> Amount:
    """An amount inside the bounds of the tables: more than the largest one is out of reach just the same."""
    return Amount(min(amount.cpu_milli, MAX_CPU_MILLI), min(amount.memory_mib, MAX_MEMORY_MIB))


def job_cards(job: JobRecord, catalogue: Catalogue, priorities: Priorities) -> dict[str, int]:
    """Milli-cards of that set by card name as written (``A|B`` for a choice); roles without a named card count none."""
    cards: dict[str, int] = {}
    for task, count in minimal_pods(job, priorities):
        request, _, _ = catalogue.request(task.names, task.devices, 0, task.products)
        if request is not None and request.names and count:
            cards[request.key] = min(cards.get(request.key, 0) + request.milli * count, MAX_CARDS * MILLI)
    return cards


def minimal_pods(job: JobRecord, priorities: Priorities) -> list[tuple[TaskRecord, int]]:
    """The fewest pods with which the job may start, by role; a role that has none of them may be left out."""
    wanted = job.min_available or 1
    by_priority = sorted(job.tasks, key=lambda task: -priorities.value(task.priority_class))
    of_roles = sum(task.min_available for task in job.tasks)
    chosen: list[tuple[TaskRecord, int]] = []
    if wanted < of_roles:
        for task in by_priority:
            count = min(wanted, task.replicas)
            chosen.append((task, count))
            wanted -= count
        return chosen
    left = wanted - of_roles
    for task in by_priority:
        more = min(left, max(0, task.replicas - task.min_available))
        chosen.append((task, task.min_available + more))
        left -= more
    return chosen


def _said_by_job(job: JobRecord) -> dict[str, object]:
    return {
        "owner_created": job.created,
        "evicted_policy": job.evicted_policy,
        "last_restart": job.last_restart and job.evicted_policy is EvictedPolicy.RESTART_JOB,
        "replicas": job.replicas,
        "suspended": job.suspended,
        "waits_for_admission": True,
        "unsupported": job.unsupported,
    }


def _owner_notes(record: PodRecord, owners: Owners) -> tuple[int, dict[str, str], str]:
    """Replicas, flowing annotations, problem of the workload above a pod: Deployment and ReplicaSet, or its owner."""
    if record.owner is None:
        return 0, {}, ""
    namespace, name = record.pod.namespace, record.owner.name
    other = _other(record.owner.api_version, record.owner.kind)
    if other is not None:
        above = owners.others[other].get(f"{namespace}/{name}")
        return (above.replicas, dict(above.annotations), above.unreadable) if above is not None else (0, {}, "")
    if record.owner.kind != "ReplicaSet":
        return 0, {}, ""
    replica_set = owners.replica_sets.get(f"{namespace}/{name}")
    parent = replica_set.owner if replica_set else name.rpartition("-")[0]
    deployment = owners.deployments.get(f"{namespace}/{parent}")
    notes, unreadable = dict[str, str](), ""
    for workload in (deployment, replica_set):
        if workload is not None:
            notes |= workload.annotations
            unreadable = unreadable or workload.unreadable
    known = replica_set or deployment
    return known.replicas if known else 0, notes, unreadable


def _other(api_version: str, kind: str) -> str | None:
    """How an owner right above its pods is called here; None for all others."""
    return OTHERS.get((api_version.rpartition("/")[0], kind))


def _least(pod: Pod, notes: dict[str, str]) -> int:
    """minMember of a made PodGroup."""
    text = notes.pop(keys.GROUP_MIN_MEMBER, None)
    if pod.labels.get(keys.POD_GROUP_LABEL) == pod.group:
        text = pod.labels.get(keys.MIN_AVAILABLE_LABEL, text)
    return 1 if text is None else int(text)
