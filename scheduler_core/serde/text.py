"""YAML and JSON text to plain values, with errors that name the line."""

from __future__ import annotations

from typing import Any

import msgspec
import yaml

from scheduler_core.model.errors import BadInput
from scheduler_core.serde.nesting import check_shape

# What PyYAML's constructors raise beside its own errors, for instance for `!!int ''` or a thirteenth month.
UNREADABLE = (ValueError, LookupError, AttributeError, RecursionError)


class Loader(yaml.CSafeLoader):
    """Safe loader that leaves times as the text that was written."""


Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}


def as_text(raw: str | bytes, file: str | None) -> str:
    """UTF-8 bytes as text.

    Raises:
        BadInput: ``malformed_text``.
    """
    if isinstance(raw, str):
        return raw
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise BadInput("malformed_text", "the file is not UTF-8 text", file=file, line=line) from None


def load_documents(text: str, file: str | None) -> list[Any]:
    """All documents of a YAML text, or the one of a JSON text; empty documents are left out.

    JSON goes through its own decoder, which is two orders of magnitude faster than YAML.

    Raises:
        BadInput: ``malformed_json`` or ``malformed_yaml`` with the line.
    """
    if text.lstrip()[:1] in ("{", "["):
        try:
            return [msgspec.json.decode(text)]
        except msgspec.DecodeError as error:
            json_error = str(error)
        except RecursionError:
            raise BadInput("malformed_json", "not JSON: values stand too deep in each other", file=file) from None
        # A YAML flow mapping begins with a brace too.
        try:
            return _load_yaml(text, file)
        except BadInput:
            raise _malformed_json(text, json_error, file) from None
    return _load_yaml(text, file)


def _load_yaml(text: str, file: str | None) -> list[Any]:
    try:
        check_shape(text)
        return [document for document in yaml.load_all(text, Loader=Loader) if document is not None]
    except yaml.YAMLError as error:
        raise yaml_error(error, file) from None
    except UNREADABLE as error:
        raise BadInput("malformed_yaml", f"the text cannot be read: {error}", file=file) from None


def yaml_error(error: yaml.YAMLError, file: str | None) -> BadInput:
    """The error with its line and what the parser found there."""
    mark = getattr(error, "problem_mark", None)
    what = getattr(error, "problem", None) or str(error)
    where = f" (line {mark.line + 1}, column {mark.column + 1})" if mark else ""
    return BadInput("malformed_yaml", f"not YAML: {what}{where}", file=file, line=mark.line + 1 if mark else None)


def _malformed_json(text: str, what: str, file: str | None) -> BadInput:
    line = None
    if "(byte " in what:
        at = int(what.rpartition("(byte ")[2].rstrip(")"))
        line = text.encode()[:at].count(b"\n") + 1
    elif "truncated" in what:
        line = text.count("\n") + 1
    return BadInput("malformed_json", f"not JSON: {what}", file=file, line=line)
