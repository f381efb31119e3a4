import json
from collections import Counter
from typing import Any

_JSON = "application/json"
_SCHEMAS = "#/components/schemas/"
_REPLAYED = "Idempotency-Replayed"
_HEADERS: dict[str, dict[str, Any]] = {
    "ETag": {
        "description": "The version of what the answer holds: send it as `If-Match`. A dry run may go without.",
        "schema": {"type": "string", "pattern": r'^"[0-9]+"$', "example": '"1"'},
    },
    "Location": {
        "description": "The address of what was made or begun.",
        "schema": {"type": "string", "format": "uri", "example": "https://tidesched.example/api/v1/jobs/1/"},
    },
    _REPLAYED: {
        "description": "There where the answer is the one that the first request under this `Idempotency-Key` got.",
        "schema": {"type": "string", "enum": ["true"]},
    },
}
# Answers whose ETag is no `version` of the document: the number of the newest policy, the figure of a tree.
_OTHER_VERSIONS = ("PolicyDocument", "Tree")
# What is taken up at once, or is a link to another page, has no address of its own.
_NO_PLACE = ("DriftDocument", "LinkDocument")


def add_to(result: dict[str, Any]) -> None:
    operations = [one for item in result["paths"].values() for one in item.values()]
    for operation in operations:
        keyed = any(one["name"] == "Idempotency-Key" for one in operation.get("parameters", ()))
        for status in {"200", "201", "202"} & operation["responses"].keys():
            answer = operation["responses"][status]
            if found := _headers(status, answer, result["components"]["schemas"], keyed=keyed):
                answer["headers"] = {name: {"$ref": f"#/components/headers/{name}"} for name in found}
    shared: dict[str, Any] = {}
    _share_parameters([one["parameters"] for one in operations if "parameters" in one], shared)
    result["components"] |= {"headers": _HEADERS, "parameters": shared}


def _headers(status: str, answer: dict[str, Any], schemas: dict[str, Any], *, keyed: bool) -> list[str]:
    schema = answer.get("content", {}).get(_JSON, {}).get("schema", {})
    # The answer to a dry run is one of several.
    names = [str(one.get("$ref", "")).removeprefix(_SCHEMAS) for one in schema.get("anyOf", [schema])]
    versioned = any("version" in schemas.get(name, {}).get("properties", {}) for name in names)
    found = ["ETag"] if versioned or {*_OTHER_VERSIONS} & {*names} else []
    found += ["Location"] if status != "200" and "$ref" in schema and names[0] not in _NO_PLACE else []
    return found + ([_REPLAYED] if keyed and names != ["DryRun"] else [])


def _share_parameters(lists: list[list[dict[str, Any]]], shared: dict[str, Any]) -> None:
    names: dict[str, str] = {}
    for form, uses in Counter(_form(one) for parameters in lists for one in parameters).items():
        if uses > 2:
            one = json.loads(form)
            namesakes = sum(other["name"] == one["name"] for other in shared.values())
            names[form] = f"{one['name']}-{namesakes + 1}" if namesakes else one["name"]
            shared[names[form]] = one
    for parameters in lists:
        found = [(one, names.get(_form(one))) for one in parameters]
        parameters[:] = [{"$ref": f"#/components/parameters/{name}"} if name else one for one, name in found]


def _form(parameter: dict[str, Any]) -> str:
    return json.dumps(parameter, sort_keys=True)
