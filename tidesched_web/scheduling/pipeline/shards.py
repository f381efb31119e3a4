import logging
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable

from django.db import Error as DatabaseError
from django.db import connection

from tidesched_web.clusters.connection_selectors import reached_clusters
from tidesched_web.common.progress import progress
from tidesched_web.scheduling.pipeline import lease, timing
from tidesched_web.scheduling.pipeline.shard import ClusterShard

_log = logging.getLogger(__name__)

# The exit status by which a supervisor knows that the process ended itself on purpose.
EXIT_LEASE_PASSED = 75
_LOOK_SECONDS = min(0.25, timing.LEASE_SECONDS / 20)


class Shards:
    """``consume`` and ``release`` let the Celery queue follow the lease; ``note`` is called before a hang ends all."""

    def __init__(
        self,
        *,
        consume: Callable[[int], bool],
        release: Callable[[int], None],
        note: Callable[[str], None] = lambda _activity: None,
    ) -> None:
        self.holder = f"{socket.gethostname()[:60]}:{os.getpid()}:{secrets.token_hex(4)}"
        self._consume, self._release, self._note = consume, release, note
        self._lock = threading.Lock()
        self._shards: dict[int, ClusterShard] = {}
        self._consumed: set[int] = set()
        self._stopped = threading.Event()
        self._sweep_now = threading.Event()
        self._threads = [
            threading.Thread(target=self._renew_for_ever, name="lease-renewal", daemon=True),
            threading.Thread(target=self._watch_for_ever, name="lease-watchdog", daemon=True),
            threading.Thread(target=self._sweep_for_ever, name="lease-sweep", daemon=True),
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self, *, wait_seconds: float = 8.0) -> None:
        self._stopped.set()
        self._sweep_now.set()
        with self._lock:
            shards = list(self._shards.values())
        for shard in shards:
            shard.stop()
        deadline = time.monotonic() + wait_seconds
        for shard in shards:
            shard.join(max(0.0, deadline - time.monotonic()))

    def wake(self, cluster_id: int) -> None:
        with self._lock:
            shard = self._shards.get(cluster_id)
        if shard is not None:
            shard.wake()

    def adopt(self) -> None:
        self._sweep_now.set()

    def follow_leases(self) -> None:
        with self._lock:
            self._consumed.clear()
        self._sweep_now.set()

    # -- threads -----------------------------------------------------------------------------------------------

    def _sweep_for_ever(self) -> None:
        progress.begin("looking for clusters")
        while not self._stopped.is_set():
            progress.step()
            self._sweep_now.clear()
            try:
                self._sweep()
            except DatabaseError as error:
                _log.warning("cannot look for clusters: %s", str(error).strip().split("\n")[0])
                connection.close()
            except Exception:  # noqa: BLE001 - the thread must not vanish silently
                _log.exception("looking for clusters failed")
            self._sweep_now.wait(timing.SWEEP_SECONDS)
        progress.end("looking for clusters")
        connection.close()

    def _sweep(self) -> None:
        with self._lock:
            for cluster_id in [id_ for id_, shard in self._shards.items() if not shard.is_alive()]:
                del self._shards[cluster_id]
                if cluster_id in self._consumed:
                    self._consumed.discard(cluster_id)
                    self._release(cluster_id)
            mine = set(self._shards)
        for cluster_id in reached_clusters().order_by("pk").values_list("pk", flat=True):
            if self._stopped.is_set():
                return
            if cluster_id not in mine:
                self._take(cluster_id)
        with self._lock:
            wanted = set(self._shards) - self._consumed
        for cluster_id in wanted:
            if self._consume(cluster_id):
                self._consumed.add(cluster_id)

    def _take(self, cluster_id: int) -> None:
        held = lease.take(cluster_id, self.holder)
        if held is None:
            return
        _log.info("holding cluster %s, epoch %s", cluster_id, held.epoch)
        shard = ClusterShard(held)
        with self._lock:
            self._shards[cluster_id] = shard
        shard.start()

    def _renew_for_ever(self) -> None:
        progress.begin("renewing leases")
        while not self._stopped.wait(timing.RENEW_SECONDS):
            progress.step()
            self._renew()
        progress.end("renewing leases")
        # The sessions that are still under way need their lease to the end.
        while any(shard.is_alive() for shard in self._living()):
            self._renew()
            time.sleep(timing.RENEW_SECONDS)
        connection.close()

    def _renew(self) -> None:
        """Of clusters whose sessions move on: the lease of one that hangs runs out, and another process takes it."""
        held = [shard.lease for shard in self._living() if not shard.lease.lost]
        lease.keep([one for one in held if progress.seconds(one.activity) < timing.STANDING_SECONDS])

    def _watch_for_ever(self) -> None:
        """End the process where a session outlives its lease: nothing else can keep it from sending."""
        while True:
            time.sleep(_LOOK_SECONDS)
            for shard in self._living():
                if shard.busy and shard.lease.lost and shard.is_alive():
                    _log.critical(
                        "cluster %s: the lease of epoch %s has passed during a session; this process ends",
                        shard.cluster_id,
                        shard.lease.epoch,
                    )
                    if progress.seconds(shard.lease.activity) > timing.STANDING_SECONDS:
                        self._note(shard.lease.activity)
                    os._exit(EXIT_LEASE_PASSED)

    def _living(self) -> list[ClusterShard]:
        with self._lock:
            return list(self._shards.values())
