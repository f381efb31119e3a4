"""Audited writes: eight writers at once edit quotas of one cluster; each write is checked, applied and chained."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from bench.persist import database

WRITERS, EACH, QUEUES, CARDS = 8, 5, 40, 8


def audited_writes() -> Callable[[], float]:
    """Seconds for one write while eight writers work on the same tree, durable commits."""
    database()
    from django.db import connections
    from django.utils import timezone

    from tidesched_web.audit.models import AuditEntry
    from tidesched_web.changes import services as changes
    from tidesched_web.clusters.models import CardType, Cluster
    from tidesched_web.common.permissions import Access

    access = Access(actor="bench", everything=True, administers=True)
    cluster = Cluster.objects.create(name="writes", slug="writes", api_url="https://10.0.0.1")
    cards = [f"CARD-{number}" for number in range(CARDS)]
    for card in cards:
        CardType.objects.create(cluster=cluster, name=card, hardware=10**6, last_seen_at=timezone.now())
    quota = dict.fromkeys(cards, 8)
    owner = {"service_type": "inference", "tenant": "bench", "project": "bench"}
    made = {f"queue/q{number}": {**owner, "card_quota": quota} for number in range(QUEUES)}
    changes.carry_out(
        cluster=cluster, edits={"tenant/bench": {}, "project/bench/bench": {}, **made}, access=access, reason="bench"
    )
    count = iter(range(1, 10**9))

    def measure() -> float:
        start, failures = threading.Barrier(WRITERS + 1), []
        rounds = [next(count) for _ in range(WRITERS)]

        def write(writer: int) -> None:
            try:
                start.wait()
                for number in range(EACH):
                    edits = {f"queue/q{writer}": {"card_quota": {cards[number]: 9 + rounds[writer] % 1000}}}
                    changes.carry_out(cluster=cluster, edits=edits, access=access, reason="bench")
            except Exception as error:  # noqa: BLE001 - asserted below
                failures.append(error)
            finally:
                connections.close_all()

        known = AuditEntry.objects.count()
        threads = [threading.Thread(target=write, args=(writer,)) for writer in range(WRITERS)]
        for thread in threads:
            thread.start()
        start.wait()
        begun = time.perf_counter()
        for thread in threads:
            thread.join()
        taken = time.perf_counter() - begun
        assert not failures, failures
        assert AuditEntry.objects.count() == known + 2 * WRITERS * EACH  # the queue's and the change's own
        return taken / (WRITERS * EACH)

    return measure
