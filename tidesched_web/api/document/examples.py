"""Examples of requests and answers: bodies of requests as they are written, answers made from their schema.

Each is a component, named like its schema, so that it stands in the document once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tidesched_web.api.document.example_values import OF, PATHS, REQUESTS, VALUES

_JSON = "application/json"
_BODIES = (_JSON, "application/merge-patch+json")
_BY_FORMAT = {"date-time": "2026-03-01T12:00:00Z", "date": "2026-03-01", "uri": "https://tidesched.example/api/v1/"}
_BY_TYPE: dict[str, Any] = {"string": "", "integer": 1, "number": 1.0, "boolean": False, "null": None}
_BASE = "https://tidesched.example/api/v1/"
_SCHEMAS = "#/components/schemas/"


def add_to(document: dict[str, Any]) -> None:
    """Give every JSON body of a request and of an answer its example."""
    maker = _Maker(document["components"]["schemas"])
    found: dict[str, Any] = {}
    for path in document["paths"].values():
        for operation in path.values():
            for kind in _BODIES:
                _give(operation.get("requestBody", {}).get("content", {}).get(kind), maker, found)
            for response in operation["responses"].values():
                _give(response.get("content", {}).get(_JSON), maker, found)
    document["components"]["examples"] = dict(sorted(found.items()))


def _give(media: dict[str, Any] | None, maker: _Maker, found: dict[str, Any]) -> None:
    if media is None:
        return
    name = media["schema"].get("$ref", "").removeprefix(_SCHEMAS)
    if not name:
        media["example"] = maker.example_of(media["schema"])
        return
    found.setdefault(name, {"value": maker.component(name)})
    media["examples"] = {"example": {"$ref": f"#/components/examples/{name}"}}


class _Maker:
    def __init__(self, schemas: Mapping[str, Any]) -> None:
        self.schemas = schemas

    def component(self, name: str) -> Any:
        """A body of this schema."""
        if name in REQUESTS:
            return REQUESTS[name]
        schema = self.schemas[name]
        if "properties" not in schema:
            return self.example_of(schema)
        own = OF.get(name, {})
        return {
            key: own[key] if key in own else self._member(name, key, part) for key, part in schema["properties"].items()
        }

    def _member(self, component: str, key: str, schema: Mapping[str, Any]) -> Any:
        if key == "url" and component in PATHS:
            return f"{_BASE}{PATHS[component]}/1/"
        if key in ("next", "previous") and component.startswith("Paginated"):
            return None
        if key in VALUES and _may_be(VALUES[key], schema, self.schemas):
            return VALUES[key]
        return self.example_of(schema)

    def example_of(self, schema: Mapping[str, Any]) -> Any:
        """A value of this schema."""
        if "example" in schema:
            return schema["example"]
        if "$ref" in schema:
            return self.component(schema["$ref"].removeprefix(_SCHEMAS))
        for several in ("oneOf", "allOf", "anyOf"):
            if several in schema:
                return self.example_of(schema[several][0])
        if "enum" in schema:
            return schema["enum"][0]
        kind = schema.get("type", "string")
        kind = kind[0] if isinstance(kind, list) else kind
        if kind == "array":
            return [self.example_of(schema["items"])]
        if kind == "object":
            return {key: self._member("", key, part) for key, part in schema.get("properties", {}).items()}
        return _BY_FORMAT.get(schema.get("format", ""), _BY_TYPE[kind])


def _may_be(value: Any, schema: Mapping[str, Any], schemas: Mapping[str, Any]) -> bool:
    """Whether a value of the table is of the kind that this schema asks for: the same name may be several kinds."""
    if "$ref" in schema:
        return _may_be(value, schemas[schema["$ref"].removeprefix(_SCHEMAS)], schemas)
    for several in ("oneOf", "allOf", "anyOf"):
        if several in schema:
            return any(_may_be(value, part, schemas) for part in schema[several])
    if "enum" in schema:
        return value in schema["enum"]
    if schema.get("maxProperties") == 0 and value != {}:
        return False
    kinds = schema.get("type", ())
    kinds = kinds if isinstance(kinds, list) else [kinds]
    return _KINDS[type(value)] in kinds or (type(value) is int and "number" in kinds)


_KINDS = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    type(None): "null",
    list: "array",
    dict: "object",
}
