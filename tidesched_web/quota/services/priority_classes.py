"""Priority classes: the four levels of the founding documents, and more."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from django.db import transaction

from tidesched_web.clusters.models import Cluster
from tidesched_web.common.validation import check_fields
from tidesched_web.quota.models import PriorityClass
from tidesched_web.quota.services.recording import record

DEFAULT_PRIORITY_CLASSES: Final[Mapping[str, int]] = MappingProxyType(
    {"pc-high": 80000, "pc-medium": 60000, "pc-normal": 40000, "pc-low": 20000}
)
_LEVEL = {"pc-high": "High", "pc-medium": "Medium", "pc-normal": "Normal", "pc-low": "Low"}


@transaction.atomic
def ensure_priority_class(
    *,
    cluster: Cluster,
    name: str,
    value: int,
    actor: str,
    global_default: bool = False,
    preemption_policy: str = "PreemptLowerPriority",
    description: str = "",
    reason: str = "",
) -> PriorityClass:
    """The class of this name, made where it is missing. A live one keeps its value: Kubernetes cannot change it."""
    fields = {
        "value": value,
        "global_default": global_default,
        "preemption_policy": preemption_policy,
        "description": description,
    }
    check_fields(PriorityClass(cluster=cluster, name=name, **fields))
    found, created = PriorityClass.objects.get_or_create(cluster=cluster, name=name, defaults=fields)
    if created:
        record(
            found,
            kind="priority_class",
            verb="create",
            actor=actor,
            label=name,
            cluster=cluster,
            reason=reason,
            after={"name": name, **fields},
        )
    return found


def ensure_default_priority_classes(*, cluster: Cluster, actor: str) -> list[PriorityClass]:
    """The four levels that every cluster starts with."""
    return [
        ensure_priority_class(
            cluster=cluster,
            name=name,
            value=value,
            actor=actor,
            description=f"{_LEVEL[name]} priority class for Volcano.",
        )
        for name, value in DEFAULT_PRIORITY_CLASSES.items()
    ]
