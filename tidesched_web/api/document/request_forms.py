from collections.abc import Iterator
from typing import Any

from django.core.validators import RegexValidator
from drf_spectacular.extensions import OpenApiSerializerFieldExtension

from tidesched_web.api.v1.serializers.tree_shapes import STORABLE, TIME

# One visible character at least where a text has to say something: blanks at its ends are dropped before that.
_NOT_BLANK = r"^[^\x00]*[^\x00\s][^\x00]*$"


class TextForm(OpenApiSerializerFieldExtension):
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
    waiting = [*_named(bodies)]
    while waiting:
        name = waiting.pop()
        if name in made or "properties" not in schemas[name]:
            continue
        waiting += _named(schemas[name])
        schemas[name]["additionalProperties"] = False
        for part in schemas[name]["properties"].values():
            _close(part)


def _named(part: Any) -> Iterator[str]:
    if isinstance(part, dict) and "$ref" in part:
        yield part["$ref"].rpartition("/")[2]
    for inner in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
        yield from _named(inner)


def _close(form: dict[str, Any]) -> None:
    if "oneOf" in form and form["oneOf"][-1] == {"type": "string", "maxLength": 0}:
        form["anyOf"] = form.pop("oneOf")  # a blank may fit the other form too
    for inner in (*form.get("anyOf", ()), *([form["items"]] if "items" in form else ())):
        _close(inner)
    kinds = form.get("type", ())
    if "string" in ([kinds] if isinstance(kinds, str) else kinds) and "enum" not in form and form.get("maxLength") != 0:
        form.setdefault("pattern", TIME if form.get("format") == "date-time" else STORABLE)
