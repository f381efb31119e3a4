"""Shapes of what is shown and not asked for: figures of reasons, what an impact names, states in the audit log.

`Facts…` are maps of names to figures, texts, lists and further maps: `Facts1` holds plain ones alone, each next one may
hold maps of the one before. No shape refers to itself, so that a reader knows how deep a document can be.
"""

from __future__ import annotations

from typing import Any

from tidesched_web.api.document import alert_shapes, reason_shapes

_TEXT = {"type": "string"}
_NAME = {"type": ["string", "null"]}
_NUMBER = {"type": "number"}
_COUNT = {"type": "integer"}
DEEPEST_FACTS = 7


def _ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


def _list(item: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": item}


def _map(value: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": value}


def _open(properties: dict[str, Any], *required: str, description: str) -> dict[str, Any]:
    """Known members, and further plain figures."""
    return {
        "type": "object",
        "description": description,
        "required": list(required),
        "properties": properties,
        "additionalProperties": _ref("Fact"),
    }


def or_null(shape: dict[str, Any]) -> dict[str, Any]:
    """The shape, or null."""
    return {"anyOf": [shape, {"type": "null"}]}


CARDS = _map(_NUMBER)
FACT = {
    "description": "A figure, a text, true or false, null, or a list of them.",
    "anyOf": [
        {"type": ["string", "number", "boolean", "null"]},
        {"type": "array", "items": {"type": ["string", "number", "boolean", "null"]}},
    ],
    "example": 8,
}


def _facts(level: int) -> dict[str, Any]:
    if level == 1:
        return {**_map(_ref("Fact")), "description": "Name → figure, text, or a list of them."}
    below = _ref(f"Facts{level - 1}")
    return {
        **_map({"anyOf": [_ref("Fact"), below, _list(below)]}),
        "description": f"Name → figure, text, list, or a map of the kind `Facts{level - 1}`.",
    }


_HOLDER = {
    "type": "object",
    "description": "A gang that holds, or is promised, some of what is asked for; names out of sight are null.",
    "required": ["gang", "queue", "amount"],
    "properties": {
        "gang": _NAME,
        "queue": _NAME,
        "amount": _NUMBER,
        "promised_since": {
            "type": ["string", "null"],
            "format": "date-time",
            "description": "Since when it is only promised, by the cluster's clock.",
        },
    },
    "additionalProperties": False,
}
_WHY = {
    "type": "object",
    "required": ["code", "numbers", "message"],
    "properties": {"code": _TEXT, "numbers": _ref("ReasonNumbers"), "message": _TEXT},
    "additionalProperties": False,
}
_GANG_ROW = _open(
    {
        "gang": _TEXT,
        "queue": _TEXT,
        "service_type": _TEXT,
        "priority": _COUNT,
        "cards": CARDS,
        "becomes": {**_TEXT, "description": "running, larger, promised or admitted."},
        "was": {**_TEXT, "description": "Of one that loses: what it was."},
        "pods": {**_COUNT, "description": "Of one that gains: how many pods would have a node."},
        "pods_more": _COUNT,
        "pods_fewer": _COUNT,
        "reason": or_null(_ref("ImpactReason")),
        "reason_before": or_null(_ref("ImpactReason")),
        "sessions": {**_COUNT, "description": "Over a day: in how many sessions."},
    },
    "gang", "queue",
    description="A gang that has more, or less, than it would have had.",
)  # fmt: skip
_VICTIM_ROW = _open(
    {
        "gang": _TEXT,
        "queue": _NAME,
        "cards": or_null(CARDS),
        "pods": {"type": ["integer", "null"]},
        "work_lost_card_seconds": {"type": ["number", "null"]},
        "reclaimer": _TEXT,
        "reclaimer_queue": _NAME,
        "action": _TEXT,
        "last_restart": {"type": "boolean"},
    },
    "gang",
    description="A gang that is evicted, or is no longer.",
)  # fmt: skip
_QUEUE_ROW = _open(
    {"queue": _TEXT, "service_type": _TEXT, "resource": _TEXT, "in_use": _NUMBER, "over": _NUMBER},
    "queue", "resource",
    description="A queue that uses more than it then may.",
)  # fmt: skip
_FLOOD_SIDE = {
    "type": "object",
    "description": "What the next flood claims, takes and cannot serve.",
    "properties": {"gangs": _COUNT, "cards": CARDS, "claims": _map(CARDS), "unserved": _map(CARDS)},
    "additionalProperties": False,
}
_GAIN_LISTS = ("gangs_run", "gangs_promised", "gangs_admitted", "gangs_lose")
_VICTIM_LISTS = ("reclaimed_next", "spared_next", "reclaimed_at_flood", "spared_at_flood")
IMPACT = {
    "type": "object",
    "description": "What the next session would do otherwise, over the snapshot of `session`; over a day `sessions` "
    "says how many were tried. Each list is cut, `counts` has the whole figures, `hidden` how many rows are of others. "
    "`pending` names what is still being worked out, `unavailable` why there is no answer yet.",
    "properties": {
        "version": _COUNT,
        "session": _COUNT,
        "session_id": _COUNT,
        "at": {**_TEXT, "format": "date-time"},
        "cluster_time": {**_TEXT, "format": "date-time"},
        "age_seconds": _NUMBER,
        "stale": {"type": "boolean"},
        "pods": _COUNT,
        "gangs": _COUNT,
        "counts": _map(_COUNT),
        "hidden": _map(_COUNT),
        "more": _map(_COUNT),
        "elapsed_ms": CARDS,
        "pending": _list(_TEXT),
        **{name: _list(_ref("ImpactGang")) for name in _GAIN_LISTS},
        **{name: _list(_ref("ImpactVictim")) for name in _VICTIM_LISTS},
        "queues_over": _list(_ref("ImpactQueue")),
        "flood": or_null(_map(_FLOOD_SIDE)),
        "flood_unavailable": _TEXT,
        "card_hours": or_null(_map(_map(CARDS))),
        "sessions": _ref("Facts1"),
        "job": _COUNT,
        "unavailable": {**_TEXT, "description": "timeout, no_worker, failed, cancelled, no_snapshot …"},
        "detail": _TEXT,
    },
    "additionalProperties": _ref("Fact"),
}
AUDIT_STATE = {
    **_map({"anyOf": [_ref("Fact"), _ref("Facts6"), _list(_ref("Facts6"))]}),
    "type": ["object", "null"],
    "description": "The members of the object of the entry; which they are follows from its kind (`object_type`): "
    "`QueueAuditState`, `ReclaimAuditState` and so on.",
}
COMPONENTS: dict[str, Any] = {
    "Fact": FACT,
    **{f"Facts{level}": _facts(level) for level in range(1, DEEPEST_FACTS)},
    "Holder": _HOLDER,
    **alert_shapes.COMPONENTS,
    **reason_shapes.COMPONENTS,
    "ImpactReason": _WHY,
    "ImpactGang": _GANG_ROW,
    "ImpactVictim": _VICTIM_ROW,
    "ImpactQueue": _QUEUE_ROW,
    "Impact": IMPACT,
    "AuditState": AUDIT_STATE,
    "ChangeFailure": or_null(
        {
            "type": "object",
            "description": "Why nothing was written, or which objects the cluster refused.",
            "required": ["code", "detail"],
            "properties": {"code": _TEXT, "detail": _TEXT},
            "additionalProperties": {"anyOf": [_ref("Fact"), _ref("Facts2"), _list(_ref("Facts2"))]},
        }
    ),
    "JobResult": {
        "description": "Of an impact what it found; of other jobs figures and texts.",
        "anyOf": [_ref("Impact"), _ref("Facts4"), {"type": "null"}],
    },
    "Instead": _facts(4),
    "Taint": {
        "type": "object",
        "description": "A taint as Kubernetes writes it.",
        "properties": {"key": _TEXT, "value": _NAME, "effect": _TEXT, "timeAdded": _NAME},
        "additionalProperties": _NAME,
    },
}
