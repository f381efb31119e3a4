"""Volcano Jobs as gangs: is it one, and what happens when it loses a member."""

from collections.abc import Iterator, Mapping
from typing import Any

from scheduler_core.model.finding import Finding, Severity
from scheduler_core.serde.lint.documents import Workload, integer, mapping, sequence

_EVICTED = ("PodEvicted", "*")
_ENDS_OR_RESTARTS = ("AbortJob", "RestartJob", "TerminateJob")
_FEW_RETRIES = 3


def lint_job(workload: Workload) -> Iterator[Finding]:
    """minAvailable and policies."""
    if workload.service_type != "inference":
        yield from _size(workload)
        yield from _evicted(workload)
    yield from _completed(workload)


def _size(workload: Workload) -> Iterator[Finding]:
    replicas = sum(template.replicas for template in workload.templates)
    least = workload.spec.get("minAvailable")
    if not isinstance(least, int) or isinstance(least, bool):
        return
    if not replicas:
        yield _found(
            workload, Severity.ERROR, "gang-never-complete", "spec.tasks",
            "no task has replicas, so there is no pod that could start",
            f"replicas: {max(least, 1)} in a task",
        )  # fmt: skip
    elif least > replicas:
        yield _found(
            workload, Severity.ERROR, "gang-never-complete", "spec.minAvailable",
            f"minAvailable is {least} and there are {replicas} replicas: the job never starts",
            f"minAvailable: {replicas}",
        )  # fmt: skip
    elif least < replicas:
        yield _found(
            workload, Severity.WARNING, "gang-not-whole", "spec.minAvailable",
            f"minAvailable is {least} of {replicas} replicas: the job starts, and goes on, with a part of its members",
            f"minAvailable: {replicas}, unless the training can do with fewer",
        )  # fmt: skip


def _evicted(workload: Workload) -> Iterator[Finding]:
    own = _actions(workload.spec.get("policies"), _EVICTED)
    of_tasks = [_actions(mapping(task).get("policies"), _EVICTED) for task in sequence(workload.spec.get("tasks"))]
    if not own and not (of_tasks and all(of_tasks)):
        yield _found(
            workload, Severity.WARNING, "no-evicted-policy", "spec.policies",
            "no policy for PodEvicted: a member that is taken back leaves the others waiting for it, on their cards",
            "policies: [{event: PodEvicted, action: RestartJob}]",
        )  # fmt: skip
        return
    chosen = [action for actions in (own, *of_tasks) for action in actions]
    failed = _actions(workload.spec.get("policies"), ("PodFailed", "*"))
    if any(action in _ENDS_OR_RESTARTS for action in chosen) and not failed:
        yield _found(
            workload, Severity.INFO, "evicted-looks-failed", "spec.policies",
            "a container that ends with an error on SIGTERM raises PodFailed first, and nothing is said for it",
            "the same action for PodFailed",
        )  # fmt: skip
    retries = integer(workload.spec.get("maxRetry"), _FEW_RETRIES)
    if "RestartJob" in chosen and retries <= _FEW_RETRIES:
        yield _found(
            workload, Severity.INFO, "few-retries", "spec.maxRetry",
            f"each eviction uses up one of {retries} retries; after that the job has failed",
            "a maxRetry that lasts for as many nights as the job runs",
        )  # fmt: skip


def _completed(workload: Workload) -> Iterator[Finding]:
    if len(workload.templates) > 1 and "CompleteJob" in _actions(workload.spec.get("policies"), ("TaskCompleted", "*")):
        names = ", ".join(template.name for template in workload.templates)
        yield _found(
            workload, Severity.WARNING, "completes-too-early", "spec.policies",
            f"TaskCompleted -> CompleteJob holds for every role ({names}): the job ends when the first of them is done",
            "put this policy on the role whose end is the end of the job",
        )  # fmt: skip


def _actions(policies: Any, events: tuple[str, ...]) -> list[str]:
    found = []
    for policy in sequence(policies):
        if isinstance(policy, Mapping):
            named = [*sequence(policy.get("events")), policy.get("event")]
            if any(event in events for event in named):
                found.append(str(policy.get("action") or ""))
    return found


def _found(workload: Workload, severity: Severity, code: str, path: str, message: str, fix: str) -> Finding:
    return Finding(severity=severity, code=code, object=workload.name, path=path, message=message, fix=fix)
