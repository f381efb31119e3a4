"""A cluster in full tide for the console's tests: six tenants, their queues, gangs of every state, reclaims, two days.

Numbers agree with each other as a session would leave them: pods lie on the cards of nodes, usage is their sum, waiting
gangs carry reasons with holders.
"""

from __future__ import annotations

import datetime as dt
import math
import random
from dataclasses import dataclass, field
from functools import cache

from django.contrib.auth.hashers import make_password
from django.utils import timezone

from tidesched_web.accounts.models import BusinessLine, Membership, PlatformRole, Project, Tenant, User
from tidesched_web.clusters.models import CardKind, CardType, Cluster, ClusterMode, Node, PolicyRevision
from tidesched_web.quota.models import CardQuota, PriorityClass, Queue, QueueState, QuotaTree, SyncState
from tidesched_web.scheduling.models import (
    Alert,
    AlertSeverity,
    Decision,
    DecisionKind,
    DecisionState,
    QueueUsage,
    Reclaim,
    ReclaimState,
    ReclaimVictim,
    Session,
    SessionState,
    TidePoint,
    UsageChange,
)
from tidesched_web.workloads.models import Gang, GangEvent, GangEventKind, GangPod, GangState

PASSWORD = "a long enough password"
H200, A100, L40S, RTX = "NVIDIA-H200", "NVIDIA-A100-SXM4-80GB", "NVIDIA-L40S", "NVIDIA-GeForce-RTX-4090"
MIG, MPS = "NVIDIA-H200/mig-1g.18gb-mixed", "NVIDIA-L40S/mps-24g*1/2"
HARDWARE = {H200: (6, 8), A100: (8, 8), L40S: (10, 4), RTX: (6, 4)}
TENANTS = [
    ("search", "Search"), ("voice", "Voice"), ("maps", "Maps"), ("shop", "Shop"), ("vision", "Vision"), ("research", "Research")
]  # fmt: skip


@dataclass
class World:
    """What the tests ask for."""

    cluster: Cluster
    admin: User
    auditor: User
    member: User
    stranger: User
    newcomer: User
    queues: dict[str, Queue] = field(default_factory=dict)
    gangs: dict[str, Gang] = field(default_factory=dict)
    reclaims: list[Reclaim] = field(default_factory=list)
    sessions: list[Session] = field(default_factory=list)


def people() -> tuple[User, User, User, User, User]:
    """Admin, auditor, a member of Search, a member of Research only, and one who belongs nowhere."""

    def make(username: str, **more: str) -> User:
        return User.objects.create(username=username, password=_hashed(), **more)

    return (
        make("admin", platform_role=PlatformRole.ADMIN),
        make("auditor", platform_role=PlatformRole.AUDITOR),
        make("mei"),
        make("stranger"),
        make("newcomer"),
    )


@cache
def _hashed() -> str:
    """Hashing is slow on purpose; once is enough for all tests."""
    return make_password(PASSWORD)


def empty_cluster(name: str = "demo", **more: object) -> Cluster:
    """A cluster that no session has looked at."""
    cluster = Cluster.objects.create(
        name=name, slug=name, mode=ClusterMode.SCHEDULE, simulated=True, api_url="http://127.0.0.1:1", **more
    )
    QuotaTree.objects.create(cluster=cluster)
    return cluster


