"""Headers of the answers of success: the version of the document that they hold, where it is, and that it is repeated.

Each is a component. An answer that can be that of a dry run too need not have them, so it has components of its own.
"""

from __future__ import annotations

from typing import Any

_JSON = "application/json"
_SCHEMAS = "#/components/schemas/"
_UNLESS_TRIED = "UnlessDryRun"
_OF_OBJECTS: dict[str, dict[str, Any]] = {
    "ETag": {
        "description": "The version of what the answer holds: send it as `If-Match`.",
        "schema": {"type": "string", "pattern": r'^"[0-9]+"$', "example": '"1"'},
    },
    "Location": {
        "description": "The address of what was made or begun.",
        "schema": {"type": "string", "format": "uri", "example": "https://tidesched.example/api/v1/jobs/1/"},
    },
}
_REPLAYED = {
    "description": "There where the answer is the one that the first request under this `Idempotency-Key` got.",
    "schema": {"type": "string", "enum": ["true"]},
}
_COMPONENTS = {
    **{name: {**said, "required": True} for name, said in _OF_OBJECTS.items()},
    f"ETag{_UNLESS_TRIED}": _OF_OBJECTS["ETag"],
    "Idempotency-Replayed": _REPLAYED,
}
# Answers whose ETag is no `version` of the document: the number of the newest policy, the figure of a tree.
_OTHER_VERSIONS = ("PolicyDocument", "Tree")
# What is taken up at once, or is a link to another page, has no address of its own.
_NO_PLACE = ("DriftDocument", "LinkDocument")


def add_to(result: dict[str, Any]) -> None:
    """State the headers of each answer of success."""
    schemas = result["components"]["schemas"]
    result["components"]["headers"] = _COMPONENTS
    for item in result["paths"].values():
        for operation in item.values():
            keyed = any(one["name"] == "Idempotency-Key" for one in operation.get("parameters", ()))
            for status, answer in operation["responses"].items():
                found = _headers(status, answer, schemas, keyed=keyed) if status in ("200", "201", "202") else {}
                if found:
                    answer["headers"] = found


def _headers(status: str, answer: dict[str, Any], schemas: dict[str, Any], *, keyed: bool) -> dict[str, Any]:
    schema = answer.get("content", {}).get(_JSON, {}).get("schema", {})
    tried = "anyOf" in schema  # the answer to a dry run is one of several
    names = [str(one.get("$ref", "")).removeprefix(_SCHEMAS) for one in schema.get("anyOf", [schema])]
    found: dict[str, Any] = {}
    if any(name in _OTHER_VERSIONS or "version" in schemas.get(name, {}).get("properties", {}) for name in names):
        found["ETag"] = _reference_to(f"ETag{_UNLESS_TRIED}" if tried else "ETag")
    if status != "200" and "$ref" in schema and names[0] not in _NO_PLACE:
        found["Location"] = _reference_to("Location")
    if keyed and names != ["DryRun"]:
        found["Idempotency-Replayed"] = _reference_to("Idempotency-Replayed")
    return found


def _reference_to(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/headers/{name}"}
