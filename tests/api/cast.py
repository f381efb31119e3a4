"""The cast of the API tests and the world that they look at.

Tenant *acme* (its admin is the owner, the teammate a member) and tenant *rival* share cluster *east*; tenant *far*,
where the stranger belongs, has cluster *west* alone. One of acme's inference gangs reclaims from
rival and from acme itself.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field
from typing import Any

import orjson
from django.test import Client
from django.utils import timezone

from tests import quota_writes
from tidesched_web.accounts import services as accounts
from tidesched_web.accounts.models import ApiToken, PlatformRole, Tenant, User
from tidesched_web.clusters import services as clusters
from tidesched_web.clusters.models import CardType, Cluster, Node, PolicyRevision
from tidesched_web.quota.models import NamespaceGrant, Queue
from tidesched_web.scheduling.models import (
    Decision,
    QueueUsage,
    Reclaim,
    ReclaimVictim,
    Session,
    UsageChange,
)
from tidesched_web.workloads.models import Gang, GangEvent, GangPod

H200, A100 = "NVIDIA-H200", "NVIDIA-A100"
NOON = dt.datetime(2026, 3, 1, 12, tzinfo=dt.UTC)
CREDENTIALS = "the-secret-token-of-east"


class ApiClient(Client):
    """A client that calls as one of the cast, by session or by token."""

    def __init__(self, user: User | None = None, token: str = "") -> None:
        headers = {"Authorization": f"Bearer {token}"} if token else None
        super().__init__(headers=headers, raise_request_exception=False)
        if user is not None:
            self.force_login(user)

    def read(self, path: str, **query: Any) -> Any:
        """The body of a GET that has to succeed."""
        response = self.get(f"/api/v1/{path}", query)
        assert response.status_code == 200, response.content
        return response.json()

    def send(self, path: str, body: Any = None, **headers: str) -> Any:
        """POST a JSON body."""
        named = {f"HTTP_{name.upper()}": value for name, value in headers.items()}
        return self.post(f"/api/v1/{path}", orjson.dumps(body or {}), content_type="application/json", **named)

    def change(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        """PATCH, PUT or DELETE with a JSON body; `If_Match="*"` and the like as headers."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        address = path if "/api/v1/" in path else f"/api/v1/{path}"
        return self.generic(method, address, orjson.dumps(body or {}), "application/json", headers=named)


@dataclass
class World:
    """Everything that the tests name."""

    users: dict[str, User] = field(default_factory=dict)
    tenants: dict[str, Tenant] = field(default_factory=dict)
    clusters: dict[str, Cluster] = field(default_factory=dict)
    queues: dict[str, Queue] = field(default_factory=dict)
    gangs: dict[str, Gang] = field(default_factory=dict)
    session: Session = None  # type: ignore[assignment]  # filled by the cast
    grant: NamespaceGrant = None  # type: ignore[assignment]  # filled by the cast
    reclaim: Reclaim = None  # type: ignore[assignment]  # filled by the cast

    def client(self, name: str) -> ApiClient:
        """A client for a name of the cast; ``token:<scope>`` calls as the owner through a token of that scope."""
        if name == "anonymous":
            return ApiClient()
        if name.startswith("token:"):
            return ApiClient(token=self.token("owner", name.removeprefix("token:")))
        return ApiClient(self.users[name])

    def token(self, user: str, *scopes: str, tenant: str | None = None) -> str:
        """The text of a new token."""
        limit = self.tenants[tenant] if tenant else None
        return accounts.create_token(user=self.users[user], scopes=scopes, tenant=limit, actor="tests")[1]


def build() -> World:
    """The world, through the services where they exist."""
    world = World()
    for name, role in (
        ("admin", PlatformRole.ADMIN),
        ("auditor", PlatformRole.AUDITOR),
        ("owner", ""),
        ("teammate", ""),
        ("stranger", ""),
        ("rival", ""),
    ):
        world.users[name] = accounts.create_user(username=name, password=None, platform_role=role, actor="tests")
    for slug in ("acme", "rival", "far"):
        world.tenants[slug] = quota_writes.ensure_tenant(slug=slug, actor="tests")
    for user, tenant, role in (
        ("owner", "acme", "admin"),
        ("teammate", "acme", "member"),
        ("rival", "rival", "member"),
        ("stranger", "far", "admin"),
    ):
        accounts.set_membership(user=world.users[user], tenant=world.tenants[tenant], role=role, actor="tests")
    for slug in ("east", "west"):
        _cluster(world, slug)
    _queues(world)
    for namespace, queue in (("acme", "acme-online"), ("rival", "rival-online")):
        quota_writes.ensure_grant(queue=world.queues[queue], namespace=namespace, actor="tests")
    world.grant = NamespaceGrant.objects.get(namespace="acme")
    _gangs(world)
    _sessions(world)
    _usage(world)
    return world


def _cluster(world: World, slug: str) -> None:
    cluster = clusters.create(
        name=slug.title(), slug=slug, api_url=f"https://{slug}.invalid:6443", token=CREDENTIALS, actor="tests",
        clock_rate=144.0, clock_anchor=NOON, clock_wall_anchor=timezone.now(),
    )  # fmt: skip
    world.clusters[slug] = cluster
    for card, count in ((H200, 16), (A100, 8)):
        CardType.objects.create(
            cluster=cluster, name=card, resource="nvidia.com/gpu", hardware=count, last_seen_at=timezone.now()
        )
    for index in range(2):
        Node.objects.create(
            cluster=cluster, name=f"{slug}-{index}", cpu_milli=64_000, memory_mib=512 * 1024, cards={H200: 8},
            labels={"zone": "a"}, last_seen_at=timezone.now(),
        )  # fmt: skip
    PolicyRevision.objects.create(
        cluster=cluster, number=1, text='actions: "enqueue, allocate, reclaim"\n', valid=True, created_by="tests"
    )
    quota_writes.ensure_default_priority_classes(cluster=cluster, actor="tests")


