import datetime as dt
import difflib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from tidesched_web.changes.tree_document import KINDS, kind_of, parts_of, unescaped
from tidesched_web.common import reader_zone
from tidesched_web.common.card_names import card_label
from tidesched_web.common.models import ServiceType
from tidesched_web.common.sentences import listed
from tidesched_web.console import amounts, bars
from tidesched_web.console.layer_words import DAYS, layer_lines, layer_words

KIND_NAMES = {
    "rules": gettext_lazy("rules"),
    "card-type": gettext_lazy("card type"),
    "tenant": gettext_lazy("tenant"),
    "project": gettext_lazy("project"),
    "business-line": gettext_lazy("business line"),
    "priority-class": gettext_lazy("priority class"),
    "queue": gettext_lazy("queue"),
    "grant": gettext_lazy("grant"),
    "tide-plan": gettext_lazy("tide plan"),
}
FIELDS = {
    "cpu_milli": gettext_lazy("CPU cores"),
    "memory_bytes": gettext_lazy("memory"),
    "weight": gettext_lazy("weight"),
    "priority": gettext_lazy("priority"),
    "reclaimable": gettext_lazy("reclaimable"),
    "state": gettext_lazy("state"),
    "name": gettext_lazy("name"),
    "description": gettext_lazy("description"),
    "service_type": gettext_lazy("service type"),
    "tenant": gettext_lazy("tenant"),
    "project": gettext_lazy("project"),
    "business_line": gettext_lazy("business line"),
    "value": gettext_lazy("value"),
    "approval_required": gettext_lazy("approval required"),
    "overcommit_inference_percent": gettext_lazy("inference may be promised, % of the hardware"),
    "overcommit_training_percent": gettext_lazy("training may be promised, % of the hardware"),
    "enabled": gettext_lazy("enabled"),
    "layers": gettext_lazy("layers"),
    "time_zone": gettext_lazy("time zone"),
    "parent": gettext_lazy("parent"),
    "aliases": gettext_lazy("other names"),
    "kind": gettext_lazy("how it is given out"),
    "resource": gettext_lazy("Kubernetes resource"),
    "global_default": gettext_lazy("global default"),
    "preemption_policy": gettext_lazy("preemption policy"),
    "exceptions": gettext_lazy("exceptions"),
    "position": gettext_lazy("position"),
    "reason": gettext_lazy("reason"),
    "apply_at": gettext_lazy("to be applied at"),
}
WHOSE = {"cluster": gettext_lazy("the cluster"), "tenant": gettext_lazy("tenant")}
CONTEXT = 3


@dataclass(frozen=True, slots=True)
class FieldLine:
    field: str
    before: str
    after: str
    by: str
    in_use: str
    sign: str
    bar: bars.UsageBar | None = None


@dataclass(frozen=True, slots=True)
class ObjectFields:
    key: str
    kind: str
    name: str
    act: str
    fields: list[FieldLine]
    # As its owner calls it, where that is another name.
    title: str = ""


@dataclass(frozen=True, slots=True)
class DiffLine:
    sign: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class ObjectDiff:
    kind: str
    name: str
    act: str
    lines: list[DiffLine]


def object_name(key: str) -> tuple[str, str]:
    try:
        kind, parts = kind_of(key), parts_of(key)
    except ValueError:
        return "", key
    if kind not in KINDS:
        return "", key
    if kind == "rules":
        return str(KIND_NAMES[kind]), _("of the cluster")
    return str(KIND_NAMES[kind]), " › ".join(part for part in parts if part != "-")


def field_name(pointer: str) -> str:
    steps = [unescaped(step) for step in pointer.split("/")[1:]]
    if not steps:
        return ""
    before = ""
    if steps[0] == "quota" and len(steps) > 1:
        first = str(ServiceType(steps[1]).label) if steps[1] in ServiceType.values else steps[1]
        before, steps = first + ": ", steps[2:]
        if not steps:
            return first
    if steps[0] == "card_quota" and len(steps) > 1:
        return before + card_label(steps[1])
    return before + " › ".join([str(FIELDS.get(steps[0], steps[0])), *steps[1:]])


