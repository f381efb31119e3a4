"""A14: a day of a cluster at L, a session a second with about 200 watch events in between."""

from __future__ import annotations

import gc
import statistics
import sys
from collections.abc import Callable
from pathlib import Path

from bench.checks import check
from bench.clock import clock
from bench.snapshots import SIZES
from bench.steady import Running

# Sessions of the day that are run; a whole day has 86,400.
SOAK_SESSIONS = [400]
# Whether a slow session fails it: not where only is asked whether it runs.
TIMES_COUNT = [True]
# Gangs that end and that arrive between two sessions. With their pods, and those that are bound and run, these are 216
# events.
TURNOVER = 8
REPORTS = 8
PAGES_A_MIB = 256


def soak() -> Callable[[], Callable[[], float]]:
    """Growth of the process's memory over the second half of the run, in percent.

    Garbage is not collected meanwhile: what a session leaves behind must go with it, and not wait for a collector.
    """
    return _prepare


def _prepare() -> Callable[[], float]:
    running = Running(SIZES["L"])

    def measure() -> float:
        gc.collect()
        gc.disable()
        try:
            taken, sizes = _run(running, SOAK_SESSIONS[0])
        finally:
            gc.enable()
        check(running.builder.build(), running.result)
        p50, p99 = statistics.median(taken), statistics.quantiles(taken, n=100)[98]
        print(f"       session p50 {p50 * 1e3:.1f} ms, p99 {p99 * 1e3:.1f} ms", file=sys.stderr, flush=True)
        assert p99 <= 3 * p50 or not TIMES_COUNT[0], f"p99 {p99 * 1e3:.1f} ms, p50 {p50 * 1e3:.1f} ms"
        half = sizes[len(sizes) // 2 :]
        return max(half) / half[0] * 100 - 100

    return measure


def _run(running: Running, sessions: int) -> tuple[list[float], list[int]]:
    """Seconds of each session, and the resident pages after it."""
    taken, sizes = [], []
    for number in range(1, sessions + 1):
        running.carry_out()
        running.end(TURNOVER)
        running.arrive(TURNOVER)
        start = clock()
        running.decide()
        placed = len(running.result.binds)
        taken.append(clock() - start)
        assert placed, "no pod was placed"
        sizes.append(_resident())
        if number % max(1, sessions // REPORTS) == 0:
            print(f"       {number:6} sessions, {sizes[-1] / PAGES_A_MIB:.0f} MiB", file=sys.stderr, flush=True)
    return taken, sizes


def _resident() -> int:
    """Resident memory, pages."""
    return int(Path("/proc/self/statm").read_text().split()[1])
