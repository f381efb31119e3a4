"""PodDisruptionBudget."""

from typing import Any

import msgspec

from scheduler_core.algorithms.allowance import share_of
from scheduler_core.model.disruption import DisruptionBudget
from scheduler_core.model.errors import BadInput
from scheduler_core.serde.kubernetes.decode import Int32, decode
from scheduler_core.serde.kubernetes.metadata import RawMeta, namespace_of
from scheduler_core.serde.kubernetes.selectors import RawLabelSelector, label_selector


class RawBudgetSpec(msgspec.Struct, rename="camel"):
    min_available: Int32 | str | None = None
    max_unavailable: Int32 | str | None = None
    selector: RawLabelSelector | None = None


class RawBudgetStatus(msgspec.Struct, rename="camel"):
    disruptions_allowed: Int32 = 0
    disrupted_pods: dict[str, Any] | None = None


class RawBudget(msgspec.Struct):
    metadata: RawMeta
    spec: RawBudgetSpec | None = None
    status: RawBudgetStatus | None = None


def read_disruption_budget(obj: object) -> DisruptionBudget:
    """Decode one PodDisruptionBudget. Raises BadInput: with the path below the object."""
    raw = decode(obj, RawBudget)
    spec, status = raw.spec or RawBudgetSpec(), raw.status
    return DisruptionBudget(
        namespace=namespace_of(raw.metadata),
        name=raw.metadata.name,
        selector=label_selector(spec.selector, ".spec.selector"),
        allowed=max(0, status.disruptions_allowed) if status is not None else None,
        min_available=_share(spec.min_available, ".spec.minAvailable"),
        max_unavailable=_share(spec.max_unavailable, ".spec.maxUnavailable"),
        disrupted=tuple(sorted(status.disrupted_pods or ())) if status is not None else (),
    )


def _share(value: int | str | None, path: str) -> str:
    if value is None:
        return ""
    try:
        share_of(str(value), 0)
    except ValueError as error:
        raise BadInput("bad_value", str(error), path=path, value=value, hint="for example 1 or 50%") from None
    return str(value)
