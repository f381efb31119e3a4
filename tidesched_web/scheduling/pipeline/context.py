from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from tidesched_web.clusters.kubernetes.cache import ClusterCache
from tidesched_web.clusters.kubernetes.client import KubernetesClient
from tidesched_web.clusters.kubernetes.cluster_clock import ClusterClock
from tidesched_web.clusters.kubernetes.installation_lease import lease_of
from tidesched_web.clusters.kubernetes.refusals import Refusals
from tidesched_web.clusters.models import Cluster, PolicyRevision
from tidesched_web.common import live
from tidesched_web.engine import bridge
from tidesched_web.engine.model import BadInput, Policy
from tidesched_web.scheduling.models import AlertSeverity
from tidesched_web.scheduling.pipeline import alerts
from tidesched_web.scheduling.pipeline.assumed import Assumed
from tidesched_web.scheduling.pipeline.events import EventBook
from tidesched_web.scheduling.pipeline.gang_counts import GangCountBook
from tidesched_web.scheduling.pipeline.inputs import InputWriter
from tidesched_web.scheduling.pipeline.inventory import Inventory
from tidesched_web.scheduling.pipeline.lease import Lease
from tidesched_web.scheduling.pipeline.nominations import NominationBook
from tidesched_web.scheduling.pipeline.pod_reasons import PodReasonBook
from tidesched_web.scheduling.pipeline.podgroups import PodGroupBook
from tidesched_web.scheduling.pipeline.reclaims import QueueOwner, queue_owners
from tidesched_web.scheduling.pipeline.sending import Aside
from tidesched_web.scheduling.pipeline.statuses import QueueStatusBook
from tidesched_web.scheduling.pipeline.usage import UsageRecorder
from tidesched_web.workloads.services import GangRecorder

if TYPE_CHECKING:
    from tidesched_web.scheduling.pipeline.observed import Observer

OWNERS_SECONDS = 5.0
# Open pages hear at most twice a second what to fetch again.
ANNOUNCE_SECONDS = 0.5


class NoPolicy(RuntimeError):
    """The cluster has no policy that this engine can use."""


class ClusterContext:
    """Everything that is warm for one cluster. Belongs to the one session thread of that cluster."""

    def __init__(
        self,
        cluster: Cluster,
        lease: Lease,
        client: KubernetesClient,
        cache: ClusterCache,
        *,
        observer: Observer | None = None,
    ) -> None:
        self.cluster_id = cluster.pk
        self.observer = observer
        self.lease = lease
        self.client = client
        self.cache = cache
        self.clock = ClusterClock(client, simulated=cluster.simulated)
        self.assumed = Assumed()
        self.workspace = bridge.Workspace()
        self.gangs = GangRecorder(cluster_id=cluster.pk)
        self.usage = UsageRecorder(cluster_id=cluster.pk)
        self.inventory = Inventory(cluster_id=cluster.pk)
        self.inputs = InputWriter(cluster_id=cluster.pk)
        self.events = EventBook(cluster_id=cluster.pk)
        self.queue_statuses = QueueStatusBook()
        self.pod_groups = PodGroupBook()
        self.gang_counts = GangCountBook()
        self.nominations = NominationBook()
        self.pod_reasons = PodReasonBook()
        self.installation_lease = lease_of(cluster.pk, cluster.api_url)
        self.refusals = Refusals()
        self.aside = Aside()
        self.foreign_holder: str | None = None  # not asked yet
        self._policies: dict[int, Policy] = {}
        self._faults: dict[str, dict[str, Any]] | None = None
        self._to_announce: dict[tuple[str, int | str], live.About | None] = {}
        self._announced_at = float("-inf")
        self._owners: dict[str, QueueOwner] = {}
        self._owners_at = float("-inf")

    def load(self) -> None:
        self.gangs.load()
        self.usage.load()
        self.inventory.load()
        self.events.load()

    def announce(self, changed: Mapping[tuple[str, int | str], live.About | None], *, version: int) -> None:
        self._to_announce |= changed
        if time.monotonic() - self._announced_at < ANNOUNCE_SECONDS:
            return
        self._announced_at = time.monotonic()
        for (topic, id_), about in self._to_announce.items():
            live.publish(topic, id_, version, cluster_id=self.cluster_id, about=about)
        self._to_announce = {}

    def owners(self) -> dict[str, QueueOwner]:
        if time.monotonic() - self._owners_at > OWNERS_SECONDS:
            self._owners, self._owners_at = queue_owners(self.cluster_id), time.monotonic()
        return self._owners

    def policy(self) -> tuple[PolicyRevision, Policy]:
        """The newest policy that this engine can use: an invalid one keeps the last good one in force."""
        newest = PolicyRevision.objects.filter(cluster_id=self.cluster_id, valid=True).order_by("-number")[:5]
        found, faults = None, dict[str, dict[str, Any]]()
        for revision in newest:
            try:
                found = revision, self._parse(revision)
                break
            except BadInput as error:
                faults[f"policy_invalid:{revision.number}"] = {
                    "severity": AlertSeverity.CRITICAL,
                    "code": "policy_invalid",
                    "message": f"Policy {revision.number} cannot be used: {error.message}",
                    "numbers": msgspec.to_builtins(error.to_json()["error"], str_keys=True),
                }
        if faults or faults != self._faults:
            alerts.keep_open(cluster_id=self.cluster_id, prefix="policy_invalid:", wanted=faults)
            self._faults = faults
        if found is None:
            raise NoPolicy(f"cluster {self.cluster_id} has no policy that can be used")
        return found

    def _parse(self, revision: PolicyRevision) -> Policy:
        if revision.pk not in self._policies:
            self._policies = {revision.pk: bridge.read_policy(revision.text)}
        return self._policies[revision.pk]