def full() -> World:
    """The whole story."""
    draw = random.Random(7)
    wall = timezone.now()
    now = dt.datetime(2026, 3, 4, 20, 15, tzinfo=dt.UTC)
    admin, auditor, member, stranger, newcomer = people()
    cluster = empty_cluster(clock_rate=144.0, clock_anchor=now, clock_wall_anchor=wall)
    world = World(cluster, admin, auditor, member, stranger, newcomer)
    tenants = {slug: Tenant.objects.create(slug=slug, name=name) for slug, name in TENANTS}
    Membership.objects.create(user=member, tenant=tenants["search"])
    Membership.objects.create(user=stranger, tenant=tenants["research"])
    types = _card_types(cluster)
    for name, value in (("pc-high", 80000), ("pc-medium", 60000), ("pc-normal", 40000), ("pc-low", 20000)):
        PriorityClass.objects.create(cluster=cluster, name=name, value=value)
    nodes = _nodes(cluster, wall)
    policy = PolicyRevision.objects.create(
        cluster=cluster, number=1, text="actions: enqueue, allocate, backfill, reclaim", valid=True, created_by="admin",
        released_at=wall,
    )  # fmt: skip
    world.sessions = _sessions(cluster, policy, draw, now, wall)
    _queues(world, tenants, types)
    _gangs(world, nodes, draw, now, wall)
    _reclaims(world, draw, now, wall)
    _tide(cluster, now, wall, draw)
    _usage(world, now, wall, draw)
    Alert.objects.create(
        cluster=cluster, key="hardware:L40S", severity=AlertSeverity.WARNING, code="hardware_below_quota",
        numbers={"card": L40S, "hardware": 40, "quota": 44}, raised_at=wall - dt.timedelta(minutes=4),
        message="40 × NVIDIA-L40S are there, but inference quotas promise 44: a full flood could not be served.",
    )  # fmt: skip
    Alert.objects.create(
        cluster=cluster, key="guard:evictions", severity=AlertSeverity.CRITICAL, code="guard_stopped",
        numbers={"rule": "gangs_per_minute", "limit": 60, "asked": 71}, raised_at=wall - dt.timedelta(hours=3),
        resolved_at=wall - dt.timedelta(hours=2, minutes=50), resolved_by="admin",
        message="71 gangs would have been evicted within a minute; the budget is 60.",
    )  # fmt: skip
    return world


def _card_types(cluster: Cluster) -> dict[str, CardType]:
    found = {}
    for name, (nodes, cards) in HARDWARE.items():
        found[name] = CardType.objects.create(
            cluster=cluster, name=name, resource="nvidia.com/gpu", hardware=nodes * cards, last_seen_at=timezone.now()
        )
    found[MIG] = CardType.objects.create(
        cluster=cluster, name=MIG, resource="nvidia.com/mig-1g.18gb", kind=CardKind.MIG, parent=found[H200], hardware=14,
        last_seen_at=timezone.now(),
    )  # fmt: skip
    found[MPS] = CardType.objects.create(
        cluster=cluster, name=MPS, resource="nvidia.com/gpu.shared", kind=CardKind.MPS, parent=found[L40S], hardware=8,
        last_seen_at=timezone.now(),
    )  # fmt: skip
    return found


def _nodes(cluster: Cluster, wall: dt.datetime) -> list[Node]:
    rows = []
    for name, (nodes, cards) in HARDWARE.items():
        short = name.removeprefix("NVIDIA-").removeprefix("GeForce-").split("-")[0].lower()
        for number in range(1, nodes + 1):
            rows.append(
                Node(
                    cluster=cluster, name=f"{short}-{number:02}", cpu_milli=128_000, memory_mib=1024 * 1024,
                    cards={name: cards}, last_seen_at=wall, unschedulable=short == "rtx" and number == nodes,
                )
            )  # fmt: skip
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
                cluster=cluster, number=1400 + number, epoch=3, state=state, mode=ClusterMode.SCHEDULE, trigger="tick",
                now=now - dt.timedelta(seconds=144 * age), started_at=wall - dt.timedelta(seconds=age),
                decided_at=wall - dt.timedelta(seconds=age), finished_at=wall - dt.timedelta(seconds=age - 0.2),
                policy=policy, engine_version="0.1.0", result_hash=f"{number:02x}" * 32,
                timings_ms={
                    "settle": round(draw.uniform(1, 3), 2), "snapshot": round(draw.uniform(6, 14), 2),
                    "engine.enqueue": 2.1, "engine.allocate": 9.4, "engine.backfill": 0.6, "engine.reclaim": 4.4,
                    "decide": round(draw.uniform(14, 40), 2), "write": round(draw.uniform(8, 30), 2),
                    "send": round(draw.uniform(5, 60), 2), "record": round(draw.uniform(10, 25), 2),
                },
                counts={"binds": binds, "evictions": evictions, "reclaims": evictions // 4, "waiting": 14, "nodes": 32},
            )
        )  # fmt: skip
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
            cluster=world.cluster, name=name, service_type=service, tenant=tenant, project=project, business_line=line,
            priority=80000 if inference else 20000, reclaimable=not inference, live_state=QueueState.OPEN,
            state=QueueState.CLOSING if name.startswith("sandbox") else QueueState.OPEN, sync_state=SyncState.IN_STEP,
            cpu_milli=None if inference else 512_000,
        )  # fmt: skip
        world.queues[name] = queue
        for card, number in quota.items():
            CardQuota.objects.create(
                cluster=world.cluster, card_type=types[card], service_type=service, queue=queue, cards=number
            )