def _queues(world: World) -> None:
    for tenant, cluster in (("acme", "east"), ("rival", "east"), ("far", "west")):
        owner, where = world.tenants[tenant], world.clusters[cluster]
        project = quota_writes.ensure_project(tenant=owner, slug=f"{tenant}-chat", actor="tests")
        line = quota_writes.ensure_business_line(tenant=owner, slug=f"{tenant}-research", actor="tests")
        quota_writes.set_card_quota(
            cluster=where, owner=owner, service_type="inference", cards={H200: 8, A100: 2}, actor="tests"
        )
        world.queues[f"{tenant}-online"] = quota_writes.create_queue(
            cluster=where, name=f"{tenant}-online", service_type="inference", project=project,
            card_quota={H200: 6, A100: 1}, cpu_milli=32_000, memory_mib=1024, actor="tests",
        )  # fmt: skip
        world.queues[f"{tenant}-train"] = quota_writes.create_queue(
            cluster=where, name=f"{tenant}-train", service_type="training", business_line=line,
            card_quota={H200: 8}, actor="tests",
        )  # fmt: skip


def _gangs(world: World) -> None:
    for index, (name, queue) in enumerate(
        (("web", "acme-online"), ("fit", "acme-train"), ("tune", "rival-train"), ("remote", "far-train"))
    ):
        owner = world.queues[queue]
        waits = name in ("web", "fit")
        holders = [
            {"gang": "rival/tune", "queue": "rival-train", "amount": 4.0},
            {"gang": "acme/fit", "queue": "acme-train", "amount": 2.0},
        ]
        gang = Gang.objects.create(
            cluster=owner.cluster, namespace=queue.partition("-")[0], name=name, uid=f"uid-{index}", queue=owner,
            queue_name=owner.name, service_type=owner.service_type, priority=80000, min_member=2,
            ready=0 if waits else 2,
            phase="Pending" if waits else "Running", state="waiting" if waits else "running", needs=waits,
            cards={H200: 4}, position=1 if waits else None, waiting_since=NOON, submitted_at=NOON,
            seen_at=timezone.now(),
            reason_code="WaitingForCards" if waits else "",
            reason_numbers={"resource": H200, "requested": 4.0, "free": 0.0, "holders": holders} if waits else {},
            reason_message="4 cards are asked for; rival/tune in rival-train holds 4." if waits else "",
        )  # fmt: skip
        world.gangs[name] = gang
        for member in range(2):
            GangPod.objects.create(
                gang=gang, name=f"{name}-{member}", uid=f"{name}-{member}", phase="Pending", card=H200, card_milli=2000
            )
        for kind in ("submitted", "reason"):
            GangEvent.objects.create(gang=gang, kind=kind, at=NOON, wall_at=timezone.now())


def _sessions(world: World) -> None:
    east = world.clusters["east"]
    for number in range(1, 6):
        world.session = Session.objects.create(
            cluster=east, number=number, epoch=1, state="done", mode="schedule", now=NOON, started_at=timezone.now(),
            engine_version="1", result_hash="0" * 64, timings_ms={"reclaim": 1.5}, counts={"binds": 1},
            policy=east.policies.first(), error="rival/tune broke something",
        )  # fmt: skip
    for gang in ("acme/web", "rival/tune"):
        Decision.objects.create(
            at=timezone.now(), cluster=east, session=world.session, epoch=1, kind="evict", state="done", gang=gang,
            target=f"{gang}-0",
        )  # fmt: skip
    amount = {"cpu_milli": 1000, "memory_bytes": 2**30, "cards": {H200: 4}}
    world.reclaim = Reclaim.objects.create(
        cluster=east, session=world.session, at=NOON, wall_at=timezone.now(), action="reclaim", state="done",
        reclaimer="acme/web", queue=world.queues["acme-online"], queue_name="acme-online", needed=amount, freed=amount,
        rule="inference takes from training", votes=[{"tier": 1, "plugin": "capacity-card", "vote": "permit"}],
        refused=[{"gang": "acme/fit", "rule": "higher priority"}, {"gang": "rival/other", "rule": "higher priority"}],
        work_lost_card_seconds=40.0,
    )  # fmt: skip
    for gang, queue in (("rival/tune", "rival-train"), ("acme/old", "acme-train")):
        ReclaimVictim.objects.create(
            reclaim=world.reclaim, gang=gang, queue=world.queues[queue], queue_name=queue, pods=[f"{gang}-0"],
            cards={H200: 2}, work_lost_card_seconds=20.0,
        )  # fmt: skip


def _usage(world: World) -> None:
    """acme-train holds 6 H200 and rival-train 4; 12 of 16 are promised to inference, so 6 of the 10 are borrowed."""
    for queue, limit, allocated in (
        ("acme-train", 8000, 6000), ("rival-train", 8000, 4000), ("acme-online", 12_000, 1500)
    ):  # fmt: skip
        row = world.queues[queue]
        QueueUsage.objects.create(
            queue=row, card=H200, at=NOON, quota=limit, allocated=allocated, inqueue=1000, elastic=500
        )
        for hours, part in ((-30, 2), (-2, 1)):
            UsageChange.objects.create(
                wall_at=timezone.now(), at=NOON + dt.timedelta(hours=hours), cluster=row.cluster, queue=row, card=H200,
                quota=8000, allocated=allocated // part, inqueue=1000, elastic=500,
            )  # fmt: skip


def live_tokens(user: User) -> int:
    """How many tokens of a user are alive."""
    return ApiToken.objects.filter(ApiToken.LIVE, user=user).count()
