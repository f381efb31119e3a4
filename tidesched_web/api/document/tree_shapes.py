"""Shapes of the tree in the document: what an edit of each kind of object may say, and what a figure of it is.

An edit is a merge patch (RFC 7386): null takes a figure away, what is left out stays.
"""

from __future__ import annotations

from typing import Any

from tidesched_web.changes import tree_file
from tidesched_web.changes.change_size import MOST_FIGURES, MOST_UNKNOWN
from tidesched_web.changes.documents import MOST_ALIASES, MOST_CARD_TYPES
from tidesched_web.changes.services.planning import MOST_EDITS
from tidesched_web.common.calendar_bounds import YEAR
from tidesched_web.quota import tide_document
from tidesched_web.quota.tide import NO_DAY, WEEKDAYS
from tidesched_web.quota.tide_document import LONGEST_ZONE, MOST_CARDS, MOST_EXCEPTIONS, MOST_LAYERS

SLUG = r"^[-a-zA-Z0-9_]{1,63}$"
DNS_NAME = r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$"
SUBDOMAIN = r"^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$"
CARD_NAME = r"^[!-~]{1,120}$"
PLAN_NAME = rf"^{tide_document.PLAN_NAME}$"
QUANTITY = r"^[0-9]{1,15}(\.[0-9]{1,9})?([munkKMGTPE]|[KMGTPE]i)?$"
MOST_AMOUNT = 2**62
# No text holds a zero byte, which the database cannot store.
STORABLE = r"^[^\x00]*$"
# The name of a member holds no zero byte either, whatever it names.
STORABLE_NAMES = {"propertyNames": {"type": "string", "pattern": STORABLE}}
# A moment with its zone, in a year that every time zone has a local time for.
TIME = f"^{YEAR}" r"-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?(Z|[+-][0-9]{2}:[0-9]{2})$"
_DAY_TIME = r"([01][0-9]|2[0-3]):[0-5][0-9]"


def _ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


def whole(least: int, most: int, *, null: bool = False) -> dict[str, Any]:
    """A whole number in bounds."""
    return {"type": ["integer", "null"] if null else "integer", "minimum": least, "maximum": most}


def _text(most: int) -> dict[str, Any]:
    return {"type": ["string", "null"], "maxLength": most, "pattern": STORABLE}


def _one_of(*values: str) -> dict[str, Any]:
    return {"type": ["string", "null"], "enum": [*values, None]}


def _moment(pattern: str, most: int) -> dict[str, Any]:
    """A time of day. Readers of YAML 1.1 take 22:00 for the number 1320, so that is taken too."""
    return {"type": ["string", "integer"], "pattern": f"^{pattern}$", "minimum": 0, "maximum": most}


def _patch(properties: dict[str, Any], description: str) -> dict[str, Any]:
    return {
        "type": ["object", "null"],
        "description": f"{description} Null deletes it.",
        "properties": properties,
        "additionalProperties": False,
    }


