"""One Kubernetes object (a dict) to a typed struct, with an error that names the place."""

import re
from functools import lru_cache
from typing import Annotated, Any, TypeVar

import msgspec

from scheduler_core.model.errors import BadInput

T = TypeVar("T")
# Kubernetes' integers; anything larger is a slip that the tables could not count.
Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]

_AT = re.compile(r"^(?P<what>.*?)(?: - at `\$(?P<path>.*)`)?$", re.DOTALL)
_EXPECTED = re.compile(r"^Expected `(?P<types>[^`]*)`(?: (?P<bound>[<>]=? \S+))?(?:, got `(?P<got>[^`]*)`)?$")
_MISSING = re.compile(r"^Object missing required field `([^`]*)`$")
_WORDS = {
    "int": "a whole number",
    "float": "a number",
    "str": "a text",
    "bool": "true or false",
    "array": "a list",
    "object": "a mapping",
    "null": "nothing",
}
_HINTS = {
    "array": "a list: one '- ' before each entry",
    "object": "a mapping: 'key: value' on lines of their own, indented",
    "bool": "true or false, without quotes",
    "int": "a whole number",
    "str": "a text",
}
_ANY = "see the Kubernetes API of this kind of object"
_STEP = re.compile(r"\.([A-Za-z0-9_-]+)|\[(\d+)\]|\[\"([^\"]*)\"\]")


def steps(path: str) -> list[str | int]:
    """Keys and indices of a pointer such as ``items[3].spec["a/b"]``."""
    text = path if path.startswith((".", "[")) else f".{path}"
    return [int(index) if index else key or quoted for key, index, quoted in _STEP.findall(text)]


def told(error: BadInput) -> str:
    """The error with its place in one sentence."""
    match steps(error.path or ""):
        case ["metadata", "annotations" | "labels" as marks, str(key)]:
            return f"{marks[:-1]} {key}: {error.message}"
    return f"{(error.path or '').lstrip('.')}: {error.message}".removeprefix(": ")


def decode(obj: object, into: type[T]) -> T:
    """Convert ``obj`` into the struct type ``into``. Raises BadInput: ``malformed_object``, with the path below the
    object."""
    try:
        return msgspec.convert(obj, into)
    except msgspec.ValidationError as error:
        raise _malformed(obj, str(error)) from None


def _malformed(obj: Any, text: str) -> BadInput:
    match = _AT.match(text)
    what, path = (match["what"], match["path"] or "") if match else (text, "")
    if "[...]" in path or "*" in path:
        # msgspec names a dict's values or keys "[...]": the place is its container.
        path = path.split("[...]")[0].split("*")[0]
    value = obj
    for step in steps(path):
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            value = None
            break
    shown = value if isinstance(value, str | int | float | bool) or value is None else None
    message, hint = _in_words(what, shown)
    return BadInput("malformed_object", message, path=path, value=shown, hint=hint)


def _in_words(what: str, value: object) -> tuple[str, str]:
    """What msgspec says of a value, and what would be right."""
    if missing := _MISSING.match(what):
        return f"the field {missing[1]} is missing", f"add {missing[1]}"
    found = _EXPECTED.match(what)
    if found is None:
        return ("it is empty", "a name") if what.endswith("of length >= 1") else (what, _ANY)
    types = [part for part in found["types"].split(" | ") if part != "null"] or ["null"]
    wanted = " or ".join(_WORDS.get(part, part) for part in types)
    if found["bound"]:
        return f"{wanted} {found['bound']} is expected here", f"a number {found['bound']}"
    got = _WORDS.get(found["got"] or "", found["got"] or "")
    return f"{wanted} is expected here, not {got}", _hint(types, value)


def _hint(types: list[str], value: object) -> str:
    if isinstance(value, str) and {"int", "float"} & {*types}:
        return f"without quotes: {value}" if value.lstrip("-").isdecimal() else "a number, without quotes"
    if "str" in types and value is not None:
        return f'in quotes: "{str(value).lower() if isinstance(value, bool) else value}"'
    return _HINTS.get(types[0], _ANY)


@lru_cache(maxsize=1 << 16)
def parse_time(text: str) -> float:
    """RFC 3339 time to seconds since the epoch. Raises ValueError: not a time."""
    from datetime import UTC, datetime

    moment = datetime.fromisoformat(text)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def time_at(text: str | None, path: str) -> float | None:
    """The time at ``path``, None when absent. Raises BadInput: ``bad_timestamp``."""
    if text is None:
        return None
    try:
        return parse_time(text)
    except ValueError:
        raise BadInput(
            "bad_timestamp", f"{text!r} is not a time", path=path, value=text,
            hint="write for example 2026-08-20T12:00:00Z",
        ) from None  # fmt: skip
