"""Before, after and what differs, figure by figure, of two documents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from tidesched_web.console import amounts

# Between the steps of a path.
STEP = " › "


@dataclass(frozen=True, slots=True)
class Line:
    path: str
    before: str
    after: str
    kind: str
    by: str = ""


def lines(before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> list[Line]:
    """Every figure of both, in order; those that differ first."""
    had, has = dict(_leaves(before or {})), dict(_leaves(after or {}))
    found = [_line(path, had, has) for path in sorted({*had, *has})]
    return sorted(found, key=lambda line: line.kind == "same")


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping) and value:
        for name in value:
            yield from _leaves(value[name], f"{path}{STEP}{name}" if path else str(name))
    elif isinstance(value, list) and any(isinstance(item, Mapping) for item in value):
        for number, item in enumerate(value, 1):
            yield from _leaves(item, f"{path}{STEP}{number}")
    elif path:
        yield path, value


def _line(path: str, had: dict[str, Any], has: dict[str, Any]) -> Line:
    if path not in had:
        return Line(path, "", shown(has[path]), "added")
    if path not in has:
        return Line(path, shown(had[path]), "", "removed")
    before, after = had[path], has[path]
    kind = "same" if before == after else "changed"
    return Line(path, shown(before), shown(after), kind, _by(before, after) if kind == "changed" else "")


def shown(value: Any) -> str:
    """A figure as a person reads it; nothing is a dash."""
    if value is None or value in ({}, []):
        return "–"
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return orjson.dumps(value).decode()
    return str(value)


def _by(before: Any, after: Any) -> str:
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in (before, after))
    if not numbers:
        return ""
    sign = "+" if after > before else "−"
    return f"{sign}{amounts.number(abs(after - before))}"
