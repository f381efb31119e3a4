"""Values are compared by what they mean (``8`` and ``8000m`` CPUs are the same) and kept as a person reads them."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Any, Final

from tidesched_web.clusters.kubernetes.client import FIELD_MANAGER
from tidesched_web.clusters.kubernetes.manifests import CARD_QUOTA, NAMESPACES
from tidesched_web.engine.quantities import cpu_milli, memory_mib

Fields = dict[str, str]
Json = Mapping[str, Any]

STATE: Final = "status.state"
CARDS: Final = "card_quota."
# A card quota that cannot be read is one field, as it stands.
RAW_CARDS: Final = f"annotations[{CARD_QUOTA}]"
# A queue that was closed is wanted closed; on its way there it drains.
_CLOSED: Final = ("Closed", "Closing")


@dataclass(frozen=True)
class FieldDrift:
    field: str
    intent: str | None
    pushed: str | None
    live: str | None
    changed_by: str = ""
    changed_at: str = ""


def fields_of(manifest: Json, *, state: str = "") -> Fields:
    kind = manifest.get("kind")
    metadata = manifest.get("metadata") or {}
    if kind == "PriorityClass":
        return {
            "value": _text(manifest.get("value")),
            "globalDefault": _text(bool(manifest.get("globalDefault"))),
            "preemptionPolicy": _text(manifest.get("preemptionPolicy") or "PreemptLowerPriority"),
            "description": _text(manifest.get("description") or ""),
        }
    found: Fields = {}
    for name, value in (metadata.get("annotations") or {}).items():
        if name == CARD_QUOTA:
            found |= _cards(value)
        elif name == NAMESPACES:
            found[f"annotations[{name}]"] = ",".join(sorted(filter(None, str(value).split(","))))
        else:
            found[f"annotations[{name}]"] = _text(value)
    for name, value in (metadata.get("labels") or {}).items():
        found[f"labels[{name}]"] = _text(value)
    found |= dict(_leaves(manifest.get("spec") or {}, "spec"))
    if state:
        found[STATE] = state
    return found


def compare(intent: Fields, pushed: Fields | None, live: Fields, managed: list[Json] | None = None) -> list[FieldDrift]:
    """Only what was sent is looked at; a changed intent is on its way and no drift, unless changed by hand too."""
    told = intent if pushed is None else pushed
    names = {*told, *(name for name in live if name.startswith(CARDS) or name == RAW_CARDS)}
    found = []
    for name in sorted(names):
        before, now, wanted = told.get(name), live.get(name), intent.get(name)
        if name.startswith(CARDS):  # no card and none of it are the same
            before, now, wanted = before or "0", now or "0", wanted or "0"
        if before == now or wanted == now:
            continue
        manager, at = changed_by(managed or [], name)
        found.append(FieldDrift(name, wanted, None if pushed is None else before, now, manager, at))
    return found


def digest(rows: list[FieldDrift]) -> str:
    """Of what is in the cluster now: the same drift has the same digest, a new hand-made change another."""
    return sha256(json.dumps([[row.field, row.live] for row in rows]).encode()).hexdigest()


def as_json(rows: list[FieldDrift]) -> list[dict[str, Any]]:
    return [asdict(row) for row in rows]


def changed_by(managed: list[Json], field: str) -> tuple[str, str]:
    """By the object's managedFields. A field that was removed has no owner any more, so none is named for it."""
    path = _managed_path(field)
    found = ("", "")
    for entry in managed:
        manager, at = str(entry.get("manager") or ""), str(entry.get("time") or "")
        if manager != FIELD_MANAGER and _owns(entry.get("fieldsV1") or {}, path) and at >= found[1]:
            found = (manager, at)
    return found


def live_part(obj: Json) -> dict[str, Any]:
    metadata = obj.get("metadata") or {}
    kept: dict[str, Any] = {
        "kind": obj.get("kind"),
        "metadata": {key: metadata[key] for key in ("name", "labels", "annotations") if metadata.get(key)},
    }
    for key in ("spec", "value", "globalDefault", "preemptionPolicy", "description"):
        if obj.get(key) is not None:
            kept[key] = obj[key]
    state = (obj.get("status") or {}).get("state")
    return kept | ({"status": {"state": state}} if state else {})


def live_state(obj: Json, wanted: str) -> str:
    state = str((obj.get("status") or {}).get("state") or "Open")
    return "Closed" if state in _CLOSED and wanted != "Open" else "Open" if state == "Unknown" else state


def _owns(fields: Json, path: tuple[str, ...]) -> bool:
    for step in path:
        nested = fields.get(f"f:{step}")
        if nested is None:
            return False
        if nested == {}:
            return True
        fields = nested
    return True


def _managed_path(field: str) -> tuple[str, ...]:
    if field.startswith(CARDS):
        return ("metadata", "annotations", CARD_QUOTA)
    for part in ("annotations", "labels"):
        if field.startswith(f"{part}["):
            return ("metadata", part, field[len(part) + 1 : -1])
    steps = 3 if field.startswith("spec.guarantee.") else 2
    return tuple(field.split(".", steps))


def _cards(text: Any) -> Fields:
    try:
        cards = json.loads(text).items()
        if all(name.isprintable() for name, _count in cards):
            return {f"{CARDS}{name}": _number(count) for name, count in cards}
    except (ValueError, TypeError, AttributeError, ArithmeticError, RecursionError):
        pass
    return {RAW_CARDS: _text(text)}


def _leaves(value: Any, at: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for name in value:
            yield from _leaves(value[name], f"{at}.{name}")
    else:
        yield at, _quantity(at.rpartition(".")[2], value) if at.count(".") > 1 else _text(value)


def _quantity(name: str, value: Any) -> str:
    try:
        if name == "cpu":
            milli = cpu_milli(value)
            return _number(milli / 1000) if milli % 1000 else str(milli // 1000)
        if name == "memory":
            return f"{memory_mib(value)}Mi"
        return _number(value)
    except (ValueError, ArithmeticError, TypeError):
        return _text(value)


def _number(value: Any) -> str:
    return f"{float(value):g}" if abs(float(value)) < 1e6 else str(value)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)
