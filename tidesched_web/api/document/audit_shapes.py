"""What an audit entry says of its object before and after, by the kind of the object.

The members that this version writes have their types. Others are bounded and not refused: the log is kept for years,
and holds entries that earlier versions wrote.
"""

from __future__ import annotations

from typing import Any

from tidesched_web.api.document import tree_shapes
from tidesched_web.changes.models import ChangeState

_TEXT = {"type": ["string", "null"]}
_WHOLE = {"type": ["integer", "null"]}
_TRUTH = {"type": ["boolean", "null"]}
_TEXTS = {"type": ["array", "null"], "items": {"type": "string"}}
_MOMENT = {"type": ["string", "null"], "format": "date-time"}
_CARDS = {"type": ["object", "null"], "additionalProperties": {"type": "integer"}}
_COUNTS = {"type": ["object", "null"], "additionalProperties": {"type": "integer"}}
_SCHEMAS = "#/components/schemas/"


def _ref(name: str) -> dict[str, str]:
    return {"$ref": f"{_SCHEMAS}{name}"}


_FURTHER = {"anyOf": [_ref("Fact"), _ref("Facts6"), {"type": "array", "items": _ref("Facts6")}]}
_ROWS = {"type": ["array", "null"], "items": _ref("Facts5")}
_AMOUNT = {
    "type": ["object", "null"],
    "properties": {
        "cpu_milli": _WHOLE,
        "memory_bytes": _WHOLE,
        "cards": {"type": "object", "additionalProperties": {"type": "number"}},
    },
    "additionalProperties": False,
}
# A quota that was set by itself, for one service type.
_QUOTA = {"service_type": _TEXT, "card_quota": _CARDS, "cpu_milli": _WHOLE, "memory_mib": _WHOLE}
_OWNER = {"slug": _TEXT, "description": _TEXT, **_QUOTA}
# Object type → its members beside those of its document in the tree, and what they are.
_KINDS: dict[str, tuple[dict[str, Any], str]] = {
    "rules": ({}, "The rules of a cluster."),
    "card_type": ({"name": _TEXT}, "A card type."),
    "tenant": (_OWNER, "A tenant."),
    "project": ({"tenant": _TEXT, **_OWNER}, "A project."),
    "business_line": ({"tenant": _TEXT, **_OWNER}, "A business line."),
    "priority_class": ({"name": _TEXT}, "A priority class."),
    "queue": ({"name": _TEXT, "memory_mib": _WHOLE}, "A queue: its owner, quota and limits."),
    "grant": ({"namespace": _TEXT, "queue": _TEXT}, "A namespace that may use a queue."),
    "tide_plan": ({}, "A tide plan: its layers and the dates that count otherwise."),
    "quota_change": (
        {
            "state": {"type": "string", "enum": [*ChangeState.values]},
            "created_by": _TEXT,
            "approved_by": _TEXT,
            "apply_at": _MOMENT,
            "objects": _WHOLE,
        },
        "A change: how far it is, and whose. What it did is in the entries of its objects.",
    ),
    "cluster": (
        {
            "name": _TEXT,
            "slug": _TEXT,
            "mode": _TEXT,
            "api_url": _TEXT,
            "simulated": _TRUTH,
            "credentials_changed": _TRUTH,
            "paused_at": _MOMENT,
            "alert": _WHOLE,
            "message": _TEXT,
            "went_along": _COUNTS,
        },
        "A cluster: its settings that changed, its connection without secrets, the pause, the guard.",
    ),
    "policy": ({"number": _WHOLE, "text": _TEXT, "released": _TRUTH, "released_at": _MOMENT}, "A policy: its text."),
    "user": (
        {
            "username": _TEXT,
            "platform_role": _TEXT,
            "email": _TEXT,
            "active": _TRUTH,
            "tokens_revoked": _WHOLE,
            "expires_at": _MOMENT,
            "limit": {**_TEXT, "description": "Of a sign-in that was refused: which limit."},
            "seconds_to_wait": _WHOLE,
            "counts": {**_COUNTS, "description": "Tries that were counted and not written one by one."},
            "addresses": _COUNTS,
            "addresses_seen": _WHOLE,
        },
        "An account, or tries to sign in.",
    ),
    "token": ({"name": _TEXT, "scopes": _TEXTS, "expires_at": _MOMENT, "tenant": _TEXT}, "A token, without its text."),
    "membership": ({"role": _TEXT}, "What a person is in a tenant."),
    "reclaim": (
        {
            "reclaimer": _TEXT,
            "queue": _TEXT,
            "needed": _AMOUNT,
            "freed": _AMOUNT,
            "victims": _ROWS,
            "votes": _ROWS,
            "queues": _ROWS,
            "candidates": _ROWS,
            "more_candidates": _WHOLE,
            "session": _WHOLE,
        },
        "A reclaim: its receipt.",
    ),
    "alert": ({"message": _TEXT}, "An alert that a person acknowledged or resolved."),
    "audit_segment": (
        {"chain": _TEXT, "first_seq": _WHOLE, "last_seq": _WHOLE, "last_hash": _TEXT, "sha256": _TEXT},
        "A sealed stretch of a chain.",
    ),
    "signing_key": ({"key_id": _TEXT, "public_key": _TEXT}, "The key that signs entries, and the one before."),
}


def _state(kind: str) -> dict[str, Any]:
    members, text = _KINDS[kind]
    return {
        "type": ["object", "null"],
        "description": text,
        "properties": {**tree_shapes.members_of(kind.replace("_", "-")), **members},
        "additionalProperties": _FURTHER,
    }


def _name(kind: str) -> str:
    return "".join(part.title() for part in kind.split("_"))


def _entry(kinds: dict[str, Any], state: str) -> dict[str, Any]:
    return {
        "type": "object",
        "required": ["object_type", "before", "after"],
        "properties": {"object_type": {"type": "string", **kinds}, "before": _ref(state), "after": _ref(state)},
    }


COMPONENTS: dict[str, Any] = {
    **{f"{_name(kind)}AuditState": _state(kind) for kind in _KINDS},
    **{f"{_name(kind)}AuditEntry": _entry({"enum": [kind]}, f"{_name(kind)}AuditState") for kind in _KINDS},
    "OtherAuditEntry": {
        **_entry({"not": {"enum": [*_KINDS]}}, "AuditState"),
        "description": "Of an object of a kind that this version does not write.",
    },
}


def add_to(schemas: dict[str, Any]) -> None:
    """Bind what an entry says of its object to the kind of the object."""
    schemas["AuditEntryDocument"]["oneOf"] = [_ref(f"{_name(kind)}AuditEntry") for kind in _KINDS] + [
        _ref("OtherAuditEntry")
    ]
