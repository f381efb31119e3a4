"""Is an answer what the committed OpenAPI document says of its operation?"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import orjson
import yaml
from django.http.response import HttpResponseBase
from jsonschema import Draft202012Validator

DOCUMENT = yaml.load((Path(__file__).parents[2] / "openapi.yaml").read_text(encoding="utf-8"), yaml.CSafeLoader)
# The document itself, and its page.
UNDOCUMENTED = {"schema", "schema-docs"}


@cache
def operation(path: str, method: str) -> dict[str, Any]:
    """The operation at the address of an object."""
    for template in sorted(DOCUMENT["paths"], key=lambda one: one.count("{")):
        if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", template), path):
            found: dict[str, Any] = DOCUMENT["paths"][template][method]
            return found
    raise AssertionError(f"{path} is not in the document")


def scopes(path: str, method: str) -> set[str]:
    """Any one of these lets a token use the operation; none: no token is needed."""
    return {scope for way in operation(path, method)["security"] for scope in way.get("token", ())}


def fault_of(path: str, method: str, answer: HttpResponseBase, content: bytes) -> str:
    """Why the answer is none that the document declares; "" where it is one."""
    kind = answer.headers.get("Content-Type", "").partition(";")[0]
    validator = _validator(path, method, answer.status_code, kind)
    if isinstance(validator, str):
        return validator
    if validator is None or not content:
        return ""
    fault = next(validator.iter_errors(orjson.loads(content)), None)
    return "" if fault is None else f"not as documented at {fault.json_path}: {fault.message[:200]}"


@cache
def _validator(path: str, method: str, status: int, kind: str) -> Draft202012Validator | str | None:
    responses = operation(path, method)["responses"]
    if str(status) not in responses and status < 400:
        return f"the operation does not have the status {status}"
    said = _resolved(responses.get(str(status), responses["default"]))
    contents = said.get("content", {})
    if contents and kind not in contents:
        return f"Content-Type {kind or 'none'} instead of {' or '.join(contents)}"
    if kind == "application/x-ndjson" or not kind.endswith("json") or not contents:
        return None
    return Draft202012Validator({**contents[kind]["schema"], "components": DOCUMENT["components"]})


def _resolved(part: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in part:
        name, group = part["$ref"].split("/")[::-1][:2]
        part = DOCUMENT["components"][group][name]
    return part
