import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from tidesched_web.console import amounts
from tidesched_web.engine.policy_check import MOST_LINES


@dataclass(frozen=True, slots=True)
class TextLine:
    """One line. ``kind``: same, added, removed, or gap (lines left out in between)."""

    kind: str
    text: str
    before: int | None = None
    after: int | None = None


def text_lines(before: str, after: str, *, around: int = 3) -> list[TextLine]:
    had, has = before.splitlines(), after.splitlines()
    if max(len(had), len(has)) > MOST_LINES + 1:  # comparing takes quadratic time, and more
        return []
    found: list[TextLine] = []
    for group in difflib.SequenceMatcher(None, had, has, autojunk=False).get_grouped_opcodes(around):
        if found:
            found.append(TextLine("gap", "…"))
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                found += [TextLine("same", had[i], i + 1, j1 + i - i1 + 1) for i in range(i1, i2)]
            else:
                found += [TextLine("removed", had[i], i + 1) for i in range(i1, i2)]
                found += [TextLine("added", has[j], None, j + 1) for j in range(j1, j2)]
    return found


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
    return Line(path, shown(before), shown(after), kind, moved(before, after) if kind == "changed" else "")


def shown(value: Any) -> str:
    if value is None or value in ({}, []):
        return "–"
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return orjson.dumps(value).decode()
    return str(value)


def moved(before: Any, after: Any) -> str:
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in (before, after))
    if not numbers or before == after:
        return ""
    sign = "+" if after > before else "−"
    return f"{sign}{amounts.number(abs(after - before))}"
