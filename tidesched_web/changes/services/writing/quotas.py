from collections.abc import Iterator
from typing import Any

from django.db import connection

from tidesched_web.changes.documents import MIB
from tidesched_web.changes.services.writing.rows import Rows
from tidesched_web.changes.tree_document import Document, kind_of
from tidesched_web.quota.models import CardQuota, ComputeQuota

_OWNERS = ("queue", "project", "tenant")
_BATCH = 2000
# Some ten thousand rows in one statement; as objects of the model they would cost four times as much.
_UPSERT = """
INSERT INTO quota_cardquota (cluster_id, card_type_id, service_type, queue_id, project_id, tenant_id, cards)
SELECT %s, * FROM unnest(%s::bigint[], %s::text[], %s::bigint[], %s::bigint[], %s::bigint[], %s::integer[])
ON CONFLICT (cluster_id, card_type_id, service_type, queue_id, tenant_id, project_id)
DO UPDATE SET cards = excluded.cards
"""

# (service type, card) → count
Cards = dict[tuple[str, str], int]


def write(rows: Rows) -> None:
    _write_cards(rows)
    _write_compute(rows)


def _write_cards(rows: Rows) -> None:
    lost: list[tuple[str, int, str, str]] = []
    wanted: list[tuple[int, str, int | None, int | None, int | None, int]] = []
    for key in rows.keys:
        kind = kind_of(key)
        if kind not in _OWNERS or key not in rows.after:
            continue
        owner = rows.row_of[key]
        before, after = _cards(kind, rows.before.get(key)), _cards(kind, rows.after[key])
        lost += [(kind, owner.pk, *place) for place in before if place not in after]
        holder = [owner.pk if kind == one else None for one in _OWNERS]
        wanted += [
            (rows.card_types()[card].pk, service_type, holder[0], holder[1], holder[2], count)
            for (service_type, card), count in after.items()
            if before.get((service_type, card)) != count
        ]
    _delete(rows, lost)
    if wanted:
        with connection.cursor() as cursor:
            cursor.execute(_UPSERT, [rows.cluster.pk, *map(list, zip(*wanted, strict=True))])


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


def _write_compute(rows: Rows) -> None:
    wanted: list[ComputeQuota] = []
    for kind in ("project", "tenant"):
        lost: set[tuple[int, str]] = set()
        for key in rows.of_kind(kind):
            if key not in rows.after:
                continue
            owner = rows.row_of[key]
            before, after = dict(_compute(rows.before.get(key))), dict(_compute(rows.after[key]))
            lost |= {(owner.pk, service_type) for service_type in before if service_type not in after}
            wanted += [
                ComputeQuota(cluster=rows.cluster, service_type=service_type, **{kind: owner}, **figures)
                for service_type, figures in after.items()
                if before.get(service_type) != figures
            ]
        if lost:
            owned = ComputeQuota.objects.filter(
                cluster=rows.cluster, **{f"{kind}_id__in": {owner for owner, _service_type in lost}}
            ).values_list("pk", f"{kind}_id", "service_type")
            ComputeQuota.objects.filter(pk__in=[pk for pk, *place in owned if tuple(place) in lost]).delete()
    ComputeQuota.objects.bulk_create(
        wanted,
        update_conflicts=True,
        unique_fields=["cluster", "service_type", "tenant", "project"],
        update_fields=["cpu_milli", "memory_mib"],
        batch_size=_BATCH,
    )
