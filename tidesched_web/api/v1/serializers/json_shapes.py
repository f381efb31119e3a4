"""`Facts1` holds plain figures alone, each next one maps of the one before: no shape refers to itself."""

from typing import Any

Shape = dict[str, Any]

TEXT: Shape = {"type": "string"}
NAME: Shape = {"type": ["string", "null"]}
NUMBER: Shape = {"type": "number"}
COUNT: Shape = {"type": "integer"}
TRUTH: Shape = {"type": "boolean"}
MOMENT: Shape = {"type": "string", "format": "date-time"}
COUNT_OR_NULL: Shape = {"type": ["integer", "null"]}
DEEPEST_FACTS = 7


def ref(name: str) -> Shape:
    return {"$ref": f"#/components/schemas/{name}"}


def list_of(item: Shape, **bounds: Any) -> Shape:
    return {"type": "array", "items": item} | bounds


def map_of(value: Shape) -> Shape:
    return {"type": "object", "additionalProperties": value}


def or_null(shape: Shape) -> Shape:
    return {"anyOf": [shape, {"type": "null"}]}


def closed(properties: Shape, *optional: str, **said: Any) -> Shape:
    required = [name for name in properties if name not in optional]
    needed = {"required": required} if required else {}
    return {"type": "object", **said, **needed, "properties": properties, "additionalProperties": False}


def optional(properties: Shape, **said: Any) -> Shape:
    return closed(properties, *properties, **said)


def extended(properties: Shape, *required: str, **said: Any) -> Shape:
    further = {"required": [*required]} if required else {}
    return {"type": "object", **said, **further, "properties": properties, "additionalProperties": ref("Fact")}


def further_facts(level: int) -> Shape:
    return {"anyOf": [ref("Fact"), ref(f"Facts{level}"), list_of(ref(f"Facts{level}"))]}


