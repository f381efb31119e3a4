from typing import Any

from tidesched_web.api.v1.serializers.json_shapes import Shape, closed, list_of, optional, or_null, ref
from tidesched_web.changes import tree_file
from tidesched_web.changes.documents import MOST_ALIASES, MOST_CARD_TYPES
from tidesched_web.changes.services.planning import MOST_EDITS
from tidesched_web.common.calendar_bounds import YEAR
from tidesched_web.quota import names
from tidesched_web.quota.tide import NO_DAY, WEEKDAYS
from tidesched_web.quota.tide_document import LONGEST_ZONE, MOST_CARDS, MOST_EXCEPTIONS, MOST_LAYERS
from tidesched_web.quota.tide_document import PLAN_NAME as PLAN_NAME_FORM

_SLUG_FORM, _CARD_FORM = "[-a-zA-Z0-9_]{1,63}", "[!-~]{1,120}"
DNS_NAME, SUBDOMAIN, CARD_NAME = f"^{names.LABEL.form}$", f"^{names.SUBDOMAIN.form}$", f"^{_CARD_FORM}$"
PLAN_NAME = rf"^{PLAN_NAME_FORM}$"
_QUANTITY = r"^[0-9]{1,15}(\.[0-9]{1,9})?([munkKMGTPE]|[KMGTPE]i)?$"
MOST_AMOUNT = 2**62
# No text holds a zero byte, which the database cannot store; nor does the name of a member, whatever it names.
STORABLE = r"^[^\x00]*$"
STORABLE_NAMES: Shape = {"propertyNames": {"type": "string", "pattern": STORABLE}}
# A moment with its zone, in a year that every time zone has a local time for.
TIME = f"^{YEAR}" r"-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?(Z|[+-][0-9]{2}:[0-9]{2})$"
_DAY_TIME = r"([01][0-9]|2[0-3]):[0-5][0-9]"


def _whole(least: int, most: int, *, null: bool = False) -> Shape:
    return {"type": ["integer", "null"] if null else "integer", "minimum": least, "maximum": most}


def _text(most: int) -> Shape:
    return {"type": ["string", "null"], "maxLength": most, "pattern": STORABLE}


def _one_of(*values: str) -> Shape:
    return {"type": ["string", "null"], "enum": [*values, None]}


def _moment(pattern: str, most: int, example: str) -> Shape:
    """A time of day. Readers of YAML 1.1 take 22:00 for the number 1320, so that is taken too."""
    form = {"type": ["string", "integer"], "pattern": f"^{pattern}$", "minimum": 0, "maximum": most}
    return {**form, "example": example}


def _map(value: Shape, **said: Any) -> Shape:
    return {"type": "object", **said, **STORABLE_NAMES, "additionalProperties": value}


_NULL_TOO: Shape = {"type": ["object", "null"]}
_TRUTH: Shape = {"type": ["boolean", "null"]}
_PERCENT, _AMOUNT = _whole(1, 10_000, null=True), _whole(0, MOST_AMOUNT, null=True)
_CARD_COUNTS = _map(
    _whole(0, MOST_CARDS, null=True),
    maxProperties=MOST_CARD_TYPES,
    description="Card name → count; null takes a card away.",
    **_NULL_TOO,
)
_QUANTITIES = _map(
    {"type": ["string", "integer", "null"], "pattern": _QUANTITY, "minimum": 0, "maximum": 2**63 - 1},
    description="Resource → quantity as Kubernetes writes it; null takes one away.",
    **_NULL_TOO,
)
_AMOUNTS = {"card_quota": ref("CardCounts"), "cpu_milli": _AMOUNT, "memory_bytes": _AMOUNT}
_LIMITS = optional(_AMOUNTS, description="What may be handed out for one service type; null is no limit.", **_NULL_TOO)
_LIMIT_ROW = closed(
    {
        "cluster": {"oneOf": [_whole(0, 2**63 - 1), {"type": "string", "minLength": 1, "maxLength": 63}]},
        "service_type": {"type": "string", "enum": ["inference", "training"]},
        "cards": ref("CardCounts"),
        **_AMOUNTS,
    },
    *("cards", *_AMOUNTS),
    description="A limit as the document of its holder shows it; `card_quota` is another name of `cards`.",
)
_STEP: Shape = {
    "description": 'One of `{"set": n}` and `{"add": ±n}`.',
    "oneOf": [closed({"set": _whole(0, MOST_CARDS)}), closed({"add": _whole(-MOST_CARDS, MOST_CARDS)})],
}
_LAYER = closed(
    {
        "name": {"type": "string", "maxLength": 120, "pattern": STORABLE},
        "days": list_of({"type": "string", "enum": list(WEEKDAYS)}, minItems=1),
        "start": _moment(_DAY_TIME, 24 * 60 - 1, "22:00"),
        "end": {
            **_moment(f"({_DAY_TIME}|24:00)", 24 * 60, "07:00"),
            "description": "Before start: on the next day. It is not start. A number is minutes since midnight.",
        },
        "quota": _map(_map(ref("TideStep"), minProperties=1), minProperties=1, description="Queue → card → step."),
        "ended_at": {
            "type": ["string", "null"],
            "format": "date-time",
            "pattern": TIME,
            "example": "2026-11-20T02:00:00+00:00",
            "description": "A person has ended the layer at this moment of the cluster's clock: it is closed until it "
            "opens the next time. Left out or null: it was not ended.",
        },
    },
    "name",
    "ended_at",
)
LAYERS = list_of(ref("TideLayer"), maxItems=MOST_LAYERS)
_EXCEPTIONS: Shape = {
    "type": "object",
    "description": "Date → the weekday that it counts as, or none.",
    "maxProperties": MOST_EXCEPTIONS,
    "propertyNames": {"format": "date"},
    "additionalProperties": _one_of(NO_DAY, *WEEKDAYS),
}

