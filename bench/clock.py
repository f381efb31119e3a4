"""The clock that benchmarks read: real time, or the time that the processor spent (for a machine that others use)."""

from __future__ import annotations

import gc
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


def collect_as_the_web_does() -> None:
    """Set the collector of garbage as `tidesched_web.asgi` does, once the pages' code is loaded."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)
