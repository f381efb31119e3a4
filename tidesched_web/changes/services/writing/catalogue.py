from decimal import Decimal
from typing import Any

from django.db.models import F

from tidesched_web.changes.services.writing.rows import Rows, counted
from tidesched_web.changes.tree_document import parts_of
from tidesched_web.clusters.models import CardType, Cluster
from tidesched_web.quota.models import PriorityClass, SyncState, TidePlan

_CLASS_FIELDS = ("value", "global_default", "preemption_policy", "description")


def write_rules(rows: Rows) -> None:
    for key, document in rows.changed("rules"):
        cluster = rows.locked(Cluster.objects.filter(pk=rows.cluster.pk))[0]
        cluster.approval_required = document["approval_required"]
        cluster.overcommit_inference = Decimal(document["overcommit_inference_percent"]) / 100
        cluster.overcommit_training = Decimal(document["overcommit_training_percent"]) / 100
        counted([cluster], ["approval_required", "overcommit_inference", "overcommit_training"])
        rows.tell(key, cluster)


def write_card_types(rows: Rows) -> None:
    """Declare card types ahead of the nodes that carry them, whole cards before their slices."""
    made = sorted(rows.made("card-type"), key=lambda pair: (pair[1].get("parent") is not None, pair[0]))
    for key, document in [*made, *rows.changed("card-type")]:
        fields = _card_fields(rows, document)
        card, _new = CardType.objects.update_or_create(
            cluster=rows.cluster,
            name=parts_of(key)[0],
            defaults=fields | {"version": F("version") + 1},
            create_defaults=fields,
        )
        rows.forget_card_types()
        rows.tell(key, card)


def _card_fields(rows: Rows, document: dict[str, Any]) -> dict[str, Any]:
    parent = document.get("parent")
    return {
        "resource": document.get("resource", ""),
        "kind": document["kind"],
        "parent": rows.card_types()[parent] if parent else None,
        "aliases": document.get("aliases", []),
        "discovered": False,
    }


def delete_card_types(rows: Rows) -> None:
    for key in rows.gone("card-type"):
        card = rows.card_types()[parts_of(key)[0]]
        rows.tell(key, card, card.pk)
        if card.last_seen_at is not None:
            card.discovered, card.aliases, card.version = True, [], card.version + 1
            card.save(update_fields=["discovered", "aliases", "version"])
        else:
            card.delete()


def write_priority_classes(rows: Rows) -> None:
    for key, document in rows.made("priority-class"):
        row = PriorityClass(cluster=rows.cluster, name=parts_of(key)[0], **_class_fields(document))
        row.save(force_insert=True)
        rows.row_of[key] = row
        rows.tell(key, row)
    touched = [key for key in rows.of_kind("priority-class") if key in rows.before]
    names = [parts_of(key)[0] for key in touched]
    found = rows.locked(PriorityClass.objects.filter(cluster=rows.cluster, name__in=names)) if names else []
    kept = []
    for row in found:
        key = f"priority-class/{row.name}"
        if key not in rows.after:
            rows.tell(key, row, row.pk)
            row.delete()
            continue
        replaced = row.value != rows.after[key]["value"]
        for name, value in _class_fields(rows.after[key]).items():
            setattr(row, name, value)
        row.sync_state, row.sync_error = SyncState.PENDING, ""
        rows.row_of[key] = row
        rows.tell(key, row, verb="replace" if replaced else "")
        kept.append(row)
    counted(kept, [*_CLASS_FIELDS, "sync_state", "sync_error"])


def _class_fields(document: dict[str, Any]) -> dict[str, Any]:
    return {
        "value": document["value"],
        "global_default": document["global_default"],
        "preemption_policy": document["preemption_policy"],
        "description": document.get("description", ""),
    }


def write_tide_plans(rows: Rows) -> None:
    """Layers over the base, after all of the base is written. Their documents hold the fields of their rows."""
    for key in rows.of_kind("tide-plan"):
        name = parts_of(key)[0]
        found = TidePlan.objects.filter(cluster=rows.cluster, name=name).select_for_update().first()
        if key not in rows.after:
            if found is not None:
                rows.tell(key, found, found.pk)
                found.delete()
            continue
        plan = found or TidePlan(cluster=rows.cluster, name=name, version=0)
        for field, value in rows.after[key].items():
            setattr(plan, field, value)
        plan.version += 1
        plan.save()
        rows.tell(key, plan)
