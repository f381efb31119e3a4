"""Links of the document: from the answer to a POST, a list or a read to what can be asked of the object it names.

A link carries the id, and the ETag to the operations that ask for the version that was looked at.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_JSON = "application/json"
_ID = "{id}/"
_ETAG = "$response.header.ETag"


def add_to(result: dict[str, Any]) -> None:
    """Give the answers of each collection, of each object and of its parts their links."""
    paths, schemas = result["paths"], result["components"]["schemas"]
    for path, item in paths.items():
        if _ID in path:
            _link(item.get("get"), "200", _about(paths, path), "$request.path.id", version_of=path)
            continue
        _link(item.get("get"), "200", _about(paths, path + _ID), "$response.body#/results/0/id")
        made = item.get("post")
        if made is not None and "id" in _members(made["responses"].get("201"), schemas):
            _link(made, "201", _about(paths, path + _ID), "$response.body#/id", version_of=path + _ID)


def _about(paths: dict[str, Any], path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """What can be asked of an object: (whose ETag is its version, operation), its acts and parts included."""
    for other, item in paths.items():
        if other.startswith(path) and other.count("{") == 1:
            versioned = other if "get" in item else other[: other.index(_ID) + len(_ID)]
            yield from ((versioned, operation) for operation in item.values())


def _members(answer: dict[str, Any] | None, schemas: dict[str, Any]) -> dict[str, Any]:
    schema = (answer or {}).get("content", {}).get(_JSON, {}).get("schema", {})
    schema = schemas.get(schema.get("$ref", "").rpartition("/")[2], schema)
    found: dict[str, Any] = schema.get("properties", {})
    return found


def _link(
    source: dict[str, Any] | None,
    status: str,
    targets: Iterator[tuple[str, dict[str, Any]]],
    at: str,
    version_of: str = "",
) -> None:
    if source is None or status not in source["responses"]:
        return
    links = {
        target["operationId"]: {
            "operationId": target["operationId"],
            "description": target["summary"],
            "parameters": {"path.id": at}
            | ({"header.If-Match": _ETAG} if _versioned(target, of == version_of) else {}),
        }
        for of, target in targets
        if target is not source
    }
    if links:
        source["responses"][status]["links"] = links


def _versioned(target: dict[str, Any], known: bool) -> bool:
    return known and any(one["name"] == "If-Match" for one in target.get("parameters", ()))
