"""A living installation on a real API server: the session thread and its heartbeat, behind a proxy that spoils."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

from tests import quota_writes
from tests.cluster.objects import CARD, deployment, job
from tests.kube.fault_proxy import FaultProxy
from tests.kube.real_server import RealServer
from tests.kube.shared import stand_aside, stand_by
from tests.waiting import until
from tests.web.pipeline.stage import NAMESPACE_NAME, Stage
from tests.web.pipeline.test_watching import Holder
from tidesched_web.clusters.kubernetes.client import KubernetesClient
from tidesched_web.clusters.kubernetes.paths import DEPLOYMENT, JOB, LEASE, POD, POD_GROUP, QUEUE
from tidesched_web.clusters.kubernetes.verbs import LEASE_NAME, LEASE_NAMESPACE
from tidesched_web.console.alert_words import alert_sentence
from tidesched_web.quota.models import Queue
from tidesched_web.quota.services import push
from tidesched_web.scheduling.models import Alert, Session


class Living:
    """``direct`` asks the server past the proxy."""

    def __init__(self, server: RealServer, proxy: FaultProxy, *, nodes: int = 2, period: float = 0.3) -> None:
        stand_aside()
        server.clear()
        stand_by(server, grace=0.3)
        self.server, self.proxy = server, proxy
        self.stage = Stage(proxy, nodes=nodes, period=period)
        self.direct: KubernetesClient = server.client()
        for name in ("serve", "train"):
            assert self.direct.send("DELETE", QUEUE.path(name=name)).done
        push.push_cluster(cluster=self.stage.cluster, everything=True)
        self.holder = Holder(self.stage)
        until(lambda: Session.objects.filter(state="done").exists())

    def close(self) -> None:
        self.proxy.heal()
        self.holder.stop()
        self.stage.close()
        self.direct.close()
        stand_aside()

    # -- what users do -----------------------------------------------------------------------------------------

    def train(self, name: str, pods: int) -> None:
        manifest = job(name, pods=pods, queue="train")
        manifest["spec"]["priorityClassName"] = "pc-low"
        assert self.direct.send("POST", JOB.path(NAMESPACE_NAME), manifest).done

    def serve(self, name: str, replicas: int) -> None:
        manifest = deployment(name, replicas=replicas, queue="serve")
        manifest["spec"]["template"]["spec"]["priorityClassName"] = "pc-high"
        assert self.direct.send("POST", DEPLOYMENT.path(NAMESPACE_NAME), manifest).done

    def end(self, name: str) -> None:
        for kind in (JOB, DEPLOYMENT):
            self.direct.send("DELETE", kind.path(NAMESPACE_NAME, name))
        until(lambda: not self.pods(name))

    def approve(self, queue: str, cards: int) -> None:
        row = Queue.objects.get(name=queue)
        quota_writes.set_card_quota(cluster=self.stage.cluster, owner=row, cards={CARD: cards}, actor="test")

    # -- what there is -----------------------------------------------------------------------------------------

    def pods(self, name: str) -> list[dict[str, Any]]:
        found = self.direct.get(POD.path(NAMESPACE_NAME))["items"]
        return [pod for pod in found if pod["metadata"]["name"].startswith(f"{name}-")]

    def bound(self, name: str) -> int:
        return sum(1 for pod in self.pods(name) if pod["spec"].get("nodeName"))

    def running(self, name: str) -> int:
        return sum(1 for pod in self.pods(name) if pod["status"]["phase"] == "Running")

    def group(self, name: str) -> dict[str, Any]:
        groups = self.direct.get(POD_GROUP.path(NAMESPACE_NAME))["items"]
        return next((one for one in groups if one["metadata"]["name"].startswith(f"{name}-")), {})

    def quota(self, queue: str) -> int:
        notes = self.direct.get(QUEUE.path(name=queue))["metadata"]["annotations"]
        return int(json.loads(notes["volcano.sh/card.quota"])[CARD])

    def lease_version(self) -> str:
        return str(self.direct.get(LEASE.path(LEASE_NAMESPACE, LEASE_NAME))["metadata"]["resourceVersion"])

    def cached(self) -> set[str]:
        context = self.holder.shard._context
        return {pod.key for pod in context.cache.snapshot().pods} if context is not None else set()

    def listed(self) -> set[str]:
        found = self.direct.get(POD.path())["items"]
        return {f"{pod['metadata']['namespace']}/{pod['metadata']['name']}" for pod in found}

    def bound_twice(self) -> list[str]:
        done = Counter(
            path
            for method, path, code in self.proxy.requests
            if method == "POST" and path.partition("?")[0].endswith("/binding") and 200 <= code < 300
        )
        return [path for path, count in done.items() if count > 1]

    def alerts(self) -> dict[str, str]:
        rows = Alert.objects.filter(resolved_at__isnull=True)
        return {row.code: alert_sentence(row.code, row.numbers, row.message, everything=True) for row in rows}

    def story(self) -> str:
        context, last = self.holder.shard._context, Session.objects.order_by("-id").first()
        lease = context.installation_lease.__dict__ if context is not None else None
        alive = self.holder.shard.is_alive()
        pods = f"cached {sorted(self.cached())}, listed {sorted(self.listed())}"
        return f"{pods}\n{self.alerts()}\n{last and (last.number, last.state, last.counts)}\nalive {alive}\n{lease}"

    def alert(self, code: str, *words: str) -> Callable[[], bool]:
        return lambda: code in self.alerts() and all(word in self.alerts().get(code, "") for word in words)
