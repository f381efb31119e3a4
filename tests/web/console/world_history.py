"""What has happened: reclaims with their decisions, two days of tide and of use."""

from __future__ import annotations

import datetime as dt
import math
import random
from typing import Any

from tests.web.console.cast import A100, H200, L40S, MIG, MPS, RTX, World
from tidesched_web.clusters.models import Cluster
from tidesched_web.scheduling.models import (
    Decision,
    DecisionKind,
    DecisionState,
    QueueUsage,
    Reclaim,
    ReclaimState,
    ReclaimVictim,
    TidePoint,
    UsageChange,
)
from tidesched_web.workloads.models import GangState

ALONE = {
    "fits": 0,
    "wanted": 1,
    "more_nodes": 2,
    "nodes": [
        {"node": name, "resource": H200, "free": free, "frees": 4, "needs": 8, "fits": 0, "short": 4 - free}
        for name, free in (("gpu-1", 0), ("gpu-2", 0), ("gpu-3", 1))
    ],
}
SHORT = (
    "its leaving would not make enough room: on gpu-1 it frees 4 of NVIDIA-H200, 0 more free, a pod needs 8, 4 short"
)
DEARER = "dearer than a gang of the chosen set whose place it could take"


def _receipt(world: World, queue: str, needed: int, victims: list[tuple[str, str, int]]) -> dict[str, Any]:
    """Quota and use at that moment, what the victims cost, and two gangs that were spared."""
    moved = [(queue, 12, 12 + needed), *((from_queue, 40, 40 - cards) for _gang, from_queue, cards in victims)]
    spared = (
        (
            "foundation/base-lap2-001",
            "foundation-training",
            7200.0,
            SHORT,
        ),
        ("search/embed-lap2-007", "search-training", 90000.0, DEARER),
    )
    return {
        "queues": [
            {
                "queue": name, "queue_id": world.queues[name].pk, "base": {H200: 32}, "plans": [], "quota": {H200: 40},
                "before": {"cpu_milli": 0, "memory_bytes": 0, "cards": {H200: before}},
                "after": {"cpu_milli": 0, "memory_bytes": 0, "cards": {H200: after}},
            }
            for name, before, after in {row[0]: row for row in moved}.values()
        ],
        "victims": {
            gang: {"queue_priority": 20000, "priority": 20000, "work_lost_card_seconds": cards * 1800.0}
            for gang, _queue, cards in victims
        },
        "candidates": [
            {
                "gang": gang, "queue": name, "queue_id": world.queues[name].pk, "queue_priority": 20000,
                "priority": 20000, "work_lost_card_seconds": work, "frees": 4, "rule": rule,
                "alone": ALONE if "gpu-1" in rule else None,
            }
            for gang, name, work, rule in spared
        ],
        "more_candidates": 37,
    }  # fmt: skip


