"""Lint of workloads: Deployments, Jobs, pods and queues that a cluster takes and that do not behave as they read. Rules
are asked of each object alone, as it would be applied; what other objects say is not known here."""

from collections.abc import Mapping
from typing import Any

from scheduler_core.model.errors import BadInput
from scheduler_core.serde.kubernetes.builder import DEFAULT_SCHEDULERS, SnapshotBuilder
from scheduler_core.serde.lint.cards import lint_cards
from scheduler_core.serde.lint.documents import objects, workload_of
from scheduler_core.serde.lint.finding import Finding, unreadable
from scheduler_core.serde.lint.gangs import lint_job
from scheduler_core.serde.lint.queues import lint_queue
from scheduler_core.serde.lint.service import lint_service
from scheduler_core.serde.lint.unsupported import lint_pod_group, lint_unsupported


def lint_workloads(text: str | bytes, file: str | None = None) -> list[Finding]:
    """Findings of all objects of a file, object by object. Raises BadInput: the file holds no Kubernetes objects."""
    found: list[Finding] = []
    looked_at = False
    for path, document in objects(text, file):
        findings = _lint(document, path)
        looked_at = looked_at or findings is not None
        found += findings or ()
    if not looked_at:
        kinds = "a Deployment, StatefulSet, DaemonSet, ReplicaSet, Job, Pod or Queue"
        raise BadInput("no_workload", "the file holds nothing that lint knows", file=file, hint=kinds)
    return found


def _lint(document: Mapping[str, Any], path: str) -> list[Finding] | None:
    """Findings of one object; None for a kind without rules."""
    name = _name(document)
    try:
        SnapshotBuilder().upsert(document)
    except BadInput as error:
        return [unreadable(error, name or path)]
    if document.get("kind") == "Queue":
        return list(lint_queue(document, name))
    if document.get("kind") == "PodGroup":
        return list(lint_pod_group(document, name))
    workload = workload_of(document, name)
    if workload is None:
        return None
    found = [*lint_service(workload), *lint_cards(workload)]
    found += lint_unsupported(document, workload, DEFAULT_SCHEDULERS)
    return [*found, *lint_job(workload)] if workload.is_volcano_job else found


def _name(document: Mapping[str, Any]) -> str:
    meta = document.get("metadata")
    meta = meta if isinstance(meta, Mapping) else {}
    own = str(meta.get("name") or "")
    full = f"{meta['namespace']}/{own}" if meta.get("namespace") else own
    return f"{document.get('kind') or 'object'} {full}".strip()
