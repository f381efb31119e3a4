"""A cluster in full tide for the console's tests: six tenants, their queues, gangs of every state, reclaims, two days.

Numbers agree with each other as a session would leave them: pods lie on the cards of nodes, usage is their sum, waiting
gangs carry reasons with holders.
"""

from __future__ import annotations

import datetime as dt
import random

from django.utils import timezone

from tests.web.console import world_gangs, world_history, world_jobs
from tests.web.console.cast import (
    A100,
    H200,
    HARDWARE,
    L40S,
    MIG,
    MPS,
    RTX,
    TENANTS,
    World,
    empty_cluster,
    people,
)
from tidesched_web.accounts.models import BusinessLine, Membership, Project, Tenant
from tidesched_web.clusters.models import CardKind, CardType, Cluster, ClusterMode, Node, PolicyRevision
from tidesched_web.quota.models import CardQuota, PriorityClass, PushedObject, Queue, QueueState, SyncState
from tidesched_web.scheduling.models import (
    Alert,
    AlertSeverity,
    Session,
    SessionState,
)


def full() -> World:
    """The whole story."""
    draw = random.Random(7)
    wall = timezone.now()
    now = dt.datetime(2026, 3, 4, 20, 15, tzinfo=dt.UTC)
    admin, auditor, member, stranger, newcomer = people()
    cluster = empty_cluster(clock_rate=1.0, clock_anchor=now, clock_wall_anchor=wall)
    world = World(cluster, admin, auditor, member, stranger, newcomer)
    tenants = {slug: Tenant.objects.create(slug=slug, name=name) for slug, name in TENANTS}
    Membership.objects.create(user=member, tenant=tenants["search"])
    Membership.objects.create(user=stranger, tenant=tenants["research"])
    types = _card_types(cluster)
    for name, value in (("pc-high", 80000), ("pc-medium", 60000), ("pc-normal", 40000), ("pc-low", 20000)):
        PriorityClass.objects.create(cluster=cluster, name=name, value=value)
    nodes = _nodes(cluster, wall)
    policy = PolicyRevision.objects.create(
        cluster=cluster,
        number=1,
        text="actions: enqueue, allocate, backfill, reclaim",
        valid=True,
        created_by="admin",
        released_at=wall,
    )
    world.sessions = _sessions(cluster, policy, draw, now, wall)
    _queues(world, tenants, types)
    world_gangs.gangs(world, nodes, draw, now, wall)
    world_history.reclaims(world, draw, now, wall)
    world_history.tide(cluster, now, wall, draw)
    world_history.usage(world, now, wall, draw)
    world_jobs.jobs(admin, cluster)
    Alert.objects.create(
        cluster=cluster,
        key="hardware:L40S",
        severity=AlertSeverity.WARNING,
        code="quota_over_hardware",
        numbers={"service_type": "inference", "card": L40S, "hardware": 40, "quota": 44},
        raised_at=wall - dt.timedelta(minutes=4),
        message="40 × NVIDIA-L40S are there, but inference quotas promise 44: a full flood could not be served.",
    )
    Alert.objects.create(
        cluster=cluster,
        key="guard:evictions",
        severity=AlertSeverity.CRITICAL,
        code="eviction_budget",
        numbers={"rule": "gangs_per_minute", "limit": 60, "asked": 71},
        raised_at=wall - dt.timedelta(hours=3),
        resolved_at=wall - dt.timedelta(hours=2, minutes=50),
        resolved_by="admin",
        message="71 gangs would have been evicted within a minute; the budget is 60.",
    )
    return world


def _card_types(cluster: Cluster) -> dict[str, CardType]:
    found = {}
    for name, (nodes, cards) in HARDWARE.items():
        found[name] = CardType.objects.create(
            cluster=cluster, name=name, resource="nvidia.com/gpu", hardware=nodes * cards, last_seen_at=timezone.now()
        )
    found[MIG] = CardType.objects.create(
        cluster=cluster,
        name=MIG,
        resource="nvidia.com/mig-1g.18gb",
        kind=CardKind.MIG,
        parent=found[H200],
        hardware=14,
        last_seen_at=timezone.now(),
    )
    found[MPS] = CardType.objects.create(
        cluster=cluster,
        name=MPS,
        resource="nvidia.com/gpu.shared",
        kind=CardKind.MPS,
        parent=found[L40S],
        hardware=8,
        last_seen_at=timezone.now(),
    )
    return found


def _nodes(cluster: Cluster, wall: dt.datetime) -> list[Node]:
    rows = []
    for name, (nodes, cards) in HARDWARE.items():
        short = name.removeprefix("NVIDIA-").removeprefix("GeForce-").split("-")[0].lower()
        for number in range(1, nodes + 1):
            rows.append(
                Node(
                    cluster=cluster,
                    name=f"{short}-{number:02}",
                    cpu_milli=128_000,
                    memory_mib=1024 * 1024,
                    cards={name: cards},
                    last_seen_at=wall,
                    unschedulable=short == "rtx" and number == nodes,
                )
            )
    rows.append(
        Node(
            cluster=cluster,
            name="h200-mig-01",
            cpu_milli=128_000,
            memory_mib=1024 * 1024,
            cards={MIG: 14},
            last_seen_at=wall,
        )
    )
    rows.append(
        Node(
            cluster=cluster,
            name="l40s-mps-01",
            cpu_milli=64_000,
            memory_mib=512 * 1024,
            cards={MPS: 8},
            last_seen_at=wall,
        )
    )
    return Node.objects.bulk_create(rows)


