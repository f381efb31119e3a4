"""The fields of drift in the reader's words."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.dateparse import parse_datetime
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from tidesched_web.changes.drift import adoptable
from tidesched_web.common.card_names import card_label
from tidesched_web.quota.drift_fields import CARDS, STATE

_NAMES: Mapping[str, Promise] = {
    "spec.weight": gettext_lazy("Weight"),
    "spec.priority": gettext_lazy("Priority"),
    "spec.reclaimable": gettext_lazy("Reclaimable"),
    "spec.capability.cpu": gettext_lazy("CPU limit"),
    "spec.capability.memory": gettext_lazy("Memory limit"),
    "spec.parent": gettext_lazy("Parent"),
    STATE: gettext_lazy("State"),
    "value": gettext_lazy("Value"),
    "globalDefault": gettext_lazy("Default of the cluster"),
    "preemptionPolicy": gettext_lazy("Preemption policy"),
    "description": gettext_lazy("Description"),
}


@dataclass(frozen=True, slots=True)
class FieldWords:
    name: str
    key: str
    intent: str
    pushed: str
    live: str
    changed_by: str
    changed_at: dt.datetime | None
    adoptable: bool


def field_words(row: Mapping[str, Any], kind: str) -> FieldWords:
    """The field with its name; a value that is not there is a dash."""
    key = str(row["field"])
    if key.startswith(CARDS):
        name = _("Quota of %(card)s") % {"card": card_label(key[len(CARDS) :])}
    elif key.startswith("spec.capability.") and key not in _NAMES:
        name = _("Limit of %(resource)s") % {"resource": key.removeprefix("spec.capability.")}
    else:
        name = str(_NAMES.get(key, key))
    return FieldWords(
        name=name,
        key=key,
        intent=_value(row.get("intent")),
        pushed=_value(row.get("pushed")),
        live=_value(row.get("live")),
        changed_by=str(row.get("changed_by") or ""),
        changed_at=parse_datetime(str(row.get("changed_at") or "")),
        adoptable=adoptable(key, kind),
    )


def _value(value: Any) -> str:
    return "–" if value in (None, "") else str(value)
