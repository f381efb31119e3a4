"""What the proof of the REST API has found, kept line by line, so that a run that is stopped loses nothing.

With `REST_RESULTS=folder` each scenario is a line of a file there, written as it ends, and what has ended is not asked
again: the same command goes on where it was stopped. `python -m tests.api.results folder` sums the lines up.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_SCENARIOS = "stateful"  # the phase whose scenarios ask several operations, and which is repeated as a whole


@dataclass
class Found:
    """What one phase found at one operation; `ended`: it has not to be asked again."""

    phase: str
    operation: str
    answers: Counter[int] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    ended: bool = True
    seconds: float = 0.0


class Results:
    """The lines of one kind of run. ``how`` tells runs apart whose lines do not stand for each other's."""

    def __init__(self, folder: str, name: str, *, how: str) -> None:
        self.path = Path(folder) / f"{name}.jsonl" if folder else None
        self.how = how
        self.run = f"{time.time():.0f}-{os.getpid()}"
        self.lines = lines_of(self.path) if self.path is not None and self.path.exists() else []
        self.end = "\n"  # of the line in which an earlier run may have been stopped

    def add(self, found: Found) -> None:
        """Keep a line."""
        line = {
            "how": self.how, "run": self.run, "phase": found.phase, "operation": found.operation, "ended": found.ended,
            "answers": {str(status): count for status, count in sorted(found.answers.items())},
            "failures": found.failures, "seconds": round(found.seconds, 3),
        }  # fmt: skip
        self.lines.append(line)
        if self.path is not None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a", encoding="utf-8") as file:
                file.write(f"{self.end}{json.dumps(line)}\n")
            self.end = ""

    def kept(self) -> list[Found]:
        """What runs like this one have found."""
        return _newest(line for line in self.lines if line["how"] == self.how)

    def done(self, phase: str) -> set[str]:
        """The operations that a phase has not to ask again."""
        of_phase = [found for found in self.kept() if found.phase == phase]
        return {one.operation for one in of_phase if one.ended} - {one.operation for one in of_phase if not one.ended}

    def said(self, phase: str) -> str:
        """How many operations a phase has asked, and how they answered."""
        return "\n".join(_phases([found for found in self.kept() if found.phase == phase]))

    def failed(self, phase: str) -> dict[str, list[str]]:
        """Operation → what it was found to do wrong."""
        found: dict[str, list[str]] = {}
        for one in self.kept():
            if one.phase == phase and one.failures:
                found.setdefault(one.operation, []).extend(one.failures)
        return found


def lines_of(path: Path) -> list[dict[str, Any]]:
    """All lines but one that was cut off where a run was stopped."""
    found = []
    for text in path.read_text(encoding="utf-8").split("\n"):
        with suppress(json.JSONDecodeError):
            found.append(json.loads(text))
    return found


def _newest(rows: Iterable[dict[str, Any]]) -> list[Found]:
    """Of what was asked twice, the newest run."""
    kept: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        asked = (row["phase"], "" if row["phase"] == _SCENARIOS else row["operation"])
        if kept[asked] and kept[asked][0]["run"] != row["run"]:
            kept[asked] = []
        kept[asked].append(row)
    return [
        Found(
            row["phase"],
            row["operation"],
            Counter({int(status): count for status, count in row["answers"].items()}),
            row["failures"],
            row["ended"],
            row["seconds"],
        )
        for group in kept.values()
        for row in group
    ]


def kind_of(failure: str) -> str:
    """The check that failed: what stands before the status or the details."""
    return re.split(r"[:\d]", failure, maxsplit=1)[0].strip()


def summed_up(folder: Path) -> str:
    """One line a phase, one a kind of finding, and the findings."""
    lines: list[str] = []
    for path in sorted(folder.glob("*.jsonl")):
        for how in dict.fromkeys(row["how"] for row in lines_of(path)):
            found = Results(str(folder), path.stem, how=how).kept()
            lines += [f"{path.stem} ({how})", *_phases(found)]
            kinds = Counter(kind_of(failure) for one in found for failure in one.failures)
            lines += [f"  {count:7} findings  {kind}" for kind, count in kinds.most_common()] or ["  0 findings"]
            lines += [f"    {one.phase} {one.operation}: {text[:300]}" for one in found for text in one.failures[:1]]
            succeeded = {one.operation for one in found if any(200 <= status < 300 for status in one.answers)}
            without = sorted({one.operation for one in found} - succeeded - {""})
            lines.append(f"  with a 2xx: {len(succeeded)} operations; without: {', '.join(without) or 'none'}")
    return "\n".join(lines)


def _phases(found: list[Found]) -> list[str]:
    lines = []
    for phase in dict.fromkeys(one.phase for one in found):
        of_phase = [one for one in found if one.phase == phase]
        classes = Counter[int]()
        for one in of_phase:
            for status, count in one.answers.items():
                classes[status // 100] += count
        asked = len({one.operation for one in of_phase if one.answers})
        said = ", ".join(f"{count} {kind}xx" for kind, count in sorted(classes.items()))
        took = sum(one.seconds for one in of_phase) / 60
        lines.append(f"  {phase:10} {asked:4} operations {classes.total():7} requests: {said}; {took:.1f} min")
    return lines


if __name__ == "__main__":
    print(summed_up(Path(sys.argv[1])))
