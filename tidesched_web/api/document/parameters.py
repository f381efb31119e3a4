"""What query parameters mean that say it nowhere else: by name; where a list means another thing, by address."""

from __future__ import annotations

from typing import Any, Final

_MOMENT = "ISO 8601, such as 2026-03-05T03:14:00Z; without a zone it is UTC."
_OWNER = "Id or slug of the"
TEXTS: Final = {
    "active": "`true`: those that may sign in; `false`: those that may not.",
    "actor": "User name of the person who did it, or the part of TideSched that did.",
    "business_line": f"{_OWNER} business line.",
    "chain": "Name of the chain of entries.",
    "cluster": f"{_OWNER} cluster.",
    "created_by": "User name of who made it.",
    "email": "The whole address, in small or large letters.",
    "enabled": "`true`: plans that are switched on; `false`: those that are off.",
    "format": "Of the answer; `json` where it is left out.",
    "from": f"From this moment on, itself included. {_MOMENT}",
    "gone": "`true`: only those that left the cluster; `false`: only those that are there.",
    "kind": "Kind of the object.",
    "limit": "Rows of a page.",
    "name": "The whole name, case and all.",
    "namespace": "The whole name of the namespace.",
    "number": "Number of the session in its cluster.",
    "object_id": "Id of the object of the entry.",
    "object_type": "Type of the object of the entry.",
    "phase": "`status.phase` of the PodGroup, in Volcano's words.",
    "project": f"{_OWNER} project.",
    "queue": "Id or name of the queue.",
    "reason": "Code of the reason why a gang waits.",
    "request_id": "Id of the request that made the entry; answers carry it.",
    "service_type": "What the gang is for.",
    "session": "Id of the session.",
    "since": f"Made from this moment on, itself included. {_MOMENT}",
    "slug": "The whole slug.",
    "source": "Where it came from: `console`, `api`, `import`, `plan` or `rollback`.",
    "subject": "What the job is about, as `subject` of a job says it.",
    "tenant": f"{_OWNER} tenant.",
    "to": f"Before this moment. {_MOMENT}",
    "until": f"Made before this moment. {_MOMENT}",
    "user": "Id or user name of the account.",
    "username": "The whole user name.",
    "waiting": "`true`: gangs that wait; `false`: those that do not.",
    "wall_from": f"Decided from this moment of wall time on, itself included. {_MOMENT}",
    "wall_to": f"Decided before this moment of wall time. {_MOMENT}",
}
_AT: Final = {
    ("/api/v1/alerts/", "code"): "Code of the alert.",
    ("/api/v1/audit/", "action"): "What was done, such as `change.apply`: the whole word.",
    ("/api/v1/audit/", "cluster"): "Id of the cluster.",
    ("/api/v1/audit/", "tenant"): "Id of a tenant that the entry touches.",
    ("/api/v1/drift/", "kind"): "Kind of the object, such as `queue` or `priority-class`.",
    ("/api/v1/reclaims/", "action"): "Action of the session that took the cards back, such as `reclaim`.",
}


def add_to(result: dict[str, Any]) -> None:
    """Describe each query parameter that its view leaves without a word."""
    for path, item in result["paths"].items():
        for operation in item.values():
            for parameter in operation.get("parameters", ()) if isinstance(operation, dict) else ():
                if parameter.get("in") == "query" and not parameter.get("description"):
                    name = parameter["name"]
                    parameter["description"] = _AT.get((path, name)) or TEXTS[name]
