"""Card, cpu and memory figures of queues, projects and tenants: one statement for all of a change."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tidesched_web.changes.documents import MIB
from tidesched_web.changes.services.writing.rows import Rows
from tidesched_web.changes.tree_document import Document, kind_of
from tidesched_web.quota.models import CardQuota, ComputeQuota

_OWNERS = ("queue", "project", "tenant")
_BATCH = 2000

# (service type, card) → count
Cards = dict[tuple[str, str], int]


def write(rows: Rows) -> None:
    """Write what differs between the documents; deleted owners take their figures along."""
    lost: list[tuple[str, int, str, str]] = []
    wanted: list[CardQuota] = []
    for key in rows.keys:
        kind = kind_of(key)
        if kind not in _OWNERS or key not in rows.after:
            continue
        owner = rows.row_of[key]
        before, after = _cards(kind, rows.before.get(key)), _cards(kind, rows.after[key])
        lost += [(kind, owner.pk, *place) for place in before if place not in after]
        wanted += [
            CardQuota(
                cluster=rows.cluster,
                card_type=rows.card_types()[card],
                service_type=service_type,
                cards=count,
                **{kind: owner},
            )
            for (service_type, card), count in after.items()
            if before.get((service_type, card)) != count
        ]
        if kind != "queue":
            _write_compute(rows, kind, owner, key)
    _delete(rows, lost)
    CardQuota.objects.bulk_create(
        wanted,
        update_conflicts=True,
        unique_fields=["cluster", "card_type", "service_type", "queue", "tenant", "project"],
        update_fields=["cards"],
        batch_size=_BATCH,
    )


def _cards(kind: str, document: Document | None) -> Cards:
    if document is None:
        return {}
    if kind == "queue":
        return {(document["service_type"], card): count for card, count in document["card_quota"].items()}
    return {
        (service_type, card): count
        for service_type, limits in document["quota"].items()
        for card, count in limits.get("card_quota", {}).items()
    }


def _delete(rows: Rows, lost: list[tuple[str, int, str, str]]) -> None:
    for kind in _OWNERS:
        places = {place[1:] for place in lost if place[0] == kind}
        if not places:
            continue
        owned = CardQuota.objects.filter(cluster=rows.cluster, **{f"{kind}_id__in": {owner for owner, *_ in places}})
        columns = owned.values_list("pk", f"{kind}_id", "service_type", "card_type__name")
        CardQuota.objects.filter(pk__in=[pk for pk, *place in columns if tuple(place) in places]).delete()


def _compute(document: Document | None) -> Iterator[tuple[str, dict[str, Any]]]:
    for service_type, limits in (document or {}).get("quota", {}).items():
        memory = limits.get("memory_bytes")
        figures = {"cpu_milli": limits.get("cpu_milli"), "memory_mib": None if memory is None else memory // MIB}
        if any(figure is not None for figure in figures.values()):
            yield service_type, figures


def _write_compute(rows: Rows, kind: str, owner: Any, key: str) -> None:
    before, after = dict(_compute(rows.before.get(key))), dict(_compute(rows.after[key]))
    for service_type in sorted({*before, *after}):
        if before.get(service_type) == after.get(service_type):
            continue
        place = {"cluster": rows.cluster, "service_type": service_type, kind: owner}
        if service_type in after:
            ComputeQuota.objects.update_or_create(**place, defaults=after[service_type])
        else:
            ComputeQuota.objects.filter(**place).delete()
