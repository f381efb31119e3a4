"""What an alert says in figures, by its code. Who does not see everything gets none of them."""

from __future__ import annotations

from typing import Any

from tidesched_web.scheduling.models import ReachState

_NUMBER, _COUNT, _TEXT = {"type": "number"}, {"type": "integer"}, {"type": "string"}
_CARDS = {"type": "object", "additionalProperties": _NUMBER, "description": "Card name → count."}
_SCHEMAS = "#/components/schemas/"


def _ref(name: str) -> dict[str, str]:
    return {"$ref": f"{_SCHEMAS}{name}"}


_REACH = tuple(f"cluster_{state}" for state in ReachState.values if state != ReachState.CONNECTED)
_INPUT_ERROR = {
    **{name: {"type": ["string", "null"]} for name in ("code", "file", "path", "message", "hint")},
    "line": {"type": ["integer", "null"]},
    "value": {"anyOf": [_ref("Fact"), _ref("Facts3")], "description": "What is there."},
}
# Name of the group → its codes, its figures.
_GROUPS: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "QuotaOverHardware": (
        ("quota_over_hardware",),
        {"service_type": _TEXT, "card": _TEXT, "quota": _NUMBER, "hardware": _NUMBER},
    ),
    "Node": (("node_lost", "node_not_ready"), {"node": _TEXT, "cards": _CARDS}),
    "NodeRecut": (("node_recut",), {"node": _TEXT, "before": _CARDS, "after": _CARDS}),
    "ForeignScheduler": (("foreign_scheduler",), {"holder": _TEXT}),
    "PartialReclaim": (
        ("partial_reclaim",),
        {"reclaim": {"type": ["integer", "null"]}, "stayed": {"type": "array", "items": _TEXT, "maxItems": 20}},
    ),
    "PolicyInvalid": (("policy_invalid",), _INPUT_ERROR),
    "NoSession": (("session_failed", "no_policy"), {"failures": _COUNT, "said": _TEXT}),
    "Card": (("card_lost", "quota_without_card"), {"card": _TEXT, "quota": _NUMBER}),
    "Drift": (("drift", "push_refused"), {"objects": _COUNT, "object": _TEXT}),
    "Reach": (_REACH, {"kinds": _TEXT}),
    "PromiseUnused": (
        ("promise_unused",),
        {"queue": _TEXT, "card": _TEXT, "promised": _NUMBER, "waiting": _COUNT, "hours": _COUNT},
    ),
    "AuditBroken": (("audit_broken",), {"chain": _TEXT, "entry": {"type": ["integer", "null"]}}),
    "EvictionBudget": (
        ("eviction_budget",),
        {
            "rule": {**_TEXT, "enum": ["gangs_per_minute", "cards_per_minute", "share_of_training"]},
            "limit": _NUMBER,
            "asked": _NUMBER,
            "used_by": {**_COUNT, "description": "The session that was let pass."},
        },
    ),
}
CODES = tuple(code for codes, _figures in _GROUPS.values() for code in codes)
COMPONENTS: dict[str, Any] = {
    **{
        f"{name}AlertNumbers": {"type": "object", "properties": figures, "additionalProperties": False}
        for name, (_codes, figures) in _GROUPS.items()
    },
    **{
        f"{name}Alert": {
            "type": "object",
            "required": ["code", "numbers"],
            "properties": {"code": {"type": "string", "enum": [*codes]}, "numbers": _ref(f"{name}AlertNumbers")},
        }
        for name, (codes, _figures) in _GROUPS.items()
    },
    "AlertNumbers": {
        "description": "The figures of an alert, by its code; empty for who does not see everything.",
        "anyOf": [_ref(f"{name}AlertNumbers") for name in _GROUPS],
    },
}


def add_to(schemas: dict[str, Any]) -> None:
    """Bind the figures of an alert to its code."""
    alert = schemas["AlertDocument"]
    alert["oneOf"] = [_ref(f"{name}Alert") for name in _GROUPS]
    alert["discriminator"] = {
        "propertyName": "code",
        "mapping": {code: f"{_SCHEMAS}{name}Alert" for name, (codes, _figures) in _GROUPS.items() for code in codes},
    }
    alert["properties"]["code"] = {"type": "string", "enum": [*CODES]}
