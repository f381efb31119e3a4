"""A small cluster on real servers: an API server process, rows in PostgreSQL, and the warm context of a session."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

from scheduler_core.serde.policy.founding import FOUNDING_POLICY
from tests import quota_writes
from tests.cluster.objects import CARD, CLASSES, QUEUES, deployment, job, node
from tests.waiting import until
from tidesched_web.clusters import services as clusters
from tidesched_web.clusters.kubernetes.cache import ClusterCache
from tidesched_web.clusters.kubernetes.client import KubernetesClient
from tidesched_web.clusters.kubernetes.paths import DEPLOYMENT, JOB, NAMESPACE, NODE, POD, POD_GROUP, QUEUE
from tidesched_web.clusters.models import Cluster
from tidesched_web.scheduling.models import Session
from tidesched_web.scheduling.pipeline import lease, session, timing
from tidesched_web.scheduling.pipeline.context import ClusterContext
from tidesched_web.workloads.models import Gang, GangEvent

NAMESPACE_NAME = "work"
# What is waited for comes after a few sessions; on a busy machine each of them takes longer.
PATIENCE_SECONDS = 120.0


class Stage:
    """One cluster with ``nodes`` × 8 cards, an inference queue and a training queue of all cards."""

    def __init__(self, server: Any, *, nodes: int = 2, period: float = 0.3, cards: int = 8) -> None:
        self.server = server
        self.client: KubernetesClient = server.client()
        self.context: ClusterContext | None = None
        self._cache: ClusterCache | None = None
        total = nodes * cards
        self.send(NAMESPACE.path(), {"metadata": {"name": NAMESPACE_NAME}})
        for name, value in (("pc-high", 80000), ("pc-low", 20000)):
            self.send(CLASSES, {"metadata": {"name": name}, "value": value})
        for index in range(nodes):
            self.send(NODE.path(), node(f"n{index}", cards))
        self.cluster = clusters.create(
            name="stage",
            api_url=server.url,
            actor="test",
            mode="schedule",
            token=server.token,
            ca_certificate=server.ca_certificate,
            simulated=server.simulated,
            session_period_seconds=period,
        )
        clusters.set_policy(cluster=self.cluster, text=FOUNDING_POLICY, actor="test", released=True)
        self._queues(total)

    def send(self, path: str, manifest: dict[str, Any]) -> None:
        outcome = self.client.send("POST", path, manifest)
        assert outcome.done or (path == NAMESPACE.path() and outcome.reason == "AlreadyExists"), outcome

    def _queues(self, total: int) -> None:
        tenant = quota_writes.ensure_tenant(slug="acme", actor="test")
        project = quota_writes.ensure_project(tenant=tenant, slug="chat", actor="test")
        line = quota_writes.ensure_business_line(tenant=tenant, slug="research", actor="test")
        clusters.ensure_card_type(cluster=self.cluster, name=CARD, actor="test", resource="nvidia.com/gpu")
        self.cluster.card_types.update(hardware=total)
        for name, service_type, owner in (
            ("serve", "inference", {"project": project}),
            ("train", "training", {"business_line": line}),
        ):
            quota_writes.create_queue(
                cluster=self.cluster,
                name=name,
                service_type=service_type,
                card_quota={CARD: total},
                actor="test",
                **owner,
            )
            self.send(
                QUEUES,
                {
                    "apiVersion": QUEUE.group_version,
                    "kind": QUEUE.name,
                    "metadata": {
                        "name": name,
                        "annotations": {
                            "volcano.sh/card.quota": json.dumps({CARD: total}),
                            "tidesched.io/service-type": service_type,
                        },
                    },
                    "spec": {
                        "weight": 1,
                        "priority": 80000 if service_type == "inference" else 20000,
                        "reclaimable": service_type == "training",
                    },
                },
            )

    # -- what users do -----------------------------------------------------------------------------------------

    def train(self, name: str, *, pods: int, cards: int = 1) -> None:
        manifest = job(name, pods=pods, cards=cards, queue="train")
        manifest["spec"]["priorityClassName"] = "pc-low"
        self.send(JOB.path(NAMESPACE_NAME), manifest)

    def serve(self, name: str, *, replicas: int, cards: int = 1) -> None:
        manifest = deployment(name, replicas=replicas, cards=cards, queue="serve")
        manifest["spec"]["template"]["spec"]["priorityClassName"] = "pc-high"
        self.send(DEPLOYMENT.path(NAMESPACE_NAME), manifest)

    # -- what the cluster has ----------------------------------------------------------------------------------

    def pods(self, prefix: str = "") -> list[dict[str, Any]]:
        return [
            pod
            for pod in self.client.get(POD.path(NAMESPACE_NAME))["items"]
            if pod["metadata"]["name"].startswith(prefix)
        ]

    def group(self, name: str) -> dict[str, Any]:
        return self.client.get(POD_GROUP.path(NAMESPACE_NAME, name))

    def bound(self, prefix: str) -> int:
        return sum(1 for pod in self.pods(prefix) if pod["spec"].get("nodeName"))

    def running(self, prefix: str) -> int:
        return sum(
            1
            for pod in self.pods(prefix)
            if pod["status"]["phase"] == "Running" and "deletionTimestamp" not in pod["metadata"]
        )

    # -- sessions in this process ------------------------------------------------------------------------------

    def open(self, holder: str = "test") -> ClusterContext:
        """Take the lease and warm the cache."""
        held = lease.take(self.cluster.pk, holder)
        assert held is not None, "the lease is held"
        cluster = Cluster.objects.get(pk=self.cluster.pk)
        self._cache = ClusterCache(self.client, schedulers=cluster.schedulers)
        self._cache.start()
        assert self._cache.wait_synced(PATIENCE_SECONDS)
        self.context = ClusterContext(cluster, held, self.client, self._cache)
        self.context.load()
        return self.context

    def known(self, prefix: str) -> int:
        """How many pods the next session will see."""
        assert self._cache is not None
        return sum(1 for pod in self._cache.snapshot().pods if pod.name.startswith(prefix))

    def session(self, trigger: str = "test") -> Session:
        assert self.context is not None
        # Nothing renews it meanwhile, and on a busy machine a session may take longer than it lasts.
        with patch.object(timing, "LEASE_SECONDS", PATIENCE_SECONDS):
            lease.renew(self.context.lease)
        return session.run(self.context, trigger=trigger)

    def sessions_until(self, check: Callable[[], Any]) -> Any:
        """Run sessions until ``check()`` is true."""

        def step() -> Any:
            self.session()
            return check()

        return until(step, PATIENCE_SECONDS, story=self.told)

    def told(self) -> str:
        """What the tables say of the last sessions and of each gang."""
        sessions = Session.objects.order_by("-number").values_list("number", "state", "error")[:5]
        gangs = Gang.objects.order_by("id").values_list("name", "state", "gone_at", "reason_code")
        points = GangEvent.objects.order_by("id").values_list("gang_id", "kind", "reclaim_id", "detail")
        return "\n".join(map(str, (*sessions, *gangs, *points)))

    def settle(self, facts: Callable[[], Any]) -> Any:
        """Run sessions until one leaves ``facts()`` as they were: what the cluster had begun is over and recorded."""
        seen: list[Any] = [object()]

        def still() -> bool:
            seen.append(facts())
            return bool(seen[-1] == seen[-2])

        self.sessions_until(still)
        return seen[-1]

    def leave(self) -> None:
        """Give the lease back and forget what is warm: another process may go on."""
        assert self.context is not None
        assert self._cache is not None
        lease.release(self.context.lease)
        self._cache.stop()
        self.context, self._cache = None, None

    def close(self) -> None:
        if self.context is not None:
            lease.release(self.context.lease)
        if self._cache is not None:
            self._cache.stop()
        self.client.close()