CARD_COUNTS = {
    "type": ["object", "null"],
    "description": "Card name → count; null takes a card away.",
    **STORABLE_NAMES,
    "additionalProperties": whole(0, MOST_CARDS, null=True),
    "maxProperties": MOST_CARD_TYPES,
}
QUANTITIES = {
    "type": ["object", "null"],
    "description": "Resource → quantity as Kubernetes writes it; null takes one away.",
    **STORABLE_NAMES,
    "additionalProperties": {
        "type": ["string", "integer", "null"],
        "pattern": QUANTITY,
        "minimum": 0,
        "maximum": 2**63 - 1,
    },
}
_AMOUNT = whole(0, MOST_AMOUNT, null=True)
LIMITS = {
    "type": ["object", "null"],
    "description": "What may be handed out for one service type; null is no limit.",
    "properties": {"card_quota": _ref("CardCounts"), "cpu_milli": _AMOUNT, "memory_bytes": _AMOUNT},
    "additionalProperties": False,
}
QUOTA_BY_SERVICE = {
    "type": ["object", "null"],
    "properties": {"inference": _ref("LimitsEdit"), "training": _ref("LimitsEdit")},
    "additionalProperties": False,
}
LIMIT_ROW = {
    "type": "object",
    "description": "A limit as the document of its holder shows it; `card_quota` is another name of `cards`.",
    "required": ["cluster", "service_type"],
    "properties": {
        "cluster": {
            "oneOf": [
                {"type": "integer", "minimum": 0, "maximum": 2**63 - 1},
                {"type": "string", "minLength": 1, "maxLength": 63},
            ]
        },
        "service_type": {"type": "string", "enum": ["inference", "training"]},
        "cards": _ref("CardCounts"),
        "card_quota": _ref("CardCounts"),
        "cpu_milli": _AMOUNT,
        "memory_bytes": _AMOUNT,
    },
    "additionalProperties": False,
}
STEP = {
    "description": 'One of `{"set": n}` and `{"add": ±n}`.',
    "oneOf": [
        {
            "type": "object",
            "required": [act],
            "properties": {act: whole(least, MOST_CARDS)},
            "additionalProperties": False,
        }
        for act, least in (("set", 0), ("add", -MOST_CARDS))
    ],
}
LAYER = {
    "type": "object",
    "required": ["days", "start", "end", "quota"],
    "properties": {
        "name": {"type": "string", "maxLength": 120, "pattern": STORABLE},
        "days": {"type": "array", "minItems": 1, "items": {"type": "string", "enum": list(WEEKDAYS)}},
        "start": {**_moment(_DAY_TIME, 24 * 60 - 1), "example": "22:00"},
        "end": {
            **_moment(f"({_DAY_TIME}|24:00)", 24 * 60),
            "example": "07:00",
            "description": "Before start: on the next day. It is not start. A number is minutes since midnight.",
        },
        "quota": {
            "type": "object",
            "description": "Queue → card → step.",
            **STORABLE_NAMES,
            "minProperties": 1,
            "additionalProperties": {
                "type": "object",
                **STORABLE_NAMES,
                "minProperties": 1,
                "additionalProperties": _ref("TideStep"),
            },
        },
        "ended_at": {
            "type": ["string", "null"],
            "format": "date-time",
            "pattern": TIME,
            "example": "2026-11-20T02:00:00+00:00",
            "description": "A person has ended the layer at this moment of the cluster's clock: it is closed until it "
            "opens the next time. Left out or null: it was not ended.",
        },
    },
    "additionalProperties": False,
}
LAYERS = {"type": "array", "maxItems": MOST_LAYERS, "items": _ref("TideLayer")}
EXCEPTIONS = {
    "type": "object",
    "description": "Date → the weekday that it counts as, or none.",
    "maxProperties": MOST_EXCEPTIONS,
    "propertyNames": {"format": "date"},
    "additionalProperties": {"type": ["string", "null"], "enum": [NO_DAY, *WEEKDAYS, None]},
}
_TRUTH = {"type": ["boolean", "null"]}
_PERCENT = whole(1, 10_000, null=True)