CARDS, _COUNTS = map_of(NUMBER), map_of(COUNT)
_PLAIN: Shape = {"type": ["string", "number", "boolean", "null"]}
_FACT: Shape = {"description": "A figure, a text, true or false, null, or a list.", "anyOf": [_PLAIN, list_of(_PLAIN)]}
_HOLDER = closed(
    {"gang": NAME, "queue": NAME, "amount": NUMBER, "promised_since": {**NAME, "format": "date-time"}},
    "promised_since",
    description="A gang that holds, or is promised (since when), some of what is asked for; out of sight: null.",
)
# The figures of all reasons; `change` alone is there where another change overtook an expectation.
REASON_NUMBERS = optional(
    {
        "field": {**TEXT, "description": "Path of a field that the scheduler does not support."},
        "resource": {**TEXT, "description": "A card name (`A|B` for a choice), cpu, memory, pods or another resource."},
        **dict.fromkeys(("requested", "limit", "allocated", "inqueue", "free", "short"), NUMBER),
        "holders": list_of(ref("Holder"), description="At most ten, the largest first."),
        "position": {**COUNT, "description": "Place in the queue, 1 is next."},
        "nodes": {**map_of(COUNT), "description": "Reason → how many nodes said no."},
        "change": COUNT_OR_NULL,
    },
    description="Cards as counts, cpu in milli-cores, memory, storage and huge pages in bytes.",
)
ALERT_NUMBERS = optional(
    {
        **dict.fromkeys(("service_type", "card", "node", "holder", "said", "object", "kinds", "queue", "chain"), TEXT),
        **dict.fromkeys(("quota", "hardware", "promised", "limit", "asked"), NUMBER),
        **dict.fromkeys(("failures", "objects", "waiting", "hours", "used_by"), COUNT),
        **dict.fromkeys(("cards", "before", "after"), CARDS),
        **dict.fromkeys(("reclaim", "line", "entry"), COUNT_OR_NULL),
        **dict.fromkeys(("code", "file", "path", "message", "hint"), NAME),
        "stayed": list_of(TEXT, maxItems=20),
        "value": {"anyOf": [ref("Fact"), ref("Facts3")]},
        "rule": {**TEXT, "enum": ["gangs_per_minute", "cards_per_minute", "share_of_training"]},
    },
    description="The figures of an alert, by its code; empty for who does not see everything.",
)
_GANG_ROW = extended(
    {
        "gang": TEXT, "queue": TEXT, "service_type": TEXT, "priority": COUNT, "cards": CARDS,
        "becomes": {**TEXT, "description": "running, larger, promised or admitted."},
        "was": TEXT, "pods": COUNT, "pods_more": COUNT, "pods_fewer": COUNT,
        "reason": or_null(ref("ImpactReason")), "reason_before": or_null(ref("ImpactReason")),
        "sessions": {**COUNT, "description": "Over a day: in how many sessions."},
    },
    "gang", "queue",
    description="A gang that has more, or less, than it would have had.",
)  # fmt: skip
_VICTIM_ROW = extended(
    {
        "gang": TEXT, "queue": NAME, "cards": or_null(CARDS), "pods": COUNT_OR_NULL,
        "work_lost_card_seconds": {"type": ["number", "null"]}, "reclaimer": TEXT, "reclaimer_queue": NAME,
        "action": TEXT, "last_restart": TRUTH,
    },
    "gang",
    description="A gang that is evicted, or is no longer.",
)  # fmt: skip
_QUEUE_ROW = extended(
    {"queue": TEXT, "service_type": TEXT, "resource": TEXT, "in_use": NUMBER, "over": NUMBER},
    "queue",
    "resource",
    description="A queue that uses more than it then may.",
)
_FLOOD = optional({"gangs": COUNT, "cards": CARDS, "claims": map_of(CARDS), "unserved": map_of(CARDS)})
_GAIN_LISTS = ("gangs_run", "gangs_promised", "gangs_admitted", "gangs_lose")
_VICTIM_LISTS = ("reclaimed_next", "spared_next", "reclaimed_at_flood", "spared_at_flood")
_IMPACT = extended(
    {
        **dict.fromkeys(("version", "session", "session_id", "pods", "gangs", "job"), COUNT),
        **dict.fromkeys(("at", "cluster_time"), MOMENT),
        "age_seconds": NUMBER, "stale": TRUTH, "elapsed_ms": CARDS, "pending": list_of(TEXT),
        **dict.fromkeys(("counts", "hidden", "more"), _COUNTS),
        **{name: list_of(ref("ImpactGang")) for name in _GAIN_LISTS},
        **{name: list_of(ref("ImpactVictim")) for name in _VICTIM_LISTS},
        "queues_over": list_of(ref("ImpactQueue")),
        "flood": or_null(map_of(_FLOOD)), "flood_unavailable": TEXT,
        "card_hours": or_null(map_of(map_of(CARDS))), "sessions": ref("Facts1"),
        "unavailable": {**TEXT, "description": "timeout, no_worker, failed, cancelled, no_snapshot …"},
        "detail": TEXT,
    },
    description="What the next session would do otherwise, over the snapshot of `session`; over a day `sessions` says "
    "how many were tried. Each list is cut, `counts` has the whole figures, `hidden` how many rows are of others. "
    "`pending` names what is still being worked out, `unavailable` why there is no answer yet.",
)  # fmt: skip
_FIGURE_OR_NONE: Shape = {"type": ["number", "null"]}
_DIFFERENCE = closed(
    {
        "object": {**TEXT, "example": "queue/chat"},
        "field": {**TEXT, "description": "JSON pointer into its document.", "example": "/card_quota/NVIDIA-H200"},
        "before": ref("Figure"),
        "after": ref("Figure"),
        "in_use": {**_FIGURE_OR_NONE, "description": "Of a card: how many are in use now."},
    },
    "in_use",
)
_BREACH = closed(
    {
        "pointer": {**TEXT, "example": "/edits/queue~1chat/card_quota/NVIDIA-H200"},
        **dict.fromkeys(("object", "field", "code", "detail"), TEXT),
        **dict.fromkeys(("requested", "limit", "in_use"), _FIGURE_OR_NONE),
        **dict.fromkeys(("sibling", "sibling_object"), NAME),
    }
)
CHANGE_ERRORS = list_of(ref("ChangeError"))
_MANIFEST = or_null(ref("Facts5"))
_CARRIED = closed({"kind": TEXT, "name": TEXT, "before": _MANIFEST, "after": _MANIFEST, "replaced": TRUTH}, "replaced")
_SERVER = optional(
    {
        "checked": COUNT,
        "objects": COUNT,
        "unavailable": TEXT,
        "refused": list_of(closed({"kind": TEXT, "name": TEXT, "detail": TEXT})),
    },
    description="The cluster's answer to a dry run of the objects: which of them it would refuse, and why.",
) | {"type": ["object", "null"]}
_PLAN = closed(
    {
        "base_version": COUNT, "tree_version": COUNT, "fields": list_of(ref("PlanDifference")),
        "objects": list_of(_CARRIED), "errors": CHANGE_ERRORS,
        "more_errors": {**COUNT, "description": "Errors beyond the 200 that `errors` lists."},
        "warnings": list_of(ref("Facts3")), "stale": list_of(ref("PlanDifference")),
        "merged": list_of(ref("PlanDifference")), "asked": list_of(ref("PlanDifference")),
        "approval": closed({"due": TRUTH, "why": list_of(map_of(TEXT))}), "impact": or_null(ref("Impact")),
        "server": _SERVER,
    },
    "more_errors", "asked", "server",
    description="What a change does: figures, objects of the cluster, errors, warnings, what moved since its base "
    "(`stale` stops it, `merged` are others' figures of the same objects, which stay), the quota of tenants that is "
    "`asked` for and that a platform admin has to grant, who has to approve it, and its impact, which is null before "
    "it was asked for.",
)  # fmt: skip
_DRY_RUN = closed(
    {
        "dry_run": {"type": "boolean", "const": True, "example": True},
        "plan": ref("Plan"),
        "dependents": {**list_of(ref("Facts3")), "description": "Of a deletion: what would go along."},
        "edits": {**ref("Facts3"), "description": "Of a deletion that is a quota change: the edits of that change."},
        "valid": {**TRUTH, "description": "Of a policy: whether a session could run under it."},
        "findings": {**list_of(ref("Facts3")), "description": "Of a policy."},
        "difference": {**list_of(TEXT), "description": "Of a policy: its lines against the one that rules."},
        "impact": {**or_null(ref("Impact")), "description": "Of a policy."},
        "test": or_null(ref("ConnectionTestDocument")),
    },
    *("plan", "dependents", "edits", "valid", "findings", "difference", "impact", "test"),
    description="The answer to `dry_run=true`: nothing was done.",
    example={"dry_run": True},
)
CHANGE_FAILURE = or_null(
    {
        "type": "object",
        "description": "Why nothing was written, or which objects the cluster refused.",
        "required": ["code", "detail"],
        "properties": {"code": TEXT, "detail": TEXT},
        "additionalProperties": further_facts(2),
    }
)
AUDIT_STATE: Shape = {
    "type": ["object", "null"],
    "description": "The members of the object of the entry; which they are follows from its kind (`object_type`).",
    "additionalProperties": further_facts(6),
}
JOB_RESULT: Shape = {
    "description": "Of an impact what it found; of other jobs figures and texts.",
    "anyOf": [ref("Impact"), ref("Facts4"), {"type": "null"}],
}
TAINT: Shape = {
    "type": "object",
    "properties": {"key": TEXT, "value": NAME, "effect": TEXT, "timeAdded": NAME},
    "additionalProperties": NAME,
}
COMPONENTS: Shape = {
    "NoInput": closed({}, description="An act that needs no body."),
    "Fact": _FACT,
    "Facts1": {**map_of(ref("Fact")), "description": "Name → figure, text, or a list of them."},
    **{f"Facts{level}": map_of(further_facts(level - 1)) for level in range(2, DEEPEST_FACTS)},
    "Holder": _HOLDER,
    "ImpactReason": closed({"code": ref("ReasonCodeEnum"), "numbers": ref("ReasonNumbers"), "message": TEXT}),
    "ImpactGang": _GANG_ROW,
    "ImpactVictim": _VICTIM_ROW,
    "ImpactQueue": _QUEUE_ROW,
    "Impact": _IMPACT,
    "ChangeError": _BREACH,
    "PlanDifference": _DIFFERENCE,
    "Plan": _PLAN,
    "DryRun": _DRY_RUN,
}