def reclaims(world: World, draw: random.Random, now: dt.datetime, wall: dt.datetime) -> None:
    stories = [
        (
            "search/rank-v8",
            "search-rank-inference",
            [("research/llm-pretrain-lap2-003", "research-training", 8)],
            4,
            "promised",
        ),
        (
            "shop/ads-bid",
            "shop-ads-inference",
            [("research/llm-pretrain-lap2-002", "research-training", 16)],
            16,
            "done",
        ),
        (
            "search/rank-v7",
            "search-rank-inference",
            [("search/embed-lap2-001", "search-training", 4), ("search/embed-lap2-005", "search-training", 4)],
            6,
            "done",
        ),
        (
            "search/rank-v7",
            "search-rank-inference",
            [("foundation/base-lap1-009", "foundation-training", 8)],
            8,
            "partial",
        ),
        ("shop/ads-bid", "shop-ads-inference", [("research/llm-sft-lap1-004", "research-training", 8)], 5, "cancelled"),
    ]
    for number, (reclaimer, queue, victims, needed, state) in enumerate(reversed(stories)):
        session = world.sessions[-2 - 7 * (len(stories) - 1 - number)]
        freed = sum(cards for _gang, _queue, cards in victims)
        done = state == ReclaimState.DONE
        row = Reclaim.objects.create(
            cluster=world.cluster,
            session=session,
            at=session.now,
            wall_at=session.started_at,
            action="reclaim",
            state=state,
            reclaimer=reclaimer,
            queue=world.queues[queue],
            queue_name=queue,
            needed={"cpu_milli": 8000, "memory_bytes": 2**36, "cards": {H200: needed}},
            freed={"cpu_milli": 64000, "memory_bytes": 2**39, "cards": {H200: freed}},
            work_lost_card_seconds=freed * draw.randrange(600, 9000),
            rule="inference takes from training; lowest priority, then least work lost",
            votes=[
                {"tier": 1, "plugin": "gang", "vote": "abstain"},
                {"tier": 1, "plugin": "conformance", "vote": "abstain"},
                {"tier": 2, "plugin": "capacity-card", "vote": "permit"},
            ],
            refused=[
                {"gang": "foundation/base-lap2-001", "rule": "would free no card of this type"},
                {"gang": "search/embed-lap2-007", "rule": "more work would be lost"},
            ],
            receipt=_receipt(world, queue, needed, victims),
            promised_at=session.now + dt.timedelta(seconds=31),
            running_at=session.now + dt.timedelta(seconds=64) if done else None,
            audit_entry_id=4000 + number,
        )
        world.reclaims.append(row)
        for gang, from_queue, cards in victims:
            ReclaimVictim.objects.create(
                reclaim=row,
                gang=gang,
                queue=world.queues[from_queue],
                queue_name=from_queue,
                cards={H200: cards},
                pods=[f"{gang}-{pod}" for pod in range(cards // 4)],
                work_lost_card_seconds=cards * 1800,
            )
            Decision.objects.bulk_create(
                Decision(
                    at=session.started_at,
                    cluster=world.cluster,
                    session=session,
                    epoch=3,
                    kind=DecisionKind.EVICT,
                    state=DecisionState.DONE,
                    gang=gang,
                    target=f"{gang}-{pod}",
                    uid=f"{gang}-{pod}",
                    node=f"h200-0{pod + 1}",
                    reclaim_id=row.pk,
                    outcome="accepted",
                    settled_at=session.started_at,
                )
                for pod in range(cards // 4)
            )
    last = world.sessions[-2]
    Decision.objects.bulk_create(
        Decision(
            at=last.started_at,
            cluster=world.cluster,
            session=last,
            epoch=3,
            kind=DecisionKind.BIND,
            node="a100-03",
            state=DecisionState.FAILED if pod == 3 else DecisionState.DONE,
            gang="search/embed-lap2-007",
            target=f"search/embed-lap2-007-{pod}",
            uid=f"u{pod}",
            outcome="the pod is gone" if pod == 3 else "bound",
        )
        for pod in range(4)
    )


def _curve(at: dt.datetime) -> float:
    """The tide: low at four in the morning, high in the evening."""
    hour = at.hour + at.minute / 60
    return 0.5 + 0.36 * math.sin((hour - 10) / 24 * 2 * math.pi) + 0.14 * math.sin((hour - 7) / 12 * 2 * math.pi)


def tide(cluster: Cluster, now: dt.datetime, wall: dt.datetime, draw: random.Random) -> None:
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
                    cluster=cluster,
                    at=at,
                    wall_at=wall - (now - at),
                    card=card,
                    total=1000 * total,
                    inference=1000 * inference,
                    training=1000 * training,
                    borrowed=1000 * max(0, training - (total - quota)),
                    foreign=1000 * foreign,
                    idle=1000 * (total - inference - training - foreign),
                    waiting=1000 * waiting,
                    quota=1000 * quota,
                )
            )
    TidePoint.objects.bulk_create(rows)


def usage(world: World, now: dt.datetime, wall: dt.datetime, draw: random.Random) -> None:
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
                queue=queue,
                card=card,
                at=now,
                quota=limit,
                allocated=allocated,
                inqueue=inqueue,
                elastic=allocated if queue.service_type == "inference" else 0,
            )
            for step in range(60):
                at = now - dt.timedelta(minutes=48 * (60 - step))
                level = _curve(at) if queue.service_type == "inference" else 1 - 0.7 * _curve(at)
                used = 1000 * round(min(quota.cards, quota.cards * level + draw.uniform(0, 1)))
                changes.append(
                    UsageChange(
                        wall_at=wall,
                        at=at,
                        cluster=world.cluster,
                        queue=queue,
                        card=card,
                        quota=limit,
                        allocated=used,
                        inqueue=0,
                        elastic=0,
                    )
                )
            changes.append(
                UsageChange(
                    wall_at=wall,
                    at=now,
                    cluster=world.cluster,
                    queue=queue,
                    card=card,
                    quota=limit,
                    allocated=allocated,
                    inqueue=inqueue,
                    elastic=0,
                )
            )
    UsageChange.objects.bulk_create(changes)
