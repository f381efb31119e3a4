import dataclasses
import random
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor

from tidesched_web.clusters.kubernetes.outcomes import Outcome, OutcomeKind

PARALLEL_WRITES = 8
# So long a throttled batch is tried again before it is left to the next session.
PATIENCE_SECONDS = 15.0
_LONGEST_REST = 5.0
# So many requests without an answer are no matter of single objects.
SILENT = 8


def run_all(
    calls: Iterable[Callable[[], Outcome]], *, parallel: int = PARALLEL_WRITES, patience: float = PATIENCE_SECONDS
) -> list[Outcome]:
    """Throttled (429) calls are repeated, half as many at a time; once the server is away none is sent."""
    waiting = list(calls)
    if not waiting:
        return []
    flow = _Flow(parallel, patience)
    with ThreadPoolExecutor(max_workers=min(parallel, len(waiting)), thread_name_prefix="write") as pool:
        return list(pool.map(flow.make, waiting))


class _Flow:
    def __init__(self, most: int, patience: float) -> None:
        self._changed = threading.Condition()
        self._most, self._width, self._active, self._well = most, most, 0, 0
        self._rests_until = 0.0
        self._ends_at = time.monotonic() + patience
        self._away: Outcome | None = None
        self._silent = 0

    def make(self, call: Callable[[], Outcome]) -> Outcome:
        while True:
            away = self._enter()
            if away is not None:
                return Outcome(OutcomeKind.UNREACHABLE, away.reason, f"Not sent: {away.message}", away=True)
            outcome = None
            try:
                outcome = call()
            finally:
                outcome, again = self._leave(outcome)
            if not again:
                return outcome  # type: ignore[return-value]  # None only where the call raised

    def _enter(self) -> Outcome | None:
        with self._changed:
            while self._away is None:
                rest = self._rests_until - time.monotonic()
                if rest <= 0 and self._active < self._width:
                    self._active += 1
                    return None
                self._changed.wait(rest if rest > 0 else None)
            return self._away

    def _leave(self, outcome: Outcome | None) -> tuple[Outcome | None, bool]:
        with self._changed:
            self._active -= 1
            again = False
            if outcome is not None and outcome.retry_after:
                again = self._rest(outcome.retry_after)
                if not again:
                    outcome = dataclasses.replace(outcome, away=True)
            else:
                self._well += 1
                if self._well >= self._width and self._width < self._most:
                    self._width, self._well = self._width + 1, 0
            if outcome is not None and outcome.kind is OutcomeKind.UNREACHABLE and outcome.maybe_done:
                self._silent += 1
            gives_up = outcome is not None and (outcome.away or self._silent >= SILENT)
            if gives_up and self._away is None:
                self._away = outcome
            self._changed.notify_all()
            return outcome, again

    def _rest(self, seconds: float) -> bool:
        now = time.monotonic()
        # Others may have had the same answer at the same time: that is one wish, not several.
        if now >= self._rests_until:
            self._width, self._well = max(1, self._width // 2), 0
            self._rests_until = now + min(seconds, _LONGEST_REST) * random.uniform(1.0, 1.2)
        return self._rests_until < self._ends_at
