"""W1 to W6: lists at any depth, a gang, queues with their use, the overview and pages, with 100,000 pods stored.

Every measure also counts its queries: more than six is a failure, whatever the time.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from bench.clock import clock, collect_as_the_web_does
from bench.persist import database

GANGS, PODS, QUEUES, TENANTS = 12_500, 8, 500, 50
MAX_QUERIES = 6
START = dt.datetime(2026, 3, 1, tzinfo=dt.UTC)


@cache
def _world() -> tuple[Any, int]:
    """A client of a platform admin, and the id of a gang in the middle; the cluster is called ``lists``."""
    database()
    from django.conf import settings
    from django.db import connection
    from django.test import Client
    from django.utils import timezone

    from tidesched_web.accounts.models import PlatformRole, Project, Tenant, User
    from tidesched_web.clusters.models import CardType, Cluster
    from tidesched_web.quota.models import CardQuota, Queue, QuotaTree
    from tidesched_web.scheduling.models import QueueUsage, TidePoint
    from tidesched_web.workloads.models import Gang, GangPod

    now = timezone.now()
    cluster = Cluster.objects.create(name="lists", slug="lists", api_url="https://10.0.0.2")
    QuotaTree.objects.create(cluster=cluster)
    card = CardType.objects.create(cluster=cluster, name="NVIDIA-H200", hardware=10**6, last_seen_at=now)
    tenants = Tenant.objects.bulk_create(Tenant(slug=f"lists-{n}", name=f"Tenant {n}") for n in range(TENANTS))
    projects = Project.objects.bulk_create(Project(tenant=tenant, slug="p", name="P") for tenant in tenants)
    queues = Queue.objects.bulk_create(
        Queue(cluster=cluster, name=f"q-{n:04}", service_type="inference", tenant_id=row.tenant_id, project=row)
        for n in range(QUEUES)
        for row in (projects[n % TENANTS],)
    )
    CardQuota.objects.bulk_create(
        CardQuota(cluster=cluster, card_type=card, service_type="inference", queue=queue, cards=64) for queue in queues
    )
    QueueUsage.objects.bulk_create(
        QueueUsage(queue=queue, card=card.name, at=now, quota=64000, allocated=8000, inqueue=0, elastic=0)
        for queue in queues
    )
    TidePoint.objects.bulk_create(_two_days(cluster, card.name, now))
    gangs = Gang.objects.bulk_create(_gangs(cluster, queues, now), batch_size=2000)
    GangPod.objects.bulk_create(
        (
            GangPod(gang=gang, name=f"{gang.name}-{n}", uid=f"{gang.uid}-{n}", phase="Running", card=card.name)
            for gang in gangs
            for n in range(PODS)
        ),
        batch_size=5000,
    )
    _set_up(cluster, queues[0].name, now)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    settings.ALLOWED_HOSTS = ["*"]
    client = Client()
    client.force_login(User.objects.create(username="bench-lists", platform_role=PlatformRole.ADMIN))
    return client, gangs[GANGS // 2].pk


def _set_up(cluster: Any, queue: str, now: dt.datetime) -> None:
    """A policy, a session, a first push and all decided on here: a cluster that runs, without first steps to show."""
    from tidesched_web.clusters.models import PolicyRevision
    from tidesched_web.quota.models import DriftLook, PushedObject
    from tidesched_web.scheduling.models import Session, SessionState

    policy = PolicyRevision.objects.create(
        cluster=cluster, number=1, text="actions: allocate", valid=True, created_by="bench", released_at=now
    )
    moments = dict.fromkeys(("now", "started_at", "decided_at", "finished_at"), now)
    Session.objects.create(
        cluster=cluster, number=1, epoch=0, state=SessionState.DONE, mode=cluster.mode, policy=policy, **moments
    )
    PushedObject.objects.create(cluster=cluster, kind="Queue", name=queue, pushed_at=now)
    DriftLook.objects.create(cluster=cluster, looked_at=now)


def _two_days(cluster: Any, card: str, now: dt.datetime) -> Iterator[Any]:
    """Where the cards were, a point every five minutes."""
    from tidesched_web.scheduling.models import TidePoint

    for n in range(2 * 24 * 12):
        at, busy = now - dt.timedelta(minutes=5 * n), n % 288 * 1000
        figures = {"total": 600_000, "inference": busy, "training": 300_000, "idle": 300_000 - busy, "waiting": busy}
        yield TidePoint(cluster=cluster, at=at, wall_at=at, card=card, borrowed=busy // 2, foreign=0, **figures)


def _gangs(cluster: Any, queues: list[Any], now: dt.datetime) -> Iterator[Any]:
    from tidesched_web.workloads.models import Gang

    for n in range(GANGS):
        queue, waits = queues[n % QUEUES], n % 10 == 0
        yield Gang(
            cluster=cluster,
            namespace=f"team-{n % TENANTS}",
            name=f"gang-{n:05}",
            uid=f"uid-{n}",
            queue=queue,
            queue_name=queue.name,
            service_type=queue.service_type,
            priority=80000,
            min_member=PODS,
            ready=0 if waits else PODS,
            phase="Pending" if waits else "Running",
            state="waiting" if waits else "running",
            needs=waits,
            cards={"NVIDIA-H200": PODS},
            reason_code="WaitingForCards" if waits else "",
            submitted_at=START + dt.timedelta(seconds=n),
            waiting_since=START if waits else None,
            started_at=None if waits else START,
            seen_at=now,
        )


def _measured(address: Callable[[Any, int], str]) -> Callable[[], Callable[[], float]]:
    def prepare() -> Callable[[], float]:
        client, gang = _world()
        path = address(client, gang)
        client.get(path)
        collect_as_the_web_does()

        def measure() -> float:
            from django.db import connection
            from django.test.utils import CaptureQueriesContext

            start = clock()
            answer = client.get(path)
            taken = clock() - start
            assert answer.status_code == 200, path
            with CaptureQueriesContext(connection) as queries:
                client.get(path)
            assert len(queries) <= MAX_QUERIES, f"{path}: {len(queries)} queries"
            return taken

        return measure

    return prepare


def _deep(client: Any, pages: int = 90) -> str:
    """The address of a page far down a list: cursors are followed, as a reader of the whole would."""
    path = "/api/v1/gangs/?cluster=lists&limit=100"
    for _page in range(pages):
        path = client.get(path).json()["next"].partition("testserver")[2]
    return path


first_page = _measured(lambda _client, _gang: "/api/v1/gangs/?cluster=lists&limit=100")
deep_page = _measured(lambda client, _gang: _deep(client))
filtered = _measured(lambda _client, _gang: "/api/v1/gangs/?cluster=lists&state=waiting&queue=q-0040&limit=100")
gang_detail = _measured(lambda _client, gang: f"/api/v1/gangs/{gang}/")
queues_with_use = _measured(lambda _client, _gang: "/api/v1/queues/?cluster=lists&limit=100")
overview_data = _measured(lambda _client, _gang: "/clusters/lists/tide/")
overview_page = _measured(lambda _client, _gang: "/clusters/lists/")
gangs_page = _measured(lambda _client, _gang: "/clusters/lists/gangs/?order=waiting")
tenants_page = _measured(lambda _client, _gang: "/tenants/")
