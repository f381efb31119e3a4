"""The committed OpenAPI document explains every operation: words, scopes, refusals and examples."""

from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator, ValidationError

from tests.architecture import sources
from tidesched_web.accounts.models import SCOPE_WORDS, Scope
from tidesched_web.console.forms.tokens import TokenForm

DOCUMENT = yaml.load((Path(__file__).parents[2] / "openapi.yaml").read_text(encoding="utf-8"), yaml.CSafeLoader)
OPERATIONS = {
    operation["operationId"]: (path, method, operation)
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
}
OPEN_TO_ALL = {"index"}


def resolved(part):
    while "$ref" in part:
        found = DOCUMENT
        for step in part["$ref"].removeprefix("#/").split("/"):
            found = found[step]
        part = found
    return part


def explained(name):
    _path, _method, operation = OPERATIONS[name]
    assert 5 < len(operation["summary"]) < 60
    assert len(operation["description"].split("**Scope:**")[0]) > 20
    scopes = [scope for way in operation["security"] for scope in way.get("token", ())]
    if name in OPEN_TO_ALL:
        assert operation["security"] == [{}]
        return
    assert scopes, "no scope"
    assert {"session": []} in operation["security"]
    assert all(f"`{scope}`" in operation["description"] for scope in scopes)


def test_summaries_are_told_apart():
    summaries = [operation["summary"] for _path, _method, operation in OPERATIONS.values()]
    assert len(set(summaries)) == len(summaries)


def refusals(name):
    path, method, operation = OPERATIONS[name]
    known = {code: resolved(said) for code, said in operation["responses"].items() if code[0] in "45d"}
    assert all(set(said["content"]) == {"application/problem+json"} for said in known.values())
    wanted = {"400", "429", "503", "default"}
    if name != "stream":
        wanted.add("406")
    if "requestBody" in operation:
        wanted |= {"413", "415"}
    if name not in OPEN_TO_ALL:
        wanted.add("401")
    if "{" in path:
        wanted |= {"403", "404"}
    if method == "post":
        wanted |= {"409", "422"}
    assert wanted <= set(known)
    for said in known.values():
        media = said["content"]["application/problem+json"]
        if "example" in media:
            validate(media["schema"], media["example"])


def validate(schema, example):
    Draft202012Validator(schema | {"components": DOCUMENT["components"]}).validate(example)


def bodies(operation):
    """(content type, media type object) of every JSON body of the operation's request and answers."""
    contents = [operation.get("requestBody", {}).get("content", {})]
    contents += [resolved(said).get("content", {}) for code, said in operation["responses"].items() if code[0] == "2"]
    return [(kind, media) for content in contents for kind, media in content.items() if kind.endswith("json")]


def examples(name):
    found = [media for kind, media in bodies(OPERATIONS[name][2]) if kind == "application/json"]
    for media in found[:1]:
        example = media["example"] if "example" in media else resolved(media["examples"]["example"])["value"]
        validate(media["schema"], example)


@pytest.mark.parametrize("check", [explained, refusals, examples])
def test_every_operation(check):
    """What it does and who may call it; its refusals as problem documents; an example of its body or its answer."""
    wrong = {}
    for name in OPERATIONS:
        try:
            check(name)
        except (AssertionError, KeyError, ValidationError) as fault:
            wrong[name] = str(fault)[:400]
    assert wrong == {}


def test_every_group_of_operations_is_described():
    used = {tag for _path, _method, operation in OPERATIONS.values() for tag in operation["tags"]}
    assert {tag["name"] for tag in DOCUMENT["tags"]} == used
    assert all(len(tag["description"]) > 10 for tag in DOCUMENT["tags"])


@pytest.mark.parametrize(
    "word", ["Tokens and scopes", "paging", "ETag", "If-Match", "Errors", "Idempotency-Key", "Streams", "dry_run"]
)
def test_the_introduction_teaches(word):
    assert word in DOCUMENT["info"]["description"]


@pytest.mark.parametrize("scope", Scope)
def test_a_scope_is_said_in_one_way_on_the_page_in_the_document_and_in_the_docs(scope):
    line = f"| `{scope.value}` | {SCOPE_WORDS[scope]}"
    assert line in DOCUMENT["info"]["description"]
    assert line in (sources.ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    rows = {box.data["value"]: words for box, words in TokenForm(tenants=[]).scope_rows()}
    assert rows[scope.value] == SCOPE_WORDS[scope]


SAYS_WHAT = {"type", "$ref", "anyOf", "oneOf", "allOf", "enum", "const"}
OF_MAPS = {"properties", "patternProperties", "$defs"}


def schemas():
    """(place, schema) of every schema of the document."""
    found = [(f"components/{name}", part) for name, part in DOCUMENT["components"]["schemas"].items()]
    for name, (_path, _method, operation) in OPERATIONS.items():
        parameters = map(resolved, operation.get("parameters", ()))
        found += [(f"{name}/{one['name']}", one["schema"]) for one in parameters]
        bodies = [operation.get("requestBody", {}), *map(resolved, operation["responses"].values())]
        for body in bodies:
            found += [(f"{name}/{kind}", media["schema"]) for kind, media in body.get("content", {}).items()]
    while found:
        place, part = found.pop()
        yield place, part
        if not isinstance(part, dict):
            continue
        for key in ("items", "additionalProperties", "propertyNames"):
            if key in part:
                found.append((f"{place}/{key}", part[key]))
        for key in OF_MAPS & part.keys():
            found += [(f"{place}/{name}", inner) for name, inner in part[key].items()]
        for key in ("anyOf", "oneOf", "allOf"):
            found += [(f"{place}/{key}/{index}", inner) for index, inner in enumerate(part.get(key, ()))]


def free_form(part):
    """Why a schema says nothing of its values; empty where it does."""
    if not isinstance(part, dict):
        return "" if part is False else "true stands for anything"
    if not SAYS_WHAT & part.keys() and "format" not in part:
        return "no type"
    kinds = part.get("type", ())
    kinds = kinds if isinstance(kinds, list) else [kinds]
    if "object" in kinds and not {"properties", "patternProperties", "additionalProperties"} & part.keys():
        return "a map of anything"
    if "array" in kinds and "items" not in part:
        return "a list of anything"
    return ""


def test_no_schema_is_free_form():
    assert {place: why for place, part in schemas() if (why := free_form(part))} == {}


def test_no_schema_contains_itself():
    """A reader knows how deep a document can be."""

    def references(part):
        if isinstance(part, list):
            return {name for one in part for name in references(one)}
        if not isinstance(part, dict):
            return set()
        own = {part["$ref"].rpartition("/")[2]} if "$ref" in part else set()
        return own | {name for key, inner in part.items() if key != "example" for name in references(inner)}

    below = {name: references(part) for name, part in DOCUMENT["components"]["schemas"].items()}

    def reached(name, seen):
        for inner in below[name] - seen:
            seen |= {inner} | reached(inner, seen | {inner})
        return seen

    assert [name for name in below if name in reached(name, set())] == []


def test_a_text_that_may_be_blank_fits_one_form_of_those_that_exclude_each_other():
    """`oneOf` refuses what two of its forms allow."""
    found = []
    for place, part in schemas():
        forms = part.get("oneOf", []) if isinstance(part, dict) else []
        allowed = [
            one for one in forms if Draft202012Validator(one | {"components": DOCUMENT["components"]}).is_valid("")
        ]
        if len(allowed) > 1:
            found.append(place)
    assert found == []
