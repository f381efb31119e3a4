import datetime as dt
import time
from typing import Any

from django.utils import timezone

from tidesched_web.clusters.kubernetes.writes import ClusterWrites
from tidesched_web.clusters.models import Cluster, PolicyRevision
from tidesched_web.engine.model import Memory, PodGroup, Result, Snapshot
from tidesched_web.scheduling.holds import Hold
from tidesched_web.scheduling.models import Reclaim, Session
from tidesched_web.scheduling.pipeline.context import ClusterContext
from tidesched_web.scheduling.pipeline.guards import Breach
from tidesched_web.scheduling.pipeline.planning import Plan
from tidesched_web.scheduling.pipeline.sending import Route


class Work:
    def __init__(self, context: ClusterContext, trigger: str) -> None:
        self.context = context
        self.trigger = trigger
        self.started_at = timezone.now()
        self.timings: dict[str, float] = {}
        self.counts: dict[str, Any] = {}
        self.cluster: Cluster
        self.revision: PolicyRevision
        self.hold: Hold | None = None
        self.now: dt.datetime
        # What the watch shows, and the same with the own writes laid over it that it does not show yet.
        self.seen: Snapshot
        self.snapshot: Snapshot
        # As the cluster shows them: gangs whose promise a person has withdrawn.
        self.withdrawn: dict[str, PodGroup] = {}
        self.memory_in: Memory | None = None
        self.result: Result
        self.memory_out: Memory
        self.breach: Breach | None = None
        self.plan: Plan
        self.session: Session
        self.reclaims: list[Reclaim] = []

    def timed(self, name: str, since: float) -> None:
        self.timings[name] = round((time.perf_counter() - since) * 1000, 3)

    @property
    def sends(self) -> bool:
        return self.hold is None and self.breach is None

    @property
    def acts(self) -> bool:
        return bool(self.result.binds or self.result.evictions)

    def route(self, session_id: int, number: int) -> Route:
        lease = self.context.lease
        return Route(
            cluster_id=self.cluster.pk,
            session_id=session_id,
            epoch=lease.epoch,
            now=self.now,
            lease=lease,
            writes=ClusterWrites(
                self.context.client,
                session=str(number),
                epoch=lease.epoch,
                lease=self.context.installation_lease,
                refusals=self.context.refusals,
            ),
            assumed=self.context.assumed,
            went_back=self.context.cache.went_back,
        )
