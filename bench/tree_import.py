"""W-import: a YAML file of 10,000 queues with their owners, cards and grants, by REST into a cluster that has none.

One request: the file is read, checked, compared with the tree, applied as one change with an audit entry for each
object, and the new tree is the answer. As processor time: that of the web process and of PostgreSQL together, which
work in turns.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from bench.clock import clock, collect_as_the_web_does, is_processor_time
from bench.persist import database

QUEUES, TENANTS, PROJECTS, CARDS, CARDS_OF_A_QUEUE = 10_000, 50, 4, 20, 4
# One change edits at most 20,000 objects: queues, tenants, projects and nearly a grant for each queue.
GRANTS = 9_500
_TICK = os.sysconf("SC_CLK_TCK")


def large_import() -> Callable[[], float]:
    """Seconds for one import; a cluster of its own each time."""
    client, text, count = _administrator(), tree_text(), iter(range(1, 1_000_000))
    assert client.get("/api/v1/").status_code == 200  # all code is loaded
    collect_as_the_web_does()

    def measure() -> float:
        from tidesched_web.audit.models import AuditEntry
        from tidesched_web.audit.services import cluster_chain
        from tidesched_web.quota.models import CardQuota, NamespaceGrant, Queue

        cluster = _empty_cluster(f"import-{next(count)}")
        place = f"/api/v1/clusters/{cluster.pk}/tree/"
        etag = client.get(place)["ETag"]
        body = {"file": text, "keep": True, "reason": "bench"}
        of_database, start = _database_seconds(), clock()
        answer = client.post(place, body, content_type="application/json", headers={"If-Match": etag})
        taken = clock() - start
        if is_processor_time():
            taken += _database_seconds() - of_database
        assert answer.status_code == 200, answer.content[:2000]
        assert len(answer.json()["queues"]) == QUEUES
        rows = [model.objects.filter(cluster=cluster).count() for model in (Queue, CardQuota, NamespaceGrant)]
        assert rows == [QUEUES, QUEUES * CARDS_OF_A_QUEUE + TENANTS * CARDS, GRANTS], rows
        assert AuditEntry.objects.filter(chain=cluster_chain(cluster.pk)).count() > QUEUES + GRANTS
        return taken

    return measure


def tree_text() -> str:
    """The file: tenants with a ceiling, their projects, queues of inference, and who may use them."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    cards = [f"NVIDIA-C{number:02}" for number in range(CARDS)]
    ceiling = ", ".join(f"{card}: 1000000" for card in cards)
    yield "format: 1"
    yield "tenants:"
    for tenant in range(TENANTS):
        yield f"  import-t{tenant}:"
        yield f"    name: Import {tenant}"
        yield f"    quota: {{inference: {{card_quota: {{{ceiling}}}}}}}"
    yield "projects:"
    for tenant in range(TENANTS):
        for project in range(PROJECTS):
            yield f"  import-t{tenant}/p{project}: {{name: Project {project}}}"
    yield "queues:"
    for number in range(QUEUES):
        tenant, project = number % TENANTS, number // TENANTS % PROJECTS
        quota = ", ".join(f"{cards[(number + step) % CARDS]}: 8" for step in range(0, 5 * CARDS_OF_A_QUEUE, 5))
        yield f"  q{number:05}:"
        yield "    service_type: inference"
        yield f"    tenant: import-t{tenant}"
        yield f"    project: p{project}"
        yield "    weight: 2"
        yield f"    card_quota: {{{quota}}}"
        yield "    cpu_milli: 64000"
        yield "    memory_bytes: 549755813888"
    yield "grants:"
    for number in range(GRANTS):
        yield f"  team-{number % TENANTS}/q{number:05}: {{}}"


@cache
def _administrator() -> Any:
    database()
    from django.conf import settings
    from django.test import Client

    from tidesched_web.accounts.models import PlatformRole, User

    settings.ALLOWED_HOSTS = ["*"]
    client = Client()
    client.force_login(User.objects.create(username="bench-import", platform_role=PlatformRole.ADMIN))
    return client


def _empty_cluster(name: str) -> Any:
    from django.utils import timezone

    from tidesched_web.clusters.models import CardType, Cluster
    from tidesched_web.quota.models import QuotaTree

    cluster = Cluster.objects.create(name=name, slug=name, api_url="https://10.0.0.1", mode="quota")
    QuotaTree.objects.create(cluster=cluster)
    CardType.objects.bulk_create(
        CardType(cluster=cluster, name=f"NVIDIA-C{number:02}", hardware=10**8, last_seen_at=timezone.now())
        for number in range(CARDS)
    )
    return cluster


def _database_seconds() -> float:
    """Processor time of all processes of PostgreSQL so far."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SELECT pid FROM pg_stat_activity")
        pids = [pid for (pid,) in cursor.fetchall()]
    return sum(_spent(Path(f"/proc/{pid}/stat")) for pid in pids)


def _spent(path: Path) -> float:
    try:
        fields = path.read_text().rpartition(")")[2].split()
    except OSError:  # it has ended since
        return 0.0
    return sum(int(field) for field in fields[11:13]) / _TICK