def figure(pointer: str, value: Any, *, unset: str = "") -> str:
    if value is None:
        return unset or "–"
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    last = pointer.rpartition("/")[2]
    if isinstance(value, int | float):
        if last == "cpu_milli":
            return amounts.number(value / 1000)
        if last == "memory_bytes":
            return f"{amounts.number(value / 2**30)} GiB"
        return amounts.number(value)
    if isinstance(value, str):
        return reader_zone.named(dt.datetime.fromisoformat(value)) if last == "apply_at" else value
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return listed(value) or "–"
    if not value:
        return "–"
    if last == "layers":
        return "; ".join(layer_words(layer, number) for number, layer in enumerate(value, start=1))
    if last == "exceptions":
        return listed(_("%(day)s: %(counts)s") % {"day": day, "counts": DAYS[to]} for day, to in value.items())
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def fields_of_plan(
    fields: Iterable[Mapping[str, Any]],
    *,
    base: Mapping[str, Any] | None = None,
    edits: Mapping[str, Any] | None = None,
) -> list[ObjectFields]:
    found: dict[str, list[Mapping[str, Any]]] = {}
    for difference in fields:
        found.setdefault(difference["object"], []).append(difference)
    result = []
    for key, differences in found.items():
        kind, name = object_name(key)
        document = (base or {}).get(key, {})
        act = "new" if document is None else "gone" if (edits or {}).get(key, {}) is None else "changed"
        edit = (edits or {}).get(key) or {}
        service = str(edit.get("service_type") or (document or {}).get("service_type") or "")
        said = [line for entry in differences for line in _lines(entry, document or {}, service)]
        # An empty map that comes or goes says nothing beside the figures that do.
        lines = [line for line in said if line.before != line.after or line.by] or said
        title = str(edit.get("name") or (document or {}).get("name") or "")
        result.append(ObjectFields(key, kind, name, act, lines, title if title != name else ""))
    return result


def figure_words(entry: Mapping[str, Any]) -> dict[str, str]:
    return {
        "name": object_name(entry["object"])[1],
        "field": field_name(entry["field"]),
        "before": figure(entry["field"], entry["before"]),
        "after": figure(entry["field"], entry["after"]),
    }


def asked_words(plan: Mapping[str, Any], base: Mapping[str, Any] | None = None) -> list[dict[str, str]]:
    """The short name stands behind it: it stays, whatever the tenant's own admins call the tenant."""
    return [
        figure_words(entry)
        | {
            "name": _named(((base or {}).get(entry["object"]) or {}).get("name"), object_name(entry["object"])[1]),
            "before": figure(entry["field"], entry["before"] or 0),
            "more": figure(entry["field"], entry["after"] - (entry["before"] or 0)),
        }
        for entry in plan.get("asked", ())
    ]


def _named(name: str | None, slug: str) -> str:
    return f"{name} ({slug})" if name and name != slug else slug


def _unset(entry: Mapping[str, Any], document: Mapping[str, Any]) -> str:
    steps = entry["field"].split("/")[1:]
    if "card_quota" in steps:
        limits = document.get("quota", {}).get(steps[1], {}) if steps[0] == "quota" else document
        return "0" if steps[0] == "card_quota" or limits.get("card_quota") else _("no limit")
    return _("no limit") if steps and steps[-1] in ("cpu_milli", "memory_bytes") else ""


def _lines(entry: Mapping[str, Any], document: Mapping[str, Any], service: str) -> list[FieldLine]:
    if entry["field"] == "/layers" and all(isinstance(entry[side], list | None) for side in ("before", "after")):
        found = layer_lines(entry["before"] or [], entry["after"] or [])
        said = [FieldLine(field, before, after, "", "", "~") for field, before, after in found]
        if said:
            return said
    return [_field(entry, document, service)]


