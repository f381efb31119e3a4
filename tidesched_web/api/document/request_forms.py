"""What a body is refused for and its serializer alone does not say: other members, blanks, zero bytes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.core.validators import RegexValidator
from drf_spectacular.extensions import OpenApiSerializerFieldExtension

from tidesched_web.api.v1.serializers.tree_shapes import STORABLE, TIME

# One visible character at least where a text has to say something: blanks at its ends are dropped before that.
_NOT_BLANK = r"^[^\x00]*[^\x00\s][^\x00]*$"


class TextForm(OpenApiSerializerFieldExtension):
    """Texts of bodies that have to say something."""

    target_class = "rest_framework.serializers.CharField"

    def map_serializer_field(self, auto_schema: Any, direction: str) -> dict[str, Any]:
        text = self.target
        if direction != "request" or text.allow_blank:
            return {"type": "string"}
        if any(isinstance(one, RegexValidator) for one in text.validators):
            return {"type": "string", "minLength": 1}  # the framework adds the form
        return {"type": "string", "minLength": 1, "pattern": _NOT_BLANK if text.trim_whitespace else STORABLE}


def add_to(result: dict[str, Any], made: set[str]) -> None:
    """Close the forms of bodies; those of ``made`` say all of it themselves."""
    schemas = result["components"]["schemas"]
    bodies = [one["requestBody"] for item in result["paths"].values() for one in item.values() if "requestBody" in one]
    waiting, seen = [*_named(bodies)], set(made)
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        waiting += _named(schemas[name])
        if "properties" in schemas[name]:
            schemas[name]["additionalProperties"] = False
        for part in schemas[name].get("properties", {}).values():
            _close(part)


def _named(part: Any) -> Iterator[str]:
    """Names of the components that a part of the document refers to."""
    inner = part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
    for one in inner:
        yield from _named(one)
    if isinstance(part, dict) and "$ref" in part:
        yield part["$ref"].rpartition("/")[2]


def _close(form: dict[str, Any]) -> None:
    if "oneOf" in form and form["oneOf"][-1] == {"type": "string", "maxLength": 0}:
        form["anyOf"] = form.pop("oneOf")  # a blank may fit the other form too
    for inner in (*form.get("anyOf", ()), *([form["items"]] if "items" in form else ())):
        _close(inner)
    kinds = form.get("type", ())
    if "string" in ([kinds] if isinstance(kinds, str) else kinds):
        if form.get("format") == "date-time":
            form["pattern"] = TIME
        elif "enum" not in form and form.get("maxLength") != 0:
            form.setdefault("pattern", STORABLE)
