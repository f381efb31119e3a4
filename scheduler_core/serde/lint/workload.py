"""Lint of workloads: Deployments, Jobs, pods and queues that a cluster takes and that do not behave as they read. Rules
are asked of each object alone, as it would be applied; what other objects say is not known here."""

from collections.abc import Iterator, Mapping
from typing import Any

from scheduler_core.model.errors import BadInput
from scheduler_core.model.finding import Finding, Severity, unreadable
from scheduler_core.serde.kubernetes import annotations as keys
from scheduler_core.serde.kubernetes.builder import DEFAULT_SCHEDULERS, SnapshotBuilder
from scheduler_core.serde.kubernetes.decode import decode
from scheduler_core.serde.kubernetes.job import RawJob, unsupported_in
from scheduler_core.serde.kubernetes.pod_spec import RawPodSpec
from scheduler_core.serde.kubernetes.podgroup import read_pod_group
from scheduler_core.serde.kubernetes.unsupported import of_marks, of_pod_spec
from scheduler_core.serde.lint.cards import lint_cards
from scheduler_core.serde.lint.documents import Workload, mapping, objects, texts, workload_of
from scheduler_core.serde.lint.gangs import lint_job
from scheduler_core.serde.lint.service import lint_service


def lint_unsupported(document: Mapping[str, Any], workload: Workload, schedulers: tuple[str, ...]) -> Iterator[Finding]:
    """The first field that keeps a gang waiting with reason NotSupported: of each template of a workload that names one
    of the ``schedulers``, and of its Job."""
    if workload.is_volcano_job:
        field = unsupported_in(decode(document, RawJob))
        if field:
            yield _finding(workload.name, field)
        return
    for template in workload.templates:
        spec = decode(template.spec, RawPodSpec)
        if spec.scheduler_name not in schedulers:
            continue
        place = template.at("spec")
        labels = template.labels
        field = of_pod_spec(spec, place) or of_marks(labels, template.annotations, template.at("metadata"))
        if field:
            yield _finding(workload.name, field)


def lint_pod_group(document: Mapping[str, Any], name: str) -> Iterator[Finding]:
    """The same of a PodGroup."""
    field = read_pod_group(document).group.unsupported
    if field:
        yield _finding(name, field)


def _finding(name: str, field: str) -> Finding:
    return Finding(
        severity=Severity.ERROR,
        code="not-supported",
        object=name,
        path=field,
        message=f"{field}: the scheduler does not act on this field, so the gang waits with reason NotSupported",
        fix=f"leave {field.rpartition('.')[2]} out, or name a schedulerName that acts on it",
    )


def lint_queue(document: Mapping[str, Any], name: str) -> Iterator[Finding]:
    """Its card quota, and what the tide does with it."""
    notes = texts(mapping(document.get("metadata")).get("annotations"))
    spec = mapping(document.get("spec"))
    if keys.CARD_QUOTA not in notes:
        yield Finding(
            severity=Severity.INFO, code="no-card-quota", object=name, path="metadata.annotations",
            message="the queue has no card quota: pods that name their card get none of it",
            fix=f"{keys.CARD_QUOTA}: '{{\"<card type>\": <how many>}}'",
        )  # fmt: skip
    kind, reclaimable = notes.get(keys.OWN_SERVICE_TYPE, ""), spec.get("reclaimable")
    if kind == "inference" and reclaimable is not False:
        yield Finding(
            severity=Severity.WARNING, code="inference-reclaimable", object=name, path="spec.reclaimable",
            message="an inference queue that others may take from", fix="reclaimable: false",
        )  # fmt: skip
    if kind == "training" and reclaimable is False:
        yield Finding(
            severity=Severity.WARNING, code="training-not-reclaimable", object=name, path="spec.reclaimable",
            message="a training queue that keeps its cards when inference needs them", fix="reclaimable: true",
        )  # fmt: skip


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