def _manifest(namespace: str, name: str, queue: str, members: int) -> dict[str, object]:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {
            "namespace": namespace,
            "name": name,
            "annotations": {"volcano.sh/card.request": '{"NVIDIA-H200":8}'},
        },
        "spec": {"minMember": members, "queue": queue, "priorityClassName": "pc-low"},
        "status": {"phase": "Running"},
    }


def _gangs(world: World, nodes: list[Node], draw: random.Random, now: dt.datetime, wall: dt.datetime) -> None:
    cluster = world.cluster
    free: dict[str, list[tuple[str, int]]] = {}
    for node in nodes:
        for card, number in node.cards.items():
            free.setdefault(card, []).extend((node.name, place) for place in range(int(number)))

    def take(card: str, number: int) -> list[tuple[str, int]]:
        """Cells of one node: the first that has enough of them."""
        for node in dict.fromkeys(name for name, _place in free[card]):
            cells = [cell for cell in free[card] if cell[0] == node][:number]
            if len(cells) == number:
                free[card] = [cell for cell in free[card] if cell not in cells]
                return cells
        return []

    def gang(key: str, queue: str, card: str, pods: int, per_pod: int, state: GangState, **more: object) -> Gang:
        namespace, name = key.split("/")
        owner = world.queues[queue]
        inference = owner.service_type == "inference"
        minutes = more.pop("minutes", draw.randrange(30, 900))
        submitted = now - dt.timedelta(minutes=minutes)
        runs = state is GangState.RUNNING
        row = Gang.objects.create(
            cluster=cluster, namespace=namespace, name=name, uid=f"uid-{key}", queue=owner, queue_name=queue,
            service_type=owner.service_type, owner_kind="ReplicaSet" if inference else "Job", owner_name=name,
            priority=80000 if inference else 20000, priority_class="pc-high" if inference else "pc-low",
            min_member=1 if inference else pods, replicas=pods, ready=pods if runs else 0, bound=pods if runs else 0,
            phase="Running" if runs else "Inqueue" if state is GangState.ADMITTED else "Pending", state=state,
            cards={card: pods * per_pod}, cpu_milli=8000 * pods, memory_mib=65536 * pods, submitted_at=submitted,
            started_at=submitted + dt.timedelta(minutes=6) if runs else None, seen_at=wall, session_id=world.sessions[-1].pk,
            manifest=_manifest(namespace, name, queue, pods), **more,
        )  # fmt: skip
        world.gangs[key] = row
        step = GangEvent.objects.create
        step(gang=row, kind=GangEventKind.SUBMITTED, at=submitted, wall_at=wall, detail={"queue": queue})
        if runs:
            step(gang=row, kind=GangEventKind.ADMITTED, at=submitted + dt.timedelta(minutes=3), wall_at=wall)
            step(
                gang=row, kind=GangEventKind.BOUND, at=submitted + dt.timedelta(minutes=5), wall_at=wall,
                detail={"ready": pods, "min_member": row.min_member},
            )  # fmt: skip
            step(gang=row, kind=GangEventKind.RUNNING, at=submitted + dt.timedelta(minutes=6), wall_at=wall)
        members = []
        for number in range(pods):
            cells = take(card, per_pod) if runs else []
            members.append(
                GangPod(
                    gang=row, name=f"{name}-{number}", uid=f"{key}-{number}", phase="Running" if cells else "Pending",
                    node=cells[0][0] if cells else "", card=card if cells else "", card_milli=1000 * per_pod if cells else 0,
                    card_indices=[place for _node, place in cells], started_at=row.started_at if cells else None,
                )
            )  # fmt: skip
        GangPod.objects.bulk_create(members)
        return row

    inference = [
        ("search/rank-v7", "search-rank-inference", H200, 12), ("search/rank-canary", "search-rank-inference", L40S, 5),
        ("search/suggest", "search-suggest-inference", L40S, 8), ("voice/asr-zh", "voice-asr-inference", A100, 13),
        ("voice/asr-en", "voice-asr-inference", RTX, 5), ("maps/route", "maps-route-inference", L40S, 9),
        ("shop/ads-bid", "shop-ads-inference", H200, 10), ("shop/ads-image", "shop-ads-inference", A100, 9),
        ("vision/ocr", "vision-ocr-inference", RTX, 7), ("vision/ocr-small", "vision-ocr-inference", MIG, 6),
        ("search/suggest-lite", "search-suggest-inference", MPS, 3),
    ]  # fmt: skip
    for key, queue, card, pods in inference:
        gang(key, queue, card, pods, 1, GangState.RUNNING)
    training = [
        ("research/llm-pretrain-lap2-004", "research-training", H200, 2, 8),
        ("research/reward-model-lap2-011", "research-training", A100, 2, 8),
        ("search/embed-lap2-007", "search-training", A100, 4, 4), ("search/distil-lap2-002", "search-training", L40S, 2, 4),
        ("vision/detector-lap2-009", "vision-training", RTX, 2, 4), ("vision/segment-lap2-003", "vision-training", L40S, 1, 4),
        ("foundation/base-lap2-001", "foundation-training", A100, 1, 8),
    ]  # fmt: skip
    for key, queue, card, pods, per_pod in training:
        gang(key, queue, card, pods, per_pod, GangState.RUNNING)

    def holders(*keys: str) -> list[dict[str, object]]:
        return [
            {"gang": key, "queue": world.gangs[key].queue_name, "amount": sum(world.gangs[key].cards.values())}
            for key in keys
        ]

    waiting: list[tuple[str, str, str, int, int, str, dict[str, object], dict[str, object] | None]] = [
        (
            "search/embed-lap2-012", "search-training", H200, 2, 8, "WaitingForCards",
            {"resource": H200, "requested": 16, "free": 10, "short": 6, "position": 1,
             "holders": holders("research/llm-pretrain-lap2-004", "search/rank-v7", "shop/ads-bid")},
            {"change": "gang_ends", "gang": "research/llm-pretrain-lap2-004", "verified": True},
        ),
        (
            "search/rank-lap2-013", "search-training", A100, 4, 8, "WaitingForQuota",
            {"resource": A100, "requested": 32, "limit": 32, "allocated": 16, "inqueue": 0, "free": 16, "short": 16, "position": 2},
            {"change": "quota", "queue": "search-training", "card": A100, "by": 16, "verified": True},
        ),
        (
            "research/llm-sft-lap2-021", "research-training", H200, 4, 8, "ExceedsMaxQuota",
            {"resource": H200, "requested": 48, "limit": 40, "allocated": 16}, None,
        ),
        (
            "vision/segment-lap2-017", "vision-training", L40S, 3, 4, "Fragmented",
            {"resource": L40S, "requested": 12, "free": 14, "nodes": {"cards in use or promised": 8, "no such card": 24}}, None,
        ),
        ("research/probe-lap2-030", "research-training", A100, 1, 8, "BehindHigherPriority", {"position": 3}, None),
        (
            "foundation/base-lap2-002", "foundation-training", H200, 2, 8, "NoNodeMatches",
            {"resource": H200, "requested": 16, "nodes": {"no such card": 26, "memory in use": 4, "cards in use or promised": 2}},
            None,
        ),
    ]  # fmt: skip
    for place, (key, queue, card, pods, per_pod, code, numbers, remedy) in enumerate(waiting, 1):
        minutes = 400 - 45 * place
        row = gang(
            key, queue, card, pods, per_pod, GangState.WAITING, minutes=minutes, needs=True, position=place,
            reason_code=code, reason_numbers=numbers, reason_remedy=remedy, reason_message="",
            reason_since=now - dt.timedelta(minutes=20), waiting_since=now - dt.timedelta(minutes=minutes),
        )  # fmt: skip
        GangEvent.objects.create(
            gang=row, kind=GangEventKind.REASON, at=now - dt.timedelta(minutes=20), wall_at=wall, detail={"code": code}
        )
    gang(
        "search/rank-v8", "search-rank-inference", H200, 4, 1, GangState.ADMITTED, minutes=3, needs=True, position=1,
        reason_code="WaitingForReclaim", waiting_since=now - dt.timedelta(minutes=2), reason_since=now,
        reason_numbers={"resource": H200, "requested": 4, "holders": holders("research/llm-pretrain-lap2-004")},
    )  # fmt: skip
    for number in range(60):
        state = draw.choice([GangState.FINISHED, GangState.FINISHED, GangState.FAILED])
        gang(
            f"research/eval-lap1-{number:03}", "research-training", A100, 1, 1, state, minutes=1500 + number,
            ended_at=now - dt.timedelta(minutes=700), gone_at=wall,
        )  # fmt: skip


