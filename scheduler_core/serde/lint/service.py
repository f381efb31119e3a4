"""What a workload is for, who may take it, and where its annotations arrive."""

from collections.abc import Iterator

from scheduler_core.model.finding import Finding, Severity, unreadable
from scheduler_core.serde.kubernetes import annotations as keys
from scheduler_core.serde.kubernetes.builder import DEFAULT_SCHEDULERS
from scheduler_core.serde.kubernetes.job import VOLCANO_SCHEDULER
from scheduler_core.serde.kubernetes.podgroup import flowing, read_notes
from scheduler_core.serde.lint.documents import Template, Workload


def lint_service(workload: Workload) -> Iterator[Finding]:
    for template in workload.templates:
        # Of a Job's template they do not reach the PodGroup.
        wrong = None if workload.is_volcano_job else read_notes(flowing(template.annotations), template.labels).wrong
        if wrong is not None and template.path:
            wrong.path = template.at((wrong.path or "").lstrip("."))
            yield unreadable(wrong, workload.name)
        yield from _protection(workload, template)
        yield from _scheduler(workload, template)
    if workload.is_volcano_job and not workload.spec.get("schedulerName"):
        yield Finding(
            severity=Severity.INFO,
            code="scheduler-not-named",
            object=workload.name,
            path="spec.schedulerName",
            message=f"the job names no scheduler: Volcano's webhook writes {VOLCANO_SCHEDULER}, and so it is read",
            fix=f"schedulerName: {VOLCANO_SCHEDULER}",
        )
    if not workload.is_volcano_job:
        yield from _queue(workload)
    elif not workload.spec.get("queue"):
        yield Finding(
            severity=Severity.WARNING,
            code="no-queue",
            object=workload.name,
            path="spec.queue",
            message="the job names no queue and goes to queue default, which as a rule has no card quota",
            fix="name the queue that pays for it",
        )


def _protection(workload: Workload, template: Template) -> Iterator[Finding]:
    if workload.service_type != "inference" or template.annotations.get(keys.PREEMPTABLE) == "false":
        return
    elsewhere = template.path and workload.annotations.get(keys.PREEMPTABLE) == "false"
    where = (
        "on the workload itself it reaches the PodGroup at best, and Volcano's reclaim and preempt look at the pod"
        if elsewhere
        else "nothing protects these pods where a policy lets other gangs take from inference"
    )
    yield Finding(
        severity=Severity.WARNING,
        code="inference-not-protected",
        object=workload.name,
        path=template.at("metadata.annotations"),
        message=f'inference pods do not say {keys.PREEMPTABLE}: "false"; {where}',
        fix=f'{keys.PREEMPTABLE}: "false" in the annotations of the pod template',
    )


def _scheduler(workload: Workload, template: Template) -> Iterator[Finding]:
    name = template.spec.get("schedulerName") or (
        workload.spec.get("schedulerName") if workload.is_volcano_job else None
    )
    if workload.is_volcano_job and name is None:
        return
    if name not in DEFAULT_SCHEDULERS:
        yield Finding(
            severity=Severity.WARNING,
            code="other-scheduler",
            object=workload.name,
            path=template.at("spec.schedulerName"),
            message=f"its pods go to {name or 'default-scheduler'}: no queue, no quota and no gang holds for them",
            fix=f"schedulerName: {' or '.join(sorted(DEFAULT_SCHEDULERS))}",
        )


def _queue(workload: Workload) -> Iterator[Finding]:
    on_pods = all(keys.QUEUE_NAME in template.annotations for template in workload.templates)
    if on_pods:
        return
    path = workload.templates[0].at("metadata.annotations") if workload.templates else "metadata.annotations"
    if keys.QUEUE_NAME in workload.annotations and workload.kind != "Pod":
        yield Finding(
            severity=Severity.WARNING,
            code="queue-not-on-pod",
            object=workload.name,
            path=path,
            message=f"{keys.QUEUE_NAME} is on the {workload.kind}, and only the one on the pod is read",
            fix=f"move {keys.QUEUE_NAME} to the annotations of the pod template",
        )
        return
    yield Finding(
        severity=Severity.INFO,
        code="no-queue",
        object=workload.name,
        path=path,
        message="the pods name no queue: they go to that of their namespace, else to queue default",
        fix=f"{keys.QUEUE_NAME}: <queue>",
    )
