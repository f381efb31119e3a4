"""What differs between two texts, line by line."""

from __future__ import annotations

import difflib
from dataclasses import dataclass

from tidesched_web.engine.policy_check import MOST_LINES


@dataclass(frozen=True, slots=True)
class TextLine:
    """One line. ``kind``: same, added, removed, or gap (lines left out in between)."""

    kind: str
    text: str
    before: int | None = None
    after: int | None = None


def text_lines(before: str, after: str, *, around: int = 3) -> list[TextLine]:
    """The lines that differ with a few around them; nothing where the texts are the same, or longer than any policy."""
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
