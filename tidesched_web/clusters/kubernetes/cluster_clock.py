import threading
import time
from dataclasses import dataclass
from datetime import datetime

from tidesched_web.clusters.kubernetes.client import ApiFailure, KubernetesClient, Unreachable

_SYNC_SECONDS = 2.0


@dataclass(frozen=True)
class Anchor:
    """``now = virtual + (wall - wall_at) x rate``; both times in seconds since the epoch."""

    virtual: float
    wall_at: float
    rate: float


class ClusterClock:
    """``now()`` of a cluster: wall time for a real one, the virtual time of a simulated one. Threads may share it."""

    def __init__(self, client: KubernetesClient, *, simulated: bool) -> None:
        self._client = client
        self._simulated = simulated
        self._lock = threading.Lock()
        self._anchor: Anchor | None = None
        self._asked = float("-inf")
        self._synced = 0.0
        self._latest = 0.0
        self._answers = False

    def now(self) -> float:
        """Never earlier than before. While a simulated cluster does not answer, its clock is taken to stand still."""
        if not self._simulated:
            return time.time()
        with self._lock:
            anchor = self._current()
            if self._answers:
                elapsed = time.monotonic() - self._synced
                self._latest = max(self._latest, anchor.virtual + elapsed * anchor.rate)
            return self._latest

    def anchor(self) -> Anchor:
        """For those that cannot ask the cluster: the pages."""
        if not self._simulated:
            return Anchor(time.time(), time.time(), 1.0)
        with self._lock:
            return self._current()

    def _current(self) -> Anchor:
        if time.monotonic() - self._asked >= _SYNC_SECONDS or self._anchor is None:
            self._asked = time.monotonic()
            try:
                self._sync()
                self._answers = True
            except (ApiFailure, Unreachable):
                self._answers = False
                if self._anchor is None:
                    raise
        assert self._anchor is not None
        return self._anchor

    def _sync(self) -> None:
        before = time.monotonic()
        answer = self._client.get("/tidesched/clock")
        self._synced = (before + time.monotonic()) / 2
        wall_at = time.time() - (time.monotonic() - self._synced)
        self._anchor = Anchor(datetime.fromisoformat(answer["now"]).timestamp(), wall_at, float(answer["rate"]))