# kind → (form of what comes after it in a key, name of the component, members of its document, what it is)
_KINDS: dict[str, tuple[str, str, Shape, str]] = {
    "rules": ("cluster", "RulesEdit", {
        "approval_required": _TRUTH, "overcommit_inference_percent": _PERCENT, "overcommit_training_percent": _PERCENT,
    }, "The rules of the cluster, which cannot be deleted."),
    "card-type": (_CARD_FORM, "CardTypeEdit", {
        "resource": _text(120), "kind": _one_of("whole", "mig", "mps"), "parent": _text(120),
        "aliases": list_of({"type": "string", "pattern": CARD_NAME}, maxItems=MOST_ALIASES, type=["array", "null"]),
    }, "A card type that was declared."),
    "tenant": (_SLUG_FORM, "TenantEdit", {
        "name": _text(120), "description": _text(4000), "approval_required": _TRUTH, "quota": ref("QuotaEdit"),
    }, "A tenant."),
    "project": (f"{_SLUG_FORM}/{_SLUG_FORM}", "ProjectEdit", {"name": _text(120), "quota": ref("QuotaEdit")},
        "A project: `project/tenant/slug`."),
    "business-line": (f"{_SLUG_FORM}/{_SLUG_FORM}", "BusinessLineEdit", {"name": _text(120)},
        "A business line: `business-line/tenant/slug`, `-` for the platform's own."),
    "priority-class": (names.SUBDOMAIN.form, "PriorityClassEdit", {
        "value": _whole(-(2**31), 1_000_000_000, null=True), "global_default": _TRUTH,
        "preemption_policy": _one_of("PreemptLowerPriority", "Never"), "description": _text(4000), "replace": _TRUTH,
    }, "A priority class. Another value of a class that is there needs `replace`."),
    "queue": (names.QUEUE.form, "QueueEdit", {
        "service_type": _one_of("inference", "training"),
        **dict.fromkeys(("tenant", "project", "business_line"), _text(63)), "parent": _text(253),
        "weight": _whole(1, 65535, null=True), "priority": _whole(0, 2**31 - 1, null=True), "reclaimable": _TRUTH,
        "deserved": ref("QuantitiesEdit"), "guarantee": ref("QuantitiesEdit"), "state": _one_of("Open", "Closed"),
        **_AMOUNTS,
    }, "A queue. A new one needs `service_type` and its project or business line."),
    "grant": (f"{names.LABEL.form}/{names.QUEUE.form}", "GrantEdit", {},
        "A namespace that may use a queue: `grant/namespace/queue`."),
    "tide-plan": (PLAN_NAME_FORM, "TidePlanEdit", {
        "enabled": _TRUTH, "position": _whole(0, 1_000_000, null=True), "time_zone": _text(LONGEST_ZONE),
        "exceptions": or_null(ref("TideExceptions")), "layers": or_null(LAYERS),
    }, "A tide plan."),
}  # fmt: skip


def _edit(kind: str) -> Shape:
    _form, _name, members, text = _KINDS[kind]
    if kind == "rules":
        return optional(members, description=text)
    return optional(members, description=f"{text} Null deletes it.", **_NULL_TOO)


_EDITS: Shape = {
    "type": "object",
    "description": "Object → merge patch (RFC 7386) of its document; null deletes it, a new key makes it.",
    "maxProperties": MOST_EDITS,
    "patternProperties": {f"^{kind}/{form}$": ref(name) for kind, (form, name, _members, _text) in _KINDS.items()},
    "additionalProperties": False,
}
_FIGURE: Shape = {
    "description": "One figure of a document: a number, a text, true or false, or the names and rows of a list; null "
    "where there is none.",
    "anyOf": [
        {"type": ["string", "number", "boolean", "null"]},
        list_of({"type": "string"}),
        LAYERS,
        {"type": "object", "maxProperties": 0, "additionalProperties": False},
    ],
}
# As in the file (`changes.tree_file`): section → name → document.
_TREE: Shape = {
    "type": "object",
    "description": "The quota tree of a cluster, as in its YAML file: section → name → document. A document that is "
    "null says nothing, such as that of a grant; what is not named is deleted, or stays with `keep`.",
    "required": ["format"],
    "properties": {
        "format": {"type": "integer", "enum": [tree_file.FORMAT]},
        "cluster": {"type": "string", "pattern": STORABLE},
        **{
            tree_file.SECTIONS[kind]: {
                **_NULL_TOO,
                "patternProperties": {f"^{form}$": ref(name)},
                "additionalProperties": False,
            }
            for kind, (form, name, _members, _text) in _KINDS.items()
        },
    },
    "additionalProperties": False,
}
COMPONENTS: Shape = {
    **{name: _edit(kind) for kind, (_form, name, _members, _text) in _KINDS.items()},
    "CardCounts": _CARD_COUNTS,
    "QuantitiesEdit": _QUANTITIES,
    "LimitRow": _LIMIT_ROW,
    "LimitsEdit": _LIMITS,
    "QuotaEdit": optional({"inference": ref("LimitsEdit"), "training": ref("LimitsEdit")}, **_NULL_TOO),
    "TideStep": _STEP,
    "TideLayer": _LAYER,
    "TideExceptions": _EXCEPTIONS,
    "TreeEdits": _EDITS,
    "Tree": _TREE,
    "Figure": _FIGURE,
}
