import re
from collections.abc import Callable, Mapping
from typing import Any

from tidesched_web.simcluster.errors import bad_request

# What a selector may look at; kept beside each change as well, so that a watcher sees an object leave its selection.
Facts = dict[str, Any]
Test = Callable[[Facts], bool]

_SET = re.compile(r"^\s*(?P<key>[^\s!=(),]+)\s+(?P<op>in|notin)\s*\((?P<values>[^)]*)\)\s*$")
_FIELDS: dict[str, tuple[str, ...]] = {
    "metadata.name": ("metadata", "name"),
    "metadata.namespace": ("metadata", "namespace"),
    "spec.nodeName": ("spec", "nodeName"),
    "spec.schedulerName": ("spec", "schedulerName"),
    "status.phase": ("status", "phase"),
    "involvedObject.name": ("involvedObject", "name"),
    "involvedObject.kind": ("involvedObject", "kind"),
    "involvedObject.uid": ("involvedObject", "uid"),
    "reason": ("reason",),
}


def facts_of(obj: Mapping[str, Any]) -> Facts:
    return {
        "labels": obj.get("metadata", {}).get("labels") or {},
        "fields": {field: _dig(obj, path) for field, path in _FIELDS.items()},
    }


def _dig(obj: Mapping[str, Any], path: tuple[str, ...]) -> str:
    value: Any = obj
    for part in path:
        value = value.get(part) if isinstance(value, Mapping) else None
    return "" if value is None else str(value)


def parse(label_selector: str, field_selector: str) -> Test | None:
    tests = [_label_test(part) for part in _split(label_selector)] + [
        _field_test(part) for part in _split(field_selector)
    ]
    if not tests:
        return None
    return lambda facts: all(test(facts) for test in tests)


def _split(selector: str) -> list[str]:
    return [part.strip() for part in re.split(r",(?![^(]*\))", selector) if part.strip()]


def _label_test(part: str) -> Test:
    if match := _SET.match(part):
        key, values = match["key"], {value.strip() for value in match["values"].split(",")}
        if match["op"] == "in":
            return lambda facts: facts["labels"].get(key) in values
        return lambda facts: facts["labels"].get(key) not in values
    if "!=" in part:
        key, value = (side.strip() for side in part.split("!=", 1))
        return lambda facts: facts["labels"].get(key) != value
    if "=" in part:
        key, value = (side.strip() for side in re.split("==?", part, maxsplit=1))
        return lambda facts: facts["labels"].get(key) == value
    if part.startswith("!"):
        absent = part[1:].strip()
        return lambda facts: absent not in facts["labels"]
    if re.fullmatch(r"[^\s()]+", part):
        return lambda facts: part in facts["labels"]
    raise bad_request(f"unable to parse requirement: {part!r}")


def _field_test(part: str) -> Test:
    negated = "!=" in part
    if "=" not in part:
        raise bad_request(f"invalid selector: {part!r}; can't understand it")
    field, value = (side.strip() for side in re.split("!=" if negated else "==?", part, maxsplit=1))
    if field not in _FIELDS:
        raise bad_request(f"field label not supported: {field} (known: {', '.join(sorted(_FIELDS))})")
    return lambda facts: (facts["fields"][field] == value) is not negated


def matches_selector(selector: Mapping[str, Any] | None, labels: Mapping[str, str]) -> bool:
    """``matchLabels`` and ``matchExpressions`` of an object such as a PodDisruptionBudget; None selects nothing."""
    if selector is None:
        return False
    if any(labels.get(key) != value for key, value in (selector.get("matchLabels") or {}).items()):
        return False
    for line in selector.get("matchExpressions") or []:
        key, operator, values = line["key"], line["operator"], line.get("values") or []
        held = {
            "In": labels.get(key) in values,
            "NotIn": labels.get(key) not in values,
            "Exists": key in labels,
            "DoesNotExist": key not in labels,
        }
        if not held.get(operator, False):
            return False
    return True
