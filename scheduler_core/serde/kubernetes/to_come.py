"""The pods that the controller of a Job makes once its gang is admitted, role by role. A session does not ask for them.
Who tries out whether an admitted Job would start needs them: what a pod of one of several roles asks for is in the Job
alone, since the PodGroup has the sum."""

from typing import Any

import msgspec

from scheduler_core.model.podgroup import PodGroup, RolePods
from scheduler_core.serde.kubernetes.catalogue import Catalogue
from scheduler_core.serde.kubernetes.classes import Classes
from scheduler_core.serde.kubernetes.gangs import minimal_pods
from scheduler_core.serde.kubernetes.job import JobRecord
from scheduler_core.serde.kubernetes.settled import settle


def with_pods_to_come(
    group: PodGroup, job: JobRecord | None, catalogue: Catalogue, classes: Classes, schedulers: frozenset[str]
) -> PodGroup:
    """The gang of a Job that has no pods yet, with those that it will have; as it is where they cannot be known. A pod
    without a priority of its own has that of the gang, as a controller would give it."""
    if job is None or not job.templates or group.unsupported or group.problem:
        return group
    least = {task.name: count for task, count in minimal_pods(job, classes)}
    found = []
    for task, record in zip(job.tasks, job.templates, strict=True):
        pod, problem = settle(record, catalogue, classes, schedulers)
        if problem or record.unsupported or pod.scheduler not in schedulers:
            return group
        fields: dict[str, Any] = {"group": group.name}
        if not record.has_priority and not pod.priority_class:
            fields |= {"priority": group.priority, "priority_class": group.priority_class}
        if task.replicas:
            whole = msgspec.structs.replace(pod, **fields)
            found.append(RolePods(task.name, task.replicas, least.get(task.name, 0), whole))
    return msgspec.structs.replace(group, to_come=tuple(found))
