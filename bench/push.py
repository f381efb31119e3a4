"""The push of five thousand queues. W-push: all stand as they should. `python -m bench.push`: to a real API server.

The second pushes them where none is, then with a change of each, then of one in a hundred, then of none.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.persist import database

QUEUES, CARDS = 5_000, 8


def unchanged_push() -> Callable[[], float]:
    """Seconds for a push of all queues to a cluster that has them already; a write would be an error."""
    database()
    from tidesched_web.quota.services.push import push_cluster

    cluster = _ground("push", "https://10.0.0.1")
    client: Any = _Shows(cluster)
    # The rows learn that they are in step, once.
    assert push_cluster(cluster=cluster, everything=True, client=client).written == 0

    def measure() -> float:
        begun = time.perf_counter()
        report = push_cluster(cluster=cluster, everything=True, client=client)
        taken = time.perf_counter() - begun
        assert (report.pushed, report.written) == (QUEUES, 0), report
        return taken

    return measure


class _Shows:
    """In place of a client: lists the queues as they were applied, and refuses every write."""

    def __init__(self, cluster: Any) -> None:
        from tidesched_web.quota.manifest import queue_manifest
        from tidesched_web.quota.models import Queue
        from tidesched_web.quota.selectors import queue_grants, with_card_quota
        from tidesched_web.simcluster.field_ownership import apply

        rows = with_card_quota(Queue.objects.filter(cluster=cluster)).annotate(granted=queue_grants())
        rows = rows.select_related("tenant", "project", "business_line")
        now = "2026-01-01T00:00:00Z"
        self._items = [apply(None, dict(queue_manifest(row)), "tidesched", now, force=False) for row in rows]
        for row, item in zip(rows, self._items, strict=True):
            item["metadata"] |= {"name": row.name, "resourceVersion": "1"}

    def serves(self, group_version: str, resource: str) -> bool:
        return False

    def get(self, path: str, query: dict[str, Any]) -> dict[str, Any]:
        begin, limit = int(query.get("continue") or 0), int(query["limit"])
        more = str(begin + limit) if begin + limit < len(self._items) else ""
        return {"items": self._items[begin : begin + limit], "metadata": {"continue": more}}

    def send(self, method: str, path: str, *_: Any, **__: Any) -> None:
        raise AssertionError(f"{method} {path}: a push without changes writes nothing")


def _ground(name: str, url: str, **more: Any) -> Any:
    """A cluster with ``QUEUES`` queues of ``CARDS`` cards each."""
    from django.utils import timezone

    from tidesched_web.accounts.models import BusinessLine, Tenant
    from tidesched_web.clusters.models import CardType, Cluster
    from tidesched_web.quota.models import CardQuota, Queue

    cluster = Cluster.objects.create(name=name, slug=name, api_url=url, mode="quota", **more)
    tenant = Tenant.objects.create(slug=f"tenant-{name}", name=f"tenant {name}")
    line = BusinessLine.objects.create(tenant=tenant, slug="research", name="research")
    cards = [
        CardType.objects.create(cluster=cluster, name=f"CARD-{number}", hardware=10**6, last_seen_at=timezone.now())
        for number in range(CARDS)
    ]
    queues = Queue.objects.bulk_create(
        Queue(cluster=cluster, name=f"q{number:05}", service_type="training", tenant=tenant, business_line=line)
        for number in range(QUEUES)
    )
    CardQuota.objects.bulk_create(
        CardQuota(cluster=cluster, card_type=card, service_type="training", queue=queue, cards=8)
        for queue in queues
        for card in cards
    )
    return cluster


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(prog="python -m bench.push", description=__doc__)
    parser.parse_args()
    database()
    from django.db.models import F

    from tests.kube.binaries import find_or_build, kubernetes_version
    from tests.kube.real_server import RealServer
    from tidesched_web.quota.models import Queue
    from tidesched_web.quota.services.push import push_cluster

    with tempfile.TemporaryDirectory(prefix="tidesched-bench-") as folder:
        server = RealServer(Path(folder), find_or_build())
        try:
            server.start()
            cluster, client = _ground("real", server.url), server.client()
            print(f"kube-apiserver {kubernetes_version()}, {QUEUES} queues of {CARDS} cards; seconds")
            columns = ("wall", "client CPU", "server CPU", "etcd CPU", "written", "target")
            print(f"{'push':10}" + "".join(f"{column:>12}" for column in columns))
            rows = Queue.objects.filter(cluster=cluster)
            last = f"q{QUEUES // 100:05}"
            steps = (("first", rows.none()), ("all", rows), ("1 %", rows.filter(name__lt=last)), ("none", rows.none()))
            for name, changed in steps:
                changed.update(weight=F("weight") + 1, version=F("version") + 1, sync_state="pending")
                before, cpu, begun = server.cpu_seconds(), time.process_time(), time.perf_counter()
                report = push_cluster(cluster=cluster, everything=True, client=client)
                wall, own, after = time.perf_counter() - begun, time.process_time() - cpu, server.cpu_seconds()
                assert not report.refused, list(report.refused.items())[:3]
                assert not report.unreachable, report.unreachable
                taken = [wall, own, *(after[one] - before[one] for one in ("kube-apiserver", "etcd"))]
                print(f"{name:10}" + "".join(f"{one:>12.2f}" for one in taken) + f"{report.written:>12}{'10.00':>12}")
        finally:
            server.stop()


if __name__ == "__main__":
    main()
