"""Fields that keep a gang waiting with reason NotSupported."""

from collections.abc import Iterator, Mapping
from typing import Any

from scheduler_core.serde.kubernetes.decode import decode
from scheduler_core.serde.kubernetes.job import RawJob, unsupported_in
from scheduler_core.serde.kubernetes.pod_spec import RawPodSpec
from scheduler_core.serde.kubernetes.podgroup import read_pod_group
from scheduler_core.serde.kubernetes.unsupported import of_marks, of_pod_spec
from scheduler_core.serde.lint.documents import Workload
from scheduler_core.serde.lint.finding import Finding, Severity


def lint_unsupported(document: Mapping[str, Any], workload: Workload, schedulers: tuple[str, ...]) -> Iterator[Finding]:
    """The first such field of each template of a workload that names one of the ``schedulers``, and of its Job."""
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
