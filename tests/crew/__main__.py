"""`python -m tests.crew [calm|faults|size …] [--minutes N]`: see docs/crew.md."""

from __future__ import annotations

import argparse
import dataclasses
import subprocess
import sys
from pathlib import Path

from tests.browser import servers
from tests.crew import deeds, report
from tests.crew.run import Size, run
from tests.crew.verdict import AT_LEAST, Rules

RESULTS = servers.ROOT / "test-results" / "crew"
CALM_MINUTES = 60
LONG_MINUTES = 20


def least_for(size: Size) -> dict[str, int]:
    """How often what people came for is done at least: as often as half of the minutes."""
    often = max(1, int(size.minutes / 2))
    return dict.fromkeys(deeds.KINDS, often)


def rules_for(size: Size) -> Rules:
    """Thirty promises of each kind are asked for in the long runs alone."""
    return Rules(at_least=AT_LEAST if size.minutes >= LONG_MINUTES else 0, least=least_for(size))


RUNS = {
    "calm": Size("calm", CALM_MINUTES),
    "faults": Size("faults", 30, faults=True),
    "size": Size("size", 20, demo="M"),
}


def main() -> int:
    """Each run in a process of its own: one that has become nice cannot start an installation that is not."""
    parser = argparse.ArgumentParser(prog="python -m tests.crew", description=__doc__)
    parser.add_argument("runs", nargs="*", help=f"{', '.join(RUNS)}; all of them by default")
    parser.add_argument("--minutes", type=float, help="how long, instead of the run's own time")
    parser.add_argument("--pages", type=int, help="open pages, instead of 300")
    parser.add_argument("--readers", type=int, help="readers, instead of 50")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where the reports go")
    given = parser.parse_args()
    wanted = given.runs or list(RUNS)
    if unknown := set(wanted) - {*RUNS}:
        parser.error(f"there is no run {min(unknown)}; known: {', '.join(RUNS)}")
    if len(wanted) > 1:
        asked = {"--minutes": given.minutes, "--pages": given.pages, "--readers": given.readers}
        more = [text for name, value in asked.items() if value for text in (name, str(value))]
        command = [sys.executable, "-m", "tests.crew", "--results", str(given.results), *more]
        return max([subprocess.run([*command, one], check=False).returncode for one in wanted])
    size = RUNS[wanted[0]]
    size = dataclasses.replace(
        size,
        minutes=given.minutes or size.minutes,
        pages=given.pages or size.pages,
        readers=given.readers or size.readers,
    )
    told = run(dataclasses.replace(size, rules=rules_for(size)), given.results)
    print(report.text(told))
    return 1 if told["failings"] else 0


if __name__ == "__main__":
    sys.exit(main())
