"""`python -m bench [--only A1-S,A7-M] [--output table|json]`: each benchmark with its target and the ratio to it."""

import argparse
import json
import platform
import re
import statistics
import subprocess
import sys
import time
import traceback
from pathlib import Path

from bench.clock import use_processor_time
from bench.scenarios import SCENARIOS, Scenario
from bench.soak import SOAK_SESSIONS, TIMES_COUNT

SCALE = {"ms": 1e3, "us": 1e6, "%": 1.0, "x": 1.0}
# What a benchmark of several sizes has at the end of its id.
SIZE = re.compile(r"(-(S|M|L|XL|\d+k?))+$")
LEAST_RUNS, MOST_RUNS, SECONDS = 3, 50, 5.0


def main(arguments: list[str] | None = None) -> int:
    """Run what is asked for and print it; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--only", default="", help="ids, or their beginnings, separated by commas")
    parser.add_argument("--output", choices=["table", "json"], default="table")
    parser.add_argument("--cpu", action="store_true", help="count processor time, for a machine that others use")
    parser.add_argument("--soak", type=int, default=SOAK_SESSIONS[0], help="sessions of A14 (a day has 86,400)")
    parser.add_argument("--smallest", action="store_true", help="each one once, at its smallest size: does it run?")
    options = parser.parse_args(arguments)
    SOAK_SESSIONS[0], TIMES_COUNT[0] = options.soak, not options.smallest
    if options.cpu:
        use_processor_time()
    wanted = tuple(word for word in options.only.split(",") if word)
    chosen = [scenario for scenario in SCENARIOS if not wanted or scenario.id.startswith(wanted)]
    if options.smallest:
        chosen = list({SIZE.sub("", scenario.id): scenario for scenario in reversed(chosen)}.values())[::-1]
    if not chosen:
        print(
            f"error: no benchmark begins with {options.only!r}: {', '.join(s.id for s in SCENARIOS)}", file=sys.stderr
        )
        return 2
    rows, failed = [], []
    for scenario in chosen:
        print(f"  ...  {scenario.id}", file=sys.stderr, flush=True)
        try:
            row = run(scenario, once=scenario.once or options.smallest)
        except Exception:  # noqa: BLE001 - printed, and in the exit status; the figures of the others are not lost
            traceback.print_exc()
            failed.append(scenario.id)
            continue
        rows.append(row)
        print(f"       {row['value']:.2f} {row['unit']}, least {row['least']:.2f}", file=sys.stderr, flush=True)
    if options.output == "json":
        print(json.dumps(rows, indent=2, sort_keys=True))
    else:
        print(f"{'id':10}{'p50':>12}{'p95':>12}{'least':>12}{'target':>12}{'ratio':>8}{'n':>5}")
        for row in rows:
            unit = row["unit"]
            print(
                f"{row['id']:10}{row['value']:>9.2f} {unit}{row['p95']:>9.2f} {unit}{row['least']:>9.2f} {unit}"
                f"{row['target']:>9.2f} {unit}{row['ratio']:>8.2f}{row['n']:>5}"
            )
    for name in failed:
        print(f"error: {name} failed, see above", file=sys.stderr)
    return 1 if failed else 0


def run(scenario: Scenario, *, once: bool) -> dict[str, object]:
    """Measure until the time or the runs are used up; the first run warms up and does not count."""
    measure = scenario.prepare()
    first = measure() * (1.0 if scenario.once else SCALE[scenario.unit])
    taken = [first] * 2 if once else []
    end = time.perf_counter() + SECONDS
    while not once and (len(taken) < LEAST_RUNS or (len(taken) < MOST_RUNS and time.perf_counter() < end)):
        taken.append(measure() * SCALE[scenario.unit])
    p50 = statistics.median(taken)
    return {
        "id": scenario.id,
        "value": round(p50, 3),
        "unit": scenario.unit,
        "target": scenario.target,
        "ratio": round(p50 / scenario.target, 3),
        "p95": round(statistics.quantiles(taken, n=20, method="inclusive")[-1], 3),
        "least": round(min(taken), 3),
        "n": 1 if once else len(taken),
        "machine": f"{platform.machine()}, Python {platform.python_version()}",
        "commit": _commit(),
    }


def _commit() -> str:
    command = ["git", "rev-parse", "--short", "HEAD"]
    done = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=False)
    return done.stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
