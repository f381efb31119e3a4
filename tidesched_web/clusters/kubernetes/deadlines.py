"""The time-out of a socket begins anew with each byte: so one thread of the process ends what is overdue."""

import contextlib
import os
import threading
import time
from collections.abc import Callable
from typing import Self

# How late a deadline may be found.
_STEP_SECONDS = 0.25


class Deadline:
    """Within it, ``end`` is called once ``seconds`` are over, from another thread; ``passed`` says so."""

    def __init__(self, seconds: float, end: Callable[[], object]) -> None:
        self.seconds, self.passed = seconds, False
        self.at = time.monotonic() + seconds
        self._end = end

    def __enter__(self) -> Self:
        _watcher.add(self)
        return self

    def __exit__(self, *_: object) -> None:
        _watcher.drop(self)

    def end(self) -> None:
        """End what is overdue; it may have ended just now."""
        with contextlib.suppress(OSError, RuntimeError, ValueError):
            self._end()


class _Watcher:
    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._open: dict[int, Deadline] = {}
        self._thread: threading.Thread | None = None

    def add(self, deadline: Deadline) -> None:
        with self._changed:
            self._open[id(deadline)] = deadline
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="deadlines", daemon=True)
                self._thread.start()
            self._changed.notify()

    def drop(self, deadline: Deadline) -> None:
        with self._changed:
            self._open.pop(id(deadline), None)

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._open:
                    self._changed.wait()
                now = time.monotonic()
                overdue = [one for one in self._open.values() if one.at <= now]
                for one in overdue:
                    one.passed = True
                    del self._open[id(one)]
            for one in overdue:
                one.end()
            time.sleep(_STEP_SECONDS)


_watcher = _Watcher()


def _begin_anew() -> None:
    """In a process that was forked off, the thread is not there, and the lock may be held for ever."""
    global _watcher  # noqa: PLW0603 - one for the process, which is another one now
    _watcher = _Watcher()


os.register_at_fork(after_in_child=_begin_anew)