def _reclaims(world: World, draw: random.Random, now: dt.datetime, wall: dt.datetime) -> None:
    stories = [
        ("search/rank-v8", "search-rank-inference", [("research/llm-pretrain-lap2-003", "research-training", 8)], 4, "promised"),
        ("shop/ads-bid", "shop-ads-inference", [("research/llm-pretrain-lap2-002", "research-training", 16)], 16, "done"),
        (
            "search/rank-v7", "search-rank-inference",
            [("search/embed-lap2-001", "search-training", 4), ("search/embed-lap2-005", "search-training", 4)], 6, "done",
        ),
        ("search/rank-v7", "search-rank-inference", [("foundation/base-lap1-009", "foundation-training", 8)], 8, "partial"),
        ("shop/ads-bid", "shop-ads-inference", [("research/llm-sft-lap1-004", "research-training", 8)], 5, "cancelled"),
    ]  # fmt: skip
    for number, (reclaimer, queue, victims, needed, state) in enumerate(reversed(stories)):
        session = world.sessions[-2 - 7 * (len(stories) - 1 - number)]
        freed = sum(cards for _gang, _queue, cards in victims)
        done = state == ReclaimState.DONE
        row = Reclaim.objects.create(
            cluster=world.cluster, session=session, at=session.now, wall_at=session.started_at, action="reclaim", state=state,
            reclaimer=reclaimer, queue=world.queues[queue], queue_name=queue,
            needed={"cpu_milli": 8000, "memory_bytes": 2**36, "cards": {H200: needed}},
            freed={"cpu_milli": 64000, "memory_bytes": 2**39, "cards": {H200: freed}},
            work_lost_card_seconds=freed * draw.randrange(600, 9000),
            rule="inference takes from training; lowest priority, then least work lost",
            votes=[
                {"tier": 1, "plugin": "gang", "vote": "abstain"}, {"tier": 1, "plugin": "conformance", "vote": "abstain"},
                {"tier": 2, "plugin": "capacity-card", "vote": "permit"},
            ],
            refused=[
                {"gang": "foundation/base-lap2-001", "rule": "would free no card of this type"},
                {"gang": "search/embed-lap2-007", "rule": "more work would be lost"},
            ],
            promised_at=session.now + dt.timedelta(seconds=31),
            running_at=session.now + dt.timedelta(seconds=64) if done else None, audit_entry_id=4000 + number,
        )  # fmt: skip
        world.reclaims.append(row)
        for gang, from_queue, cards in victims:
            ReclaimVictim.objects.create(
                reclaim=row, gang=gang, queue=world.queues[from_queue], queue_name=from_queue, cards={H200: cards},
                pods=[f"{gang}-{pod}" for pod in range(cards // 4)], work_lost_card_seconds=cards * 1800,
            )  # fmt: skip
            Decision.objects.bulk_create(
                Decision(
                    at=session.started_at, cluster=world.cluster, session=session, epoch=3, kind=DecisionKind.EVICT,
                    state=DecisionState.DONE, gang=gang, target=f"{gang}-{pod}", uid=f"{gang}-{pod}", node=f"h200-0{pod + 1}",
                    reclaim_id=row.pk, outcome="accepted", settled_at=session.started_at,
                )
                for pod in range(cards // 4)
            )  # fmt: skip
    last = world.sessions[-2]
    Decision.objects.bulk_create(
        Decision(
            at=last.started_at, cluster=world.cluster, session=last, epoch=3, kind=DecisionKind.BIND, node="a100-03",
            state=DecisionState.FAILED if pod == 3 else DecisionState.DONE, gang="search/embed-lap2-007",
            target=f"search/embed-lap2-007-{pod}", uid=f"u{pod}", outcome="the pod is gone" if pod == 3 else "bound",
        )
        for pod in range(4)
    )  # fmt: skip


def _curve(at: dt.datetime) -> float:
    """The tide: low at four in the morning, high in the evening."""
    hour = at.hour + at.minute / 60
    return 0.5 + 0.36 * math.sin((hour - 10) / 24 * 2 * math.pi) + 0.14 * math.sin((hour - 7) / 12 * 2 * math.pi)


def _tide(cluster: Cluster, now: dt.datetime, wall: dt.datetime, draw: random.Random) -> None:
    rows = []
    for step in range(48 * 4 + 1):
        at = now - dt.timedelta(minutes=15 * (48 * 4 - step))
        for card, total, share in (
            (H200, 48, 0.58),
            (A100, 64, 0.44),
            (L40S, 40, 0.75),
            (RTX, 24, 0.7),
            (MIG, 14, 0.6),
            (MPS, 8, 0.5),
        ):
            quota = round(total * share)
            inference = min(quota, round(quota * (0.25 + 0.75 * _curve(at)) + draw.uniform(-0.6, 0.6)))
            room = total - inference - (2 if card == A100 else 0)
            training = max(0, min(room, round(room * draw.uniform(0.9, 1.0))))
            foreign = 2 if card == A100 else 0
            waiting = 0 if card in (MIG, MPS) else round(max(0, total * 0.3 * (_curve(at) - 0.25)) + draw.uniform(0, 2))
            rows.append(
                TidePoint(
                    cluster=cluster, at=at, wall_at=wall, card=card, total=1000 * total, inference=1000 * inference,
                    training=1000 * training, borrowed=1000 * max(0, training - (total - quota)), foreign=1000 * foreign,
                    idle=1000 * (total - inference - training - foreign), waiting=1000 * waiting,
                )
            )  # fmt: skip
    TidePoint.objects.bulk_create(rows)


def _usage(world: World, now: dt.datetime, wall: dt.datetime, draw: random.Random) -> None:
    changes = []
    for queue in world.queues.values():
        held: dict[str, float] = {}
        for gang in world.gangs.values():
            if gang.queue_id == queue.pk and gang.state == GangState.RUNNING:
                for card, number in gang.cards.items():
                    held[card] = held.get(card, 0) + number
        for quota in queue.card_quotas.select_related("card_type"):
            card, limit = quota.card_type.name, 1000 * quota.cards
            allocated = round(1000 * held.get(card, 0))
            inqueue = 4000 if queue.name == "search-rank-inference" and card == H200 else 0
            QueueUsage.objects.create(
                queue=queue, card=card, at=now, quota=limit, allocated=allocated, inqueue=inqueue,
                elastic=allocated if queue.service_type == "inference" else 0,
            )  # fmt: skip
            for step in range(60):
                at = now - dt.timedelta(minutes=48 * (60 - step))
                level = _curve(at) if queue.service_type == "inference" else 1 - 0.7 * _curve(at)
                used = 1000 * round(min(quota.cards, quota.cards * level + draw.uniform(0, 1)))
                changes.append(
                    UsageChange(
                        wall_at=wall, at=at, cluster=world.cluster, queue=queue, card=card, quota=limit, allocated=used,
                        inqueue=0, elastic=0,
                    )
                )  # fmt: skip
            changes.append(
                UsageChange(
                    wall_at=wall, at=now, cluster=world.cluster, queue=queue, card=card, quota=limit, allocated=allocated,
                    inqueue=inqueue, elastic=0,
                )
            )  # fmt: skip
    UsageChange.objects.bulk_create(changes)


def bare() -> None:
    """An installation that has just been made: accounts and a cluster without a session."""
    people()
    empty_cluster()
