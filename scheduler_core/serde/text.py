"""YAML and JSON text to plain values, with errors that name the line."""

import json
import re
from collections.abc import Callable
from typing import Any

import msgspec
import yaml

from scheduler_core.model.errors import BadInput
from scheduler_core.serde.nesting import check_shape

# What PyYAML's constructors raise beside its own errors, for instance for `!!int ''` or a thirteenth month.
UNREADABLE = (ValueError, LookupError, AttributeError, RecursionError)


YAML_HINT = "indent the keys of one mapping alike, with spaces; quote texts that hold ': ' or begin with * & ! % @ `"
JSON_HINT = "names in double quotes, a comma between entries and none behind the last"
# The end of a name in JSON; inside of a text a quote is escaped, which is the same in both texts that are compared.
_KEY = re.compile(rb'"\s*:')


class Loader(yaml.CSafeLoader):
    """Safe loader that leaves times as the text that was written."""


Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}


def as_text(raw: str | bytes, file: str | None) -> str:
    """UTF-8 bytes as text. Raises BadInput: ``malformed_text``."""
    if isinstance(raw, str):
        return raw
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        hint = "save it as UTF-8"
        raise BadInput("malformed_text", "the file is not UTF-8 text", file=file, line=line, hint=hint) from None


def load_documents(text: str, file: str | None) -> list[Any]:
    """All documents of a YAML text, or the one of a JSON text; empty documents are left out. JSON goes through its own
    decoder, which is two orders of magnitude faster than YAML. Raises BadInput: ``malformed_json``, ``malformed_yaml``
    or ``duplicate_key`` with the line."""
    if text.lstrip()[:1] in ("{", "["):
        try:
            document = msgspec.json.decode(text)
            _refuse_twice(text, document, file)
            return [document]
        except msgspec.DecodeError as error:
            json_error = str(error)
        except RecursionError:
            message, hint = "not JSON: values are too deep in each other", "at most a few hundred levels"
            raise BadInput("malformed_json", message, file=file, hint=hint) from None
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
    except BadInput as error:
        error.file = file
        raise
    except yaml.YAMLError as error:
        raise yaml_error(error, file) from None
    except UNREADABLE as error:
        raise BadInput("malformed_yaml", f"the text cannot be read: {error}", file=file, hint=YAML_HINT) from None


def _refuse_twice(text: str, document: object, file: str | None) -> None:
    """Refuse a JSON text with a key twice in one object, of which the decoder keeps the last. A text with as many keys
    as what was decoded of it, written out again, has none; O(length) with a small factor. Only others are gone through
    key by key. Raises BadInput: ``duplicate_key``."""
    try:
        left = len(_KEY.findall(msgspec.json.encode(document)))
    except (OverflowError, msgspec.MsgspecError):
        left = -1
    if len(_KEY.findall(text.encode())) == left:
        return
    try:
        check_shape(text)
    except BadInput as error:
        error.file = file
        raise
    except yaml.YAMLError:
        # JSON that is no YAML, for instance with tabs: without a line.
        json.loads(text, object_pairs_hook=_once(file))


def _once(file: str | None) -> Callable[[list[tuple[str, object]]], dict[str, object]]:
    def made(pairs: list[tuple[str, object]]) -> dict[str, object]:
        found: dict[str, object] = {}
        for key, value in pairs:
            if key in found:
                message, hint = f"{key!r} is in one object twice", "keep one of the two"
                raise BadInput("duplicate_key", message, file=file, path=key, value=key, hint=hint)
            found[key] = value
        return found

    return made


def yaml_error(error: yaml.YAMLError, file: str | None) -> BadInput:
    """The error with its line and what the parser found there."""
    mark = getattr(error, "problem_mark", None)
    what = getattr(error, "problem", None) or str(error)
    where = f" (line {mark.line + 1}, column {mark.column + 1})" if mark else ""
    line = mark.line + 1 if mark else None
    return BadInput("malformed_yaml", f"not YAML: {what}{where}", file=file, line=line, hint=YAML_HINT)


def _malformed_json(text: str, what: str, file: str | None) -> BadInput:
    line = None
    if "(byte " in what:
        at = int(what.rpartition("(byte ")[2].rstrip(")"))
        line = text.encode()[:at].count(b"\n") + 1
    elif "truncated" in what:
        line = text.count("\n") + 1
    return BadInput("malformed_json", f"not JSON: {what}", file=file, line=line, hint=JSON_HINT)