# kind → (pattern of its keys, name of the component, what it is)
_KINDS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "rules": (
        "^rules/cluster$",
        "RulesEdit",
        {
            "type": "object",
            "description": "The rules of the cluster, which cannot be deleted.",
            "properties": {
                "approval_required": _TRUTH,
                "overcommit_inference_percent": _PERCENT,
                "overcommit_training_percent": _PERCENT,
            },
            "additionalProperties": False,
        },
    ),
    "card-type": (
        "^card-type/[!-~]{1,120}$",
        "CardTypeEdit",
        _patch(
            {
                "resource": _text(120),
                "kind": _one_of("whole", "mig", "mps"),
                "parent": _text(120),
                "aliases": {
                    "type": ["array", "null"],
                    "maxItems": MOST_ALIASES,
                    "items": {"type": "string", "pattern": CARD_NAME},
                },
            },
            "A card type that was declared.",
        ),
    ),
    "tenant": (
        "^tenant/[-a-zA-Z0-9_]{1,63}$",
        "TenantEdit",
        _patch(
            {
                "name": _text(120),
                "description": _text(4000),
                "approval_required": _TRUTH,
                "quota": _ref("QuotaEdit"),
            },
            "A tenant.",
        ),
    ),
    "project": (
        "^project/[-a-zA-Z0-9_]{1,63}/[-a-zA-Z0-9_]{1,63}$",
        "ProjectEdit",
        _patch({"name": _text(120), "quota": _ref("QuotaEdit")}, "A project: `project/tenant/slug`."),
    ),
    "business-line": (
        "^business-line/[-a-zA-Z0-9_]{1,63}/[-a-zA-Z0-9_]{1,63}$",
        "BusinessLineEdit",
        _patch({"name": _text(120)}, "A business line: `business-line/tenant/slug`, `-` for the platform's own."),
    ),
    "priority-class": (
        "^priority-class/[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$",
        "PriorityClassEdit",
        _patch(
            {
                "value": whole(-(2**31), 1_000_000_000, null=True),
                "global_default": _TRUTH,
                "preemption_policy": _one_of("PreemptLowerPriority", "Never"),
                "description": _text(4000),
                "replace": _TRUTH,
            },
            "A priority class. Another value of a class that is there needs `replace`.",
        ),
    ),
    "queue": (
        "^queue/[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$",
        "QueueEdit",
        _patch(
            {
                "service_type": _one_of("inference", "training"),
                "tenant": _text(63),
                "project": _text(63),
                "business_line": _text(63),
                "weight": whole(1, 65535, null=True),
                "priority": whole(0, 2**31 - 1, null=True),
                "reclaimable": _TRUTH,
                "cpu_milli": _AMOUNT,
                "memory_bytes": _AMOUNT,
                "parent": _text(63),
                "deserved": _ref("QuantitiesEdit"),
                "guarantee": _ref("QuantitiesEdit"),
                "state": _one_of("Open", "Closed"),
                "card_quota": _ref("CardCounts"),
            },
            "A queue. A new one needs `service_type` and its project or business line.",
        ),
    ),
    "grant": (
        "^grant/[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?/[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$",
        "GrantEdit",
        _patch({}, "A namespace that may use a queue: `grant/namespace/queue`."),
    ),
    "tide-plan": (
        f"^tide-plan/{tide_document.PLAN_NAME}$",
        "TidePlanEdit",
        _patch(
            {
                "enabled": _TRUTH,
                "position": whole(0, 1_000_000, null=True),
                "time_zone": _text(LONGEST_ZONE),
                "exceptions": {"anyOf": [_ref("TideExceptions"), {"type": "null"}]},
                "layers": {"anyOf": [LAYERS, {"type": "null"}]},
            },
            "A tide plan.",
        ),
    ),
}


def members_of(kind: str) -> dict[str, Any]:
    """The members of a document of the kind; none of what is no part of the tree."""
    found: dict[str, Any] = _KINDS[kind][2]["properties"] if kind in _KINDS else {}
    return found


EDITS = {
    "type": "object",
    "description": "Object → merge patch (RFC 7386) of its document; null deletes it, a new key makes it. At most "
    f"{MOST_FIGURES} figures together, {MOST_UNKNOWN} of them of card types that the cluster does not have.",
    "maxProperties": MOST_EDITS,
    "patternProperties": {pattern: _ref(name) for pattern, name, _shape in _KINDS.values()},
    "additionalProperties": False,
    "example": {"queue/acme-online": {"card_quota": {"NVIDIA-H200": 8}}},
}
FIGURE = {
    "description": "One figure of a document: a number, a text, true or false, or the names and rows of a list; null "
    "where there is none.",
    "anyOf": [
        {"type": ["string", "number", "boolean", "null"]},
        {"type": "array", "items": {"type": "string"}},
        LAYERS,
        {"type": "object", "maxProperties": 0, "additionalProperties": False},
    ],
    "example": 8,
}
# As in the file (`changes.tree_file`): section → name → document.
TREE = {
    "type": "object",
    "description": "The quota tree of a cluster, as in its YAML file: section → name → document. A document that is "
    "null says nothing, such as that of a grant; what is not named is deleted, or stays with `keep`.",
    "required": ["format"],
    "properties": {
        "format": {"type": "integer", "enum": [tree_file.FORMAT]},
        "cluster": {"type": "string", "pattern": STORABLE},
        **{
            tree_file.SECTIONS[kind]: {
                "type": ["object", "null"],
                "patternProperties": {pattern.replace(f"^{kind}/", "^"): _ref(name)},
                "additionalProperties": False,
            }
            for kind, (pattern, name, _shape) in _KINDS.items()
        },
    },
    "additionalProperties": False,
}
COMPONENTS: dict[str, Any] = {
    **{name: shape for _pattern, name, shape in _KINDS.values()},
    "CardCounts": CARD_COUNTS,
    "QuantitiesEdit": QUANTITIES,
    "LimitRow": LIMIT_ROW,
    "LimitsEdit": LIMITS,
    "QuotaEdit": QUOTA_BY_SERVICE,
    "TideStep": STEP,
    "TideLayer": LAYER,
    "TideExceptions": EXCEPTIONS,
    "TreeEdits": EDITS,
    "Tree": TREE,
    "Figure": FIGURE,
}
