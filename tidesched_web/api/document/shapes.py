"""Shapes that several operations share: what a plan and a dry run say, and values of any kind."""

from __future__ import annotations

from typing import Any

VALUE = {"$ref": "#/components/schemas/Value"}
_VALUES = {"type": "object", "additionalProperties": VALUE}
_TEXTS = {"type": "object", "additionalProperties": {"type": "string"}}
_TEXT, _NUMBER = {"type": "string"}, {"type": ["number", "null"]}
_NAME = {"type": ["string", "null"]}


def _object(properties: dict[str, Any], *optional: str) -> dict[str, Any]:
    required = [name for name in properties if name not in optional]
    return {"type": "object", "required": required, "properties": properties, "additionalProperties": False}


def _list(item: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": item}


_DIFFERENCE = _object(
    {
        "object": {**_TEXT, "example": "queue/chat"},
        "field": {**_TEXT, "description": "JSON pointer into its document.", "example": "/card_quota/NVIDIA-H200"},
        "before": VALUE,
        "after": VALUE,
        "in_use": {**_NUMBER, "description": "Of a card: how many are in use now."},
    },
    "in_use",
)
_BREACH = _object(
    {
        "pointer": {**_TEXT, "example": "/edits/queue~1chat/card_quota/NVIDIA-H200"},
        "object": _TEXT,
        "field": _TEXT,
        "code": {**_TEXT, "example": "above_parent"},
        "detail": _TEXT,
        "requested": VALUE,
        "limit": VALUE,
        "in_use": VALUE,
        "sibling": _NAME,
        "sibling_object": _NAME,
    }
)
_CARRIED = _object(
    {
        "kind": _TEXT,
        "name": _TEXT,
        "before": {"anyOf": [_VALUES, {"type": "null"}]},
        "after": {"anyOf": [_VALUES, {"type": "null"}]},
        "replaced": {"type": "boolean"},
    },
    "replaced",
)
_SERVER = {
    "type": ["object", "null"],
    "description": "The cluster's answer to a dry run of the objects: which of them it would refuse, and why.",
    "properties": {
        "checked": {"type": "integer"},
        "objects": {"type": "integer"},
        "unavailable": _TEXT,
        "refused": _list(_object({"kind": _TEXT, "name": _TEXT, "detail": _TEXT})),
    },
    "additionalProperties": False,
}
_PLAN = {
    "type": "object",
    "description": "What a change does: figures, objects of the cluster, errors, warnings, what moved since its base "
    "(`stale` stops it, `merged` are others' figures of the same objects, which stay), who has to approve it, and its "
    "impact, which is null before it was asked for.",
    "required": [
        "base_version", "tree_version", "fields", "objects", "errors", "warnings", "stale", "merged", "approval",
        "impact",
    ],
    "properties": {
        "base_version": {"type": "integer"},
        "tree_version": {"type": "integer"},
        "fields": _list(_DIFFERENCE),
        "objects": _list(_CARRIED),
        "errors": _list(_BREACH),
        "warnings": _list(_VALUES),
        "stale": _list(_DIFFERENCE),
        "merged": _list(_DIFFERENCE),
        "approval": _object({"due": {"type": "boolean"}, "why": _list(_TEXTS)}),
        "impact": {"anyOf": [_VALUES, {"type": "null"}]},
        "server": _SERVER,
    },
    "additionalProperties": False,
}  # fmt: skip
COMPONENTS: dict[str, Any] = {
    "Value": {
        "description": "A value of any kind: a figure, a text, or a part of a document.",
        "anyOf": [
            {"type": ["string", "number", "boolean", "null"]},
            {"type": "array", "items": VALUE},
            {"type": "object", "additionalProperties": VALUE},
        ],
        "example": 8,
    },
    "Plan": _PLAN,
    "DryRun": {
        "type": "object",
        "description": "The answer to `dry_run=true`: nothing was done.",
        "required": ["dry_run"],
        "properties": {
            "dry_run": {"type": "boolean", "const": True, "example": True},
            "plan": {"$ref": "#/components/schemas/Plan"},
            "dependents": {**_list(_VALUES), "description": "Of a deletion: what would go along."},
            "valid": {"type": "boolean", "description": "Of a policy: whether a session could run under it."},
            "findings": {**_list(_VALUES), "description": "Of a policy."},
            "difference": {**_list(_TEXT), "description": "Of a policy: its lines against the one that rules."},
            "impact": {"anyOf": [_VALUES, {"type": "null"}], "description": "Of a policy."},
            "test": {"anyOf": [_VALUES, {"type": "null"}], "description": "Of a connection: its test."},
        },
        "additionalProperties": False,
        "example": {"dry_run": True},
    },
}


def closed(part: Any) -> None:
    """Say of every map that holds anything that its values are values: no schema of the document is empty."""
    if isinstance(part, list):
        for one in part:
            closed(one)
        return
    if not isinstance(part, dict):
        return
    if part.get("additionalProperties") in (True, {}):
        part["additionalProperties"] = dict(VALUE)
    kind = part.get("type")
    holds = kind == "object" or (isinstance(kind, list) and "object" in kind)
    if holds and not {"properties", "additionalProperties"} & part.keys():
        part["additionalProperties"] = dict(VALUE)
    for name, inner in part.items():
        if name not in ("example", "examples", "default"):
            closed(inner)
