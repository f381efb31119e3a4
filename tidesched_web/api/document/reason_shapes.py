"""Why a gang waits, by its code: each code, or group of codes, has figures of its own.

A reader who may not see all of a gang's queue gets fewer of them, so none is required; what is not listed never comes.
"""

from __future__ import annotations

from typing import Any

_NUMBER, _COUNT, _TEXT = {"type": "number"}, {"type": "integer"}, {"type": "string"}
_SCHEMAS = "#/components/schemas/"
_FIGURES: dict[str, dict[str, Any]] = {
    "field": {**_TEXT, "description": "Path of the field that the scheduler does not support."},
    "resource": {**_TEXT, "description": "A card name (`A|B` for a choice), cpu, memory, pods or another resource."},
    "requested": {**_NUMBER, "description": "How much of it the gang asks for."},
    "limit": {**_NUMBER, "description": "How much may be used."},
    "allocated": {**_NUMBER, "description": "How much is in use."},
    "inqueue": {**_NUMBER, "description": "How much is promised to admitted gangs."},
    "free": {**_NUMBER, "description": "How much is free."},
    "short": {**_NUMBER, "description": "How much is missing."},
    "holders": {
        "type": "array",
        "items": {"$ref": f"{_SCHEMAS}Holder"},
        "description": "At most ten, the largest first.",
    },
    "position": {**_COUNT, "description": "Place in the queue, 1 is next."},
    "nodes": {
        "type": "object",
        "additionalProperties": _COUNT,
        "description": "Reason → how many nodes said no.",
    },
    "change": {"type": ["integer", "null"], "description": "The change that overtook the expectation."},
}
_PODS = ("requested", "allocated", "short", "position")
_QUOTA = ("resource", "requested", "limit", "allocated", "inqueue", "short", "holders", "position")
_ON_NODES = ("resource", "requested", "free", "short", "position", "nodes")
# Name of the group → its codes, its figures, what they are about.
_GROUPS: dict[str, tuple[tuple[str, ...], tuple[str, ...], str]] = {
    "AsWritten": (
        ("Suspended", "Misconfigured", "TimedOut", "NotAllowedInQueue", "PendingEvaluation"),
        ("position",),
        "No figure says more than the message.",
    ),
    "NotSupported": (("NotSupported",), ("field", "position"), "A field that the scheduler does not support."),
    "Demand": (
        ("NoMatchingCard", "WaitingForReclaim", "BackingOff"),
        ("resource", "requested", "free", "position"),
        "What the gang asks for.",
    ),
    "Quota": (
        ("QueueClosed", "ExceedsMaxQuota", "WaitingForQuota", "OverCommitted"),
        _QUOTA,
        "What may be used, and who uses it.",
    ),
    "Members": (("GangIncomplete",), _PODS, "Pods that must be there together, and how many are."),
    "Cards": (
        ("WaitingForCards",),
        ("resource", "requested", "limit", "free", "short", "holders", "position"),
        "Cards of the cluster; `limit` is how many there are.",
    ),
    "Resources": (("WaitingForResources",), (*_ON_NODES, "holders"), "A resource of nodes, and who uses it."),
    "Nodes": (
        ("NoNodeMatches", "Fragmented", "BehindHigherPriority", "ReclaimForbidden"),
        _ON_NODES,
        "Room on nodes, and why they do not take the gang.",
    ),
}
CODES = tuple(code for codes, _figures, _text in _GROUPS.values() for code in codes)
# Components with `code` and `numbers`; of an expectation that was overtaken the code is empty.
_REASONS = ("ReasonDocument", "ImpactReason")
_WHY = "WhyDocument"


def _ref(name: str) -> dict[str, str]:
    return {"$ref": f"{_SCHEMAS}{name}"}


def _numbers(figures: tuple[str, ...], text: str) -> dict[str, Any]:
    return {
        "type": "object",
        "description": f"{text} Cards as counts, cpu in milli-cores, memory, storage and huge pages in bytes.",
        "properties": {name: _FIGURES[name] for name in figures},
        "additionalProperties": False,
    }


def _of(group: str, codes: tuple[str, ...]) -> dict[str, Any]:
    return {
        "type": "object",
        "required": ["code", "numbers"],
        "properties": {"code": {"type": "string", "enum": [*codes]}, "numbers": _ref(f"{group}Numbers")},
    }


_OVERTAKEN = "Overtaken"
COMPONENTS: dict[str, Any] = {
    **{f"{name}Numbers": _numbers(figures, text) for name, (_codes, figures, text) in _GROUPS.items()},
    **{f"{name}Reason": _of(name, codes) for name, (codes, _figures, _text) in _GROUPS.items()},
    f"{_OVERTAKEN}Numbers": _numbers(("change",), "Another change came before the expectation could be compared."),
    f"{_OVERTAKEN}Reason": _of(_OVERTAKEN, ("",)),
    "ReasonNumbers": {
        "description": "The figures of a reason, by its code.",
        "anyOf": [_ref(f"{name}Numbers") for name in (*_GROUPS, _OVERTAKEN)],
    },
}


def add_to(schemas: dict[str, Any]) -> None:
    """Bind the figures of each reason to its code."""
    for name in (*_REASONS, _WHY):
        groups = {group: codes for group, (codes, _figures, _text) in _GROUPS.items()}
        if name == _WHY:
            groups[_OVERTAKEN] = ("",)
        schemas[name]["oneOf"] = [_ref(f"{group}Reason") for group in groups]
        schemas[name]["discriminator"] = {
            "propertyName": "code",
            "mapping": {code: f"{_SCHEMAS}{group}Reason" for group, codes in groups.items() for code in codes if code},
        }
        schemas[name]["properties"]["code"] = {
            "type": "string",
            "enum": [code for codes in groups.values() for code in codes],
        }
