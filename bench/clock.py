"""The clock that benchmarks read: real time, or the time that the processor spent (for a machine that others use)."""

from __future__ import annotations

import time
from collections.abc import Callable

_chosen: list[Callable[[], float]] = [time.perf_counter]


def clock() -> float:
    """Seconds."""
    return _chosen[0]()


def is_processor_time() -> bool:
    """Whether it is not real time."""
    return _chosen[0] is time.process_time


def use_processor_time() -> None:
    """Count only what this process's processor did."""
    _chosen[0] = time.process_time
