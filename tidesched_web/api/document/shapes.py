"""Shapes that several operations share: what a plan and a dry run say."""

from __future__ import annotations

from typing import Any

from tidesched_web.api.document import audit_shapes, tree_shapes, value_shapes
from tidesched_web.api.document.value_shapes import or_null

_FIGURE = {"$ref": "#/components/schemas/Figure"}
_FACTS = {"$ref": "#/components/schemas/Facts3"}
_MANIFEST = or_null({"$ref": "#/components/schemas/Facts5"})
_IMPACT = or_null({"$ref": "#/components/schemas/Impact"})
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
        "before": _FIGURE,
        "after": _FIGURE,
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
        "requested": _NUMBER,
        "limit": _NUMBER,
        "in_use": _NUMBER,
        "sibling": _NAME,
        "sibling_object": _NAME,
    }
)
_CARRIED = _object(
    {
        "kind": _TEXT,
        "name": _TEXT,
        "before": _MANIFEST,
        "after": _MANIFEST,
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
    "(`stale` stops it, `merged` are others' figures of the same objects, which stay), the quota of tenants that is "
    "`asked` for and that a platform admin has to grant, who has to approve it, and its "
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
        "more_errors": {"type": "integer", "description": "Errors beyond the 200 that `errors` lists."},
        "warnings": _list(_FACTS),
        "stale": _list(_DIFFERENCE),
        "merged": _list(_DIFFERENCE),
        "asked": _list(_DIFFERENCE),
        "approval": _object({"due": {"type": "boolean"}, "why": _list(_TEXTS)}),
        "impact": _IMPACT,
        "server": _SERVER,
    },
    "additionalProperties": False,
}  # fmt: skip


def _way(*names: str, without: tuple[str, ...]) -> dict[str, Any]:
    """One of several ways: what it needs, and what belongs to the others."""
    asked: dict[str, Any] = dict.fromkeys(names, _TEXT)
    others = {name: {"const": False} if name == "in_cluster" else False for name in without}
    if "in_cluster" in asked:
        asked["in_cluster"] = {"const": True}
    return {"type": "object", "required": [*names], "properties": asked | others}


# Members of a body that depend on each other, by the component of the body.
DEPENDENT: dict[str, dict[str, Any]] = {
    name: {
        "oneOf": [
            _way("kubeconfig", without=("api_url", "in_cluster")),
            _way("api_url", "token", without=("kubeconfig", "in_cluster")),
            _way("in_cluster", without=("kubeconfig", "api_url")),
        ]
    }
    for name in ("ConnectionInput", "ClusterInput")
}
COMPONENTS: dict[str, Any] = {
    **tree_shapes.COMPONENTS,
    **value_shapes.COMPONENTS,
    **audit_shapes.COMPONENTS,
    "Plan": _PLAN,
    "ChangeErrors": _list(_BREACH),
    "DryRun": {
        "type": "object",
        "description": "The answer to `dry_run=true`: nothing was done.",
        "required": ["dry_run"],
        "properties": {
            "dry_run": {"type": "boolean", "const": True, "example": True},
            "plan": {"$ref": "#/components/schemas/Plan"},
            "dependents": {**_list(_FACTS), "description": "Of a deletion: what would go along."},
            "edits": {**_FACTS, "description": "Of a deletion that is a quota change: the edits of that change."},
            "valid": {"type": "boolean", "description": "Of a policy: whether a session could run under it."},
            "findings": {**_list(_FACTS), "description": "Of a policy."},
            "difference": {**_list(_TEXT), "description": "Of a policy: its lines against the one that rules."},
            "impact": {**_IMPACT, "description": "Of a policy."},
            "test": or_null({"$ref": "#/components/schemas/ConnectionTestDocument"}),
        },
        "additionalProperties": False,
        "example": {"dry_run": True},
    },
}
