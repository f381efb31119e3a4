"""Hostile input from a good one: one place of it holds what no client sends.

The beginning is the same for each: null, a list and a text at each place. Then chance draws places and values.
"""

from __future__ import annotations

import json
import random
import string
from collections.abc import Iterator
from typing import Any

Path = tuple[str | int, ...]


class Raw(str):
    """Text that is written into the body as it is."""

    __slots__ = ()


def _deep(levels: int) -> Raw:
    return Raw('{"a":' * levels + "1" + "}" * levels)


# What is there where another thing is meant; much of it is no JSON that can be stored, some of it is no JSON.
TEXTS = (
    "", " ", "\t\n", "\x07bell", "\x1b[31m", "\x7f", "a\x85b", "line\r\nX-Injected: 1", "\u202egnp.exe",
    "\u200b", "\ufeffname", "\u0430dmin", "e\u0301", "\U0001f600" * 64, "\u0660\u0661", "x" * 300, "x" * 5000,
    "x" * 100_000, "../../etc/passwd", "%00", "'; DROP TABLE q; --",
    "<script>alert(1)</script>", "{{7*7}}", "=1+1", "*", "~1", "a/b", "true", "null", "1", "-1", "1e9", "NaN", "0x10",
    "2026-02-30T25:61:61Z", "9999-12-31T23:59:59-23:59", "0000-00-00", "P1Y", "http://[::1",
    "https://169.254.169.254/", "/sign-out/",
)  # fmt: skip
NUMBERS = (
    "0", "-1", "1.5", "-0.0", "1e-400", "1e400", "-1e400", "2147483648", "9223372036854775807", "9223372036854775808",
    "9" * 400, "9" * 5000, "NaN", "Infinity", "-Infinity", "00", "0x10", "1_000", "+1", ".5",
)  # fmt: skip
OTHERS = (
    "null", "true", "false", "[]", "{}", "[null]", "[[]]", "[{}]", '{"": null}', '{"__proto__": {"admin": true}}',
    '{"a": {"b": [1]}}',
    '"\\u0000"', '"a\\u0000b"', '"\\ud800"', '"\\udc00\\ud800"', '"\\', "'x'", "undefined", "[1,]",
    '{"a" 1}', "//", '"\t"',
    "[" + ",".join(["1"] * 5000) + "]", "{" + ",".join(f'"k{n}":{n}' for n in range(3000)) + "}",
)  # fmt: skip


def _value(chance: random.Random) -> Raw:
    kind = chance.randrange(8)
    if kind < 3:
        return Raw(json.dumps(chance.choice(TEXTS), ensure_ascii=chance.random() < 0.5))
    if kind < 5:
        return Raw(chance.choice(NUMBERS))
    if kind < 7:
        return Raw(chance.choice(OTHERS))
    levels = chance.choice((99, 101, 1000, 20_000))
    return _deep(levels) if chance.random() < 0.5 else Raw("[" * levels + "]" * levels)


def _name(chance: random.Random) -> str:
    return chance.choice(
        (*TEXTS, "".join(chance.choices(string.ascii_lowercase, k=8)), "id", "version", "actor", "tenant")
    )


def written(value: Any) -> str:
    """The body as it is sent."""
    if isinstance(value, Raw):
        return str(value)
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(name)}:{written(inner)}" for name, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(written, value)) + "]"
    return json.dumps(value)


def places(value: Any, at: Path = ()) -> Iterator[Path]:
    """Every place of a document, the whole of it first."""
    yield at
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, inner in members:
        yield from places(inner, (*at, step))


def _at(document: Any, path: Path) -> Any:
    for step in path:
        document = document[step]
    return document


def _put(document: Any, path: Path, value: Any) -> Any:
    if not path:
        return value
    step = path[0]
    inner = _put(document[step], path[1:], value)
    if isinstance(document, dict):
        return {**document, step: inner}
    return [*document[:step], inner, *document[step + 1 :]]


def _twice(name: str, first: Any, second: Any, rest: dict[str, Any]) -> Raw:
    members = [f"{json.dumps(key)}:{written(inner)}" for key, inner in rest.items() if key != name]
    return Raw(
        "{"
        + ",".join([f"{json.dumps(name)}:{written(first)}", *members, f"{json.dumps(name)}:{written(second)}"])
        + "}"
    )


def _changed(good: Any, chance: random.Random) -> bytes:
    every = list(places(good))
    path = chance.choice(every)
    here, act = _at(good, path), chance.randrange(10)
    if act == 0 and isinstance(here, dict):
        return written(_put(good, path, {**here, _name(chance): _value(chance)})).encode("utf-8", "surrogatepass")
    if act == 1 and isinstance(here, dict) and here:
        lost = chance.choice(list(here))
        return written(_put(good, path, {name: inner for name, inner in here.items() if name != lost})).encode()
    if act == 2 and isinstance(here, dict) and here:
        name = chance.choice(list(here))
        return written(_put(good, path, _twice(name, here[name], _value(chance), here))).encode(
            "utf-8", "surrogatepass"
        )
    if act == 3 and isinstance(here, dict) and here:
        name = chance.choice(list(here))
        renamed = {(_name(chance) if key == name else key): inner for key, inner in here.items()}
        return written(_put(good, path, renamed)).encode("utf-8", "surrogatepass")
    if act == 4:
        text = written(good).encode()
        cut = chance.randrange(len(text) + 1)
        return chance.choice(
            (text[:cut], text + text, text[:cut] + chance.randbytes(8) + text[cut:], text.decode().encode("utf-16"))
        )
    return written(_put(good, path, _value(chance))).encode("utf-8", "surrogatepass")


def bodies(good: Any, chance: random.Random) -> Iterator[bytes]:
    """One hostile body after the other, made of a good one."""
    every = list(places(good))
    for path in every:
        for wrong in ("null", "[]", '"\\u0000"'):
            yield written(_put(good, path, Raw(wrong))).encode()
    while True:
        yield _changed(good, chance)


def forms(good: dict[str, str], chance: random.Random) -> Iterator[list[tuple[str, str]]]:
    """One hostile form after the other: the fields of a good one, where one is missing, foreign, twice or hostile."""
    fields = list(good.items())
    for lost in good:
        yield [(name, value) for name, value in fields if name != lost]
        yield [(name, "\x00" if name == lost else value) for name, value in fields]
    while True:
        name = chance.choice([*good, _name(chance)])
        value = chance.choice((*TEXTS, *NUMBERS, *OTHERS, str(_deep(1000))))
        kept = [(key, text) for key, text in fields if key != name]
        yield [*kept, (name, value), (name, chance.choice(TEXTS))] if chance.random() < 0.2 else [*kept, (name, value)]
