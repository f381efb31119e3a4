"""What differs between two OpenAPI documents for those who call: `python -m tests.api.compare_documents OLD NEW`.

Descriptions, summaries, examples, discriminators, links, headers of answers, names of components and the order of
entries do not count. Each difference is a line; the exit status is 1 where there is one.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

Facts = Iterator[tuple[str, str]]
METHODS = {"get", "put", "post", "delete", "patch", "head", "options"}
WORDS = {"description", "title", "example", "examples", "externalDocs", "discriminator", "deprecated"}
FORMS = ("oneOf", "anyOf", "allOf")
INNER = ("items", "additionalProperties", "propertyNames", "not")
BY_NAME = ("properties", "patternProperties")
APART = {*WORDS, *FORMS, *INNER, *BY_NAME, "enum", "const", "required", "type"}


class Document:
    """One document as facts: (place, what is said there)."""

    def __init__(self, path: Path) -> None:
        self.whole: dict[str, Any] = yaml.load(path.read_text(encoding="utf-8"), yaml.CSafeLoader)
        self._shapes: dict[str, list[tuple[str, str]]] = {}

    def facts(self) -> Facts:
        for path, item in self.whole["paths"].items():
            for method in METHODS & item.keys():
                place, operation = f"{method.upper()} {path}", item[method]
                yield place, "operation"
                yield f"{place} security", str(sorted(map(str, operation.get("security", ()))))
                for given in [*item.get("parameters", ()), *operation.get("parameters", ())]:
                    one = self._resolved(given)
                    at = f"{place} parameter {one['in']}:{one['name']}"
                    yield at, f"required={one.get('required', False)}"
                    yield from _below(f"{at} ", self._schema(one.get("schema", {})))
                bodies = {"request": operation["requestBody"]} if "requestBody" in operation else {}
                for name, given in (bodies | operation["responses"]).items():
                    body = self._resolved(given)
                    yield f"{place} {name}", f"required={body['required']}" if "required" in body else "there"
                    for kind, media in body.get("content", {}).items():
                        yield f"{place} {name} {kind}", "there"
                        yield from _below(f"{place} {name} {kind} ", self._schema(media.get("schema", {})))

    def _schema(self, given: Any) -> Facts:
        """The facts of a schema; places begin at it."""
        if not isinstance(given, dict) or "$ref" not in given:
            yield from self._own(given)
        else:
            name = given["$ref"]
            if name not in self._shapes:
                self._shapes[name] = [("", "the schema that it stands in")]
                self._shapes[name] = list(self._own(self._resolved(given)))
            yield from self._shapes[name]

    def _own(self, schema: Any) -> Facts:
        if not isinstance(schema, dict):
            yield "", str(schema)
            return
        schema = self._simple(schema)
        values = schema.get("enum", [schema["const"]] if "const" in schema else ())
        kinds = schema.get("type", ())
        said = {key: schema[key] for key in sorted(schema.keys() - APART)}
        yield "", f"{sorted([kinds] if isinstance(kinds, str) else kinds)} {said}"
        yield from ((f" enum {value!r}", "there") for value in values)
        yield from ((f" required {name}", "there") for name in schema.get("required", ()))
        inner = [(f"/{name}", part) for key in BY_NAME for name, part in schema.get(key, {}).items()]
        for name, part in inner + [(f"/{key}", schema[key]) for key in INNER if key in schema]:
            yield from _below(name, self._schema(part))
        for key in FORMS:
            for number, form in enumerate(sorted(sorted(self._schema(part)) for part in schema.get(key, ()))):
                yield from _below(f"/{key}[{number}]", form)

    def _simple(self, schema: dict[str, Any]) -> dict[str, Any]:
        """One form alone is the schema itself; one form or null is a schema that may be null."""
        for key in FORMS:
            forms = [form for form in schema.get(key, ()) if form not in ({"type": "null"}, {"enum": [None]})]
            if len(forms) == 1 and (key != "allOf" or len(schema[key]) == 1):
                found = self._simple(self._resolved(forms[0]))
                kinds = found.get("type", ())
                null = ["null"] if len(schema[key]) > 1 else []
                found |= {"type": [*([kinds] if isinstance(kinds, str) else kinds), *null]}
                return found | {name: schema[name] for name in schema.keys() - WORDS - {key}}
        return dict(schema)

    def _resolved(self, part: dict[str, Any]) -> dict[str, Any]:
        while "$ref" in part:
            found: Any = self.whole
            for step in part["$ref"].removeprefix("#/").split("/"):
                found = found[step]
            part = {**found, **{key: value for key, value in part.items() if key != "$ref"}}
        return part


def _below(place: str, facts: Any) -> Facts:
    yield from ((place + at, said) for at, said in facts)


def differences(old: Path, new: Path) -> list[str]:
    """A line for each; what is below a place that is gone is not listed beside it."""
    before, after = dict(Document(old).facts()), dict(Document(new).facts())
    lines = [f"! {place}: {said} → {after[place]}" for place, said in before.items() if after.get(place, said) != said]
    for sign, one, other in (("-", before, after), ("+", after, before)):
        gone = {place for place in one if place not in other}
        lines += [f"{sign} {place}: {one[place]}" for place in gone if not any(up in gone for up in _above(place))]
    return sorted(lines, key=lambda line: line[2:])


def _above(place: str) -> Iterator[str]:
    """The places that a place is below: words, and after method and path also steps of a schema."""
    start = place.find(" ", place.find(" ") + 1)
    yield from (place[:at] for at in range(start, len(place)) if start > 0 and place[at] in " /")


def main(arguments: list[str]) -> int:
    found = differences(*map(Path, arguments))
    print("\n".join(found) or "no difference")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