def _sessions(
    cluster: Cluster, policy: PolicyRevision, draw: random.Random, now: dt.datetime, wall: dt.datetime
) -> list[Session]:
    rows = []
    for number in range(1, 81):
        age = 81 - number
        binds, evictions = draw.randrange(0, 9), draw.choice([0, 0, 0, 4, 8])
        state = SessionState.STOPPED if number == 40 else SessionState.DONE
        rows.append(
            Session(
                cluster=cluster,
                number=1400 + number,
                epoch=3,
                state=state,
                mode=ClusterMode.SCHEDULE,
                trigger="tick",
                now=now - dt.timedelta(seconds=144 * age),
                started_at=wall - dt.timedelta(seconds=age),
                decided_at=wall - dt.timedelta(seconds=age),
                finished_at=wall - dt.timedelta(seconds=age - 0.2),
                policy=policy,
                engine_version="0.1.0",
                result_hash=f"{number:02x}" * 32,
                timings_ms={
                    "settle": round(draw.uniform(1, 3), 2),
                    "snapshot": round(draw.uniform(6, 14), 2),
                    "engine.enqueue": 2.1,
                    "engine.allocate": 9.4,
                    "engine.backfill": 0.6,
                    "engine.reclaim": 4.4,
                    "decide": round(draw.uniform(14, 40), 2),
                    "write": round(draw.uniform(8, 30), 2),
                    "send": round(draw.uniform(5, 60), 2),
                    "record": round(draw.uniform(10, 25), 2),
                },
                counts={"binds": binds, "evictions": evictions, "reclaims": evictions // 4, "waiting": 14, "nodes": 32},
            )
        )
    return Session.objects.bulk_create(rows)


def _queues(world: World, tenants: dict[str, Tenant], types: dict[str, CardType]) -> None:
    plans: list[tuple[str, str, str, dict[str, int]]] = [
        ("search-rank-inference", "search", "inference", {H200: 16, L40S: 8}),
        ("search-suggest-inference", "search", "inference", {L40S: 10, MPS: 4}),
        ("voice-asr-inference", "voice", "inference", {A100: 16, RTX: 8}),
        ("maps-route-inference", "maps", "inference", {L40S: 14}),
        ("shop-ads-inference", "shop", "inference", {H200: 12, A100: 12}),
        ("vision-ocr-inference", "vision", "inference", {RTX: 10, MIG: 8}),
        ("research-training", "research", "training", {H200: 40, A100: 48}),
        ("search-training", "search", "training", {H200: 24, A100: 32, L40S: 20}),
        ("vision-training", "vision", "training", {RTX: 20, L40S: 16}),
        ("foundation-training", "", "training", {H200: 48, A100: 64}),
        ("sandbox-training", "", "training", {}),
    ]
    for name, owner, service, quota in plans:
        tenant = tenants.get(owner)
        inference = service == "inference"
        project = line = None
        if inference:
            project = Project.objects.create(tenant=tenant, slug=name, name=name.split("-")[1].capitalize())
        else:
            line = BusinessLine.objects.create(tenant=tenant, slug=name, name=name.split("-")[0].capitalize())
        queue = Queue.objects.create(
            cluster=world.cluster,
            name=name,
            service_type=service,
            tenant=tenant,
            project=project,
            business_line=line,
            priority=80000 if inference else 20000,
            reclaimable=not inference,
            live_state=QueueState.OPEN,
            state=QueueState.CLOSING if name.startswith("sandbox") else QueueState.OPEN,
            sync_state=SyncState.IN_STEP,
            cpu_milli=None if inference else 512_000,
        )
        world.queues[name] = queue
        PushedObject.objects.create(cluster=world.cluster, kind="Queue", name=name, pushed_at=timezone.now())
        for card, number in quota.items():
            CardQuota.objects.create(
                cluster=world.cluster, card_type=types[card], service_type=service, queue=queue, cards=number
            )
    _limits(world.cluster, tenants, types)


def _limits(cluster: Cluster, tenants: dict[str, Tenant], types: dict[str, CardType]) -> None:
    """What some tenants may hand on; Research has handed on more since a node was taken from it."""
    limits = {
        ("search", "inference"): {H200: 20, L40S: 18, MPS: 4},
        ("search", "training"): {H200: 24, A100: 32, L40S: 20},
        ("shop", "inference"): {H200: 12, A100: 16},
        ("research", "training"): {H200: 32, A100: 48},
    }
    for (tenant, service), cards in limits.items():
        for card, number in cards.items():
            CardQuota.objects.create(
                cluster=cluster, card_type=types[card], service_type=service, tenant=tenants[tenant], cards=number
            )
    rank = Project.objects.get(slug="search-rank-inference")
    for card, number in {H200: 16, L40S: 8}.items():
        CardQuota.objects.create(
            cluster=cluster, card_type=types[card], service_type="inference", project=rank, cards=number
        )


def bare() -> None:
    """An installation that has just been made: accounts and a cluster without a session."""
    people()
    empty_cluster()
