"""Runs in the session thread between sessions, also while none can run, and asks the cluster nothing."""

import logging
import time

from django.db import Error as DatabaseError
from django.db import connection

from tidesched_web.clusters.kubernetes.cache import ClusterCache, Tap
from tidesched_web.clusters.kubernetes.paths import QUEUE
from tidesched_web.clusters.models import Cluster, ClusterMode
from tidesched_web.scheduling.models import ReachState
from tidesched_web.scheduling.pipeline.drift_watch import DriftWatch
from tidesched_web.scheduling.pipeline.observed import Observer
from tidesched_web.scheduling.pipeline.reach import Reach, ReachWatch, reach_of

_log = logging.getLogger(__name__)

EVERY_SECONDS = 1.0


def is_mode(cluster_id: int, mode: ClusterMode) -> bool:
    return Cluster.objects.filter(pk=cluster_id, mode=mode).exists()


class KindsMissing(RuntimeError):
    """Volcano's kinds went from the cluster: a session would take every gang for lost."""


class Watching:
    def __init__(self, cluster_id: int) -> None:
        self.cluster_id = cluster_id
        self.drift = DriftWatch()
        self.observer = Observer(cluster_id)
        self.taps: tuple[Tap, ...] = (self.drift, self.observer.sightings)
        self._reach_watch = ReachWatch(cluster_id)
        self._looked_at = float("-inf")

    def look(self, cache: ClusterCache) -> None:
        if time.monotonic() - self._looked_at < EVERY_SECONDS:
            return
        self._looked_at = time.monotonic()
        try:
            self._look(cache)
        except DatabaseError as error:
            _log.warning("cluster %s: not watched: %s", self.cluster_id, str(error).strip().split("\n")[0])
            connection.close()
        except Exception:  # noqa: BLE001 - a bug; sessions go on without it
            _log.exception("watching cluster %s failed", self.cluster_id)

    def cannot_connect(self, why: str) -> None:
        self._reach_watch.note(Reach(ReachState.REFUSED, why[:500]))

    def require_kinds(self, cache: ClusterCache) -> None:
        now = reach_of(cache.troubles())
        if now.state is ReachState.KINDS_MISSING and is_mode(self.cluster_id, ClusterMode.SCHEDULE):
            raise KindsMissing(f"the API server does not know {' and '.join(now.kinds)}")

    def _look(self, cache: ClusterCache) -> None:
        troubles = cache.troubles()
        self._reach_watch.look(troubles)
        if cache.synced and not any(one.absent and one.kind == QUEUE.name for one in troubles):
            self.drift.look(Cluster.objects.get(pk=self.cluster_id))
