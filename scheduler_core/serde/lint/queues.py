"""Queues: their card quota, and what the tide does with them."""

from collections.abc import Iterator, Mapping
from typing import Any

from scheduler_core.model.errors import BadInput
from scheduler_core.serde.kubernetes import annotations as keys
from scheduler_core.serde.kubernetes.quantities import read_card_counts
from scheduler_core.serde.lint.documents import mapping, texts
from scheduler_core.serde.lint.finding import Finding, Severity


def lint_queue(document: Mapping[str, Any], name: str) -> Iterator[Finding]:
    notes = texts(mapping(document.get("metadata")).get("annotations"))
    spec = mapping(document.get("spec"))
    path = f"metadata.annotations[{keys.CARD_QUOTA!r}]"
    if keys.CARD_QUOTA not in notes:
        yield Finding(
            severity=Severity.INFO, code="no-card-quota", object=name, path="metadata.annotations",
            message="the queue has no card quota: pods that name their card get none of it",
            fix=f"{keys.CARD_QUOTA}: '{{\"<card type>\": <how many>}}'",
        )  # fmt: skip
    else:
        try:
            read_card_counts(notes[keys.CARD_QUOTA], path)
        except (ValueError, BadInput) as error:
            yield Finding(
                severity=Severity.ERROR, code="bad-card-quota", object=name, path=path, message=str(error),
                fix=f"{keys.CARD_QUOTA}: '{{\"NVIDIA-H200\": 8}}'",
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
