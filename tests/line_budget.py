"""The most lines that each part of `tidesched_web` may have: the table `tool.line-budget` of pyproject.toml.

Part of `python -m tests.checks`, which prints the table. A budget that is too small is raised there, with the change
that needs it.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from tests.architecture import sources

COUNTED = {".py", ".html", ".js", ".css", ".sql", ".yaml"}
ROOT_FILES = "root"  # the files of tidesched_web that are in none of its packages


def part_of(path: Path) -> str:
    """The row of a file, by its path in the repository; "" where it is in none."""
    first, *rest = path.parts
    if first in ("templates", "static"):
        return first
    if first != "tidesched_web":
        return ""
    return rest[0] if len(rest) > 1 else ROOT_FILES


def lines_in_use(files: Iterable[Path], root: Path) -> Counter[str]:
    found = Counter[str]()
    for path in files:
        part = part_of(path.relative_to(root))
        if part and path.suffix in COUNTED:
            found[part] += len(path.read_bytes().splitlines())
    return found


def compared(used: Counter[str], budget: dict[str, int]) -> tuple[str, list[str]]:
    """The table, and a line for each part that is above its budget or has none."""
    rows = [(part, used[part], budget.get(part, 0)) for part in sorted(used.keys() | budget.keys())]
    rows.append(("all", used.total(), sum(budget.values())))
    table = "\n".join(f"{part:12}{lines:>8}{most:>8}{most - lines:>8}" for part, lines, most in rows)
    wrong = [
        f"{part} has {lines - most} lines more than its budget of {most} (tool.line-budget in pyproject.toml)"
        for part, lines, most in rows[:-1]
        if lines > most
    ]
    return f"{'lines of':12}{'used':>8}{'budget':>8}{'left':>8}\n{table}", wrong


def faults() -> list[str]:
    """Print the table; what is above its budget."""
    budget = tomllib.loads((sources.ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["line-budget"]
    table, wrong = compared(lines_in_use(sources.committed(), sources.ROOT), budget)
    print(table)
    return wrong