def set_words(entry: Mapping[str, Any]) -> str:
    line = _field(entry, {}, "")
    return f"{line.after} ({line.by})" if line.by else line.after


def _field(entry: Mapping[str, Any], document: Mapping[str, Any], service: str) -> FieldLine:
    pointer, before, after = entry["field"], entry["before"], entry["after"]
    is_card = "/card_quota/" in pointer
    unset = _unset(entry, document)
    numbers = all(
        value is None or (isinstance(value, int | float) and not isinstance(value, bool)) for value in (before, after)
    )
    by, sign = "", "~"
    # A limit that comes where there was none is less, by no number that could be named.
    counted = unset == "0" or (before is not None and after is not None)
    if numbers and counted:
        difference = (after or 0) - (before or 0)
        sign = "+" if difference > 0 else "-"
        by = f"{'+' if difference > 0 else '−'}{figure(pointer, abs(difference))}"
    used = entry.get("in_use")
    bar = None
    if is_card and counted:
        kind = pointer.split("/")[2] if pointer.startswith("/quota/") else service
        bar = bars.change_bar(kind, before or 0, after or 0, used or 0)
    return FieldLine(
        field_name(pointer), figure(pointer, before, unset=unset), figure(pointer, after, unset=unset), by,
        amounts.number(used) if used is not None else "", sign, bar,
    )  # fmt: skip


def objects_of_plan(objects: Iterable[Mapping[str, Any]]) -> list[ObjectDiff]:
    found = []
    for entry in objects:
        before, after = entry.get("before"), entry.get("after")
        lines = side_by_side(_yaml(before or {}), _yaml(after or {}))
        act = (
            "new" if before is None else "gone" if after is None else "replaced" if entry.get("replaced") else "changed"
        )
        found.append(ObjectDiff(entry["kind"], entry["name"], act, lines))
    return found


def _yaml(value: Any, indent: int = 0) -> Sequence[str]:
    space = "  " * indent
    lines: list[str] = []
    for name, entry in value.items():
        if isinstance(entry, str) and entry.startswith("{") and entry.endswith("}"):
            try:
                inside = json.loads(entry)
            except ValueError:
                inside = None
            if isinstance(inside, dict):
                lines += [
                    f"{space}{name}: |",
                    *(f"{space}  {key}: {json.dumps(item)}" for key, item in sorted(inside.items())),
                ]
                continue
        if isinstance(entry, Mapping):
            lines += [f"{space}{name}:" if entry else f"{space}{name}: {{}}", *_yaml(entry, indent + 1)]
        elif isinstance(entry, list):
            lines.append(f"{space}{name}: {json.dumps(entry, ensure_ascii=False)}")
        else:
            lines.append(f"{space}{name}: {entry if isinstance(entry, str) else json.dumps(entry)}")
    return lines


def side_by_side(before: Sequence[str], after: Sequence[str]) -> list[DiffLine]:
    lines: list[DiffLine] = []
    matcher = difflib.SequenceMatcher(a=before, b=after, autojunk=False)
    groups = matcher.get_grouped_opcodes(CONTEXT) if before and after else [matcher.get_opcodes()]
    end = 0
    for group in groups:
        if group and group[0][1] > end:
            lines.append(DiffLine("…", "", ""))
        for tag, a0, a1, b0, b1 in group:
            old, new = list(before[a0:a1]), list(after[b0:b1])
            if tag == "equal":
                lines += [DiffLine(" ", text, text) for text in old]
                continue
            for number in range(max(len(old), len(new))):
                was = old[number] if number < len(old) else ""
                now = new[number] if number < len(new) else ""
                sign = "~" if number < len(old) and number < len(new) else "-" if number < len(old) else "+"
                lines.append(DiffLine(sign, was, now))
        end = group[-1][2] if group else end
    if before and after and end < len(before):
        lines.append(DiffLine("…", "", ""))
    return lines
