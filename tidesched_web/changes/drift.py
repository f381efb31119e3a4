from collections.abc import Collection, Mapping
from typing import Any, Final

from django.db import transaction
from django.utils.translation import gettext as _

from tidesched_web.changes.adoption import read
from tidesched_web.changes.models import QuotaChange
from tidesched_web.changes.services import carry_out
from tidesched_web.changes.tree_document import key_of
from tidesched_web.common.errors import DomainError, need_reason
from tidesched_web.common.permissions import Access, require_administrator
from tidesched_web.quota.drift_fields import CARDS, STATE
from tidesched_web.quota.drift_selectors import QUEUE
from tidesched_web.quota.models import Drift, DriftWhat, Queue
from tidesched_web.quota.services.drift import note_adoption

# The field of a live queue and the one of its document.
_QUEUE_FIELDS: Final[Mapping[str, str]] = {
    "spec.weight": "weight",
    "spec.priority": "priority",
    "spec.reclaimable": "reclaimable",
    "spec.capability.cpu": "cpu_milli",
    "spec.capability.memory": "memory_bytes",
    "spec.parent": "parent",
    STATE: "state",
}
_CLASS_FIELDS: Final[Mapping[str, str]] = {
    "value": "value",
    "globalDefault": "global_default",
    "preemptionPolicy": "preemption_policy",
    "description": "description",
}
_AMOUNTS: Final = ("deserved", "guarantee")


def adoptable(field: str, kind: str = QUEUE) -> bool:
    if kind != QUEUE:
        return field in _CLASS_FIELDS
    return field in _QUEUE_FIELDS or field.startswith((CARDS, *(f"spec.{name}." for name in _AMOUNTS)))


def adopt(*, drifts: Collection[Drift], access: Access, reason: str) -> QuotaChange:
    require_administrator(access)
    reason = need_reason(reason)
    rows = list(drifts)
    if not rows:
        raise DomainError("invalid", _("Choose at least one object."))
    if len({row.cluster_id for row in rows}) > 1:
        raise DomainError("invalid", _("A change is about one cluster."))
    edits = {key: fields for key, fields in (edits_of(row) for row in rows) if fields}
    with transaction.atomic():
        change = carry_out(cluster=rows[0].cluster, edits=edits, access=access, reason=reason, source="adopt")
        if change.pk is None:
            raise DomainError("conflict", _("The intent says already what is live: the drift ends by itself."))
        note_adoption(drifts=rows, access=access, reason=reason, change_id=change.pk)
    return change


def edits_of(row: Drift) -> tuple[str, dict[str, Any]]:
    if row.what == DriftWhat.MISSING or row.live is None:
        said = _("%(name)s is gone from the cluster: push it again, or close and delete it here.")
        raise DomainError("conflict", said % {"name": row.name})
    for one in row.fields:
        if not adoptable(one["field"], row.kind):
            said = _("%(field)s of %(name)s cannot be adopted: push it again, or ignore it.")
            raise DomainError("conflict", said % {"field": one["field"], "name": row.name})
    return _queue_edits(row) if row.kind == QUEUE else _class_edits(row)


def _queue_edits(row: Drift) -> tuple[str, dict[str, Any]]:
    found = read(row.live or {})
    if found.unread:
        said = _("%(name)s has a value that is not understood: %(field)s.")
        raise DomainError("conflict", said % {"name": row.name, "field": found.unread[0]})
    document, edits = found.document, dict[str, Any]()
    cards: dict[str, Any] = {}
    for one in row.fields:
        field = one["field"]
        if field.startswith(CARDS):
            card = field[len(CARDS) :]
            cards[card] = document["card_quota"].get(card)
        elif (name := _QUEUE_FIELDS.get(field)) is not None:
            edits[name] = document.get(name)
        else:
            name, key = field.removeprefix("spec.").split(".", 1)
            amounts = edits.setdefault(name, {})
            key = key.removeprefix("resource.")
            amounts[key] = (document.get(name) or {}).get(key)
    if cards:
        _refuse_under_tide(row, cards)
        edits["card_quota"] = cards
    return key_of("queue", row.name), edits


def _refuse_under_tide(row: Drift, cards: Collection[str]) -> None:
    """Where a tide plan is open the live figure is base and plan together; which of them was meant is not known."""
    told = Queue._base_manager.filter(cluster_id=row.cluster_id, name=row.name).values_list("tide", flat=True).first()
    turned = sorted(set(cards).intersection(told or ()))
    if turned:
        said = _("A tide plan is open for %(card)s of %(name)s: edit its base quota or the plan instead.")
        raise DomainError("conflict", said % {"card": turned[0], "name": row.name})


def _class_edits(row: Drift) -> tuple[str, dict[str, Any]]:
    live = row.live or {}
    edits: dict[str, Any] = {}
    for one in row.fields:
        name = _CLASS_FIELDS[one["field"]]
        value = live.get(one["field"])
        edits[name] = bool(value) if name == "global_default" else value
    if "value" in edits:
        edits["replace"] = True  # the live one has it already; here it is another value all the same
    return key_of("priority-class", row.name), edits
