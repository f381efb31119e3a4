"""The gangs of the story: serving, training, waiting for every kind of reason, and long over."""

from __future__ import annotations

import datetime as dt
import random

from tests.web.console.cast import A100, H200, L40S, MIG, MPS, RTX, World
from tidesched_web.clusters.models import Node
from tidesched_web.workloads.models import Gang, GangEvent, GangEventKind, GangPod, GangRemedy, GangState
from tidesched_web.workloads.remedies import basis


def _manifest(namespace: str, name: str, queue: str, members: int) -> dict[str, object]:
    """A PodGroup as a session keeps it."""
    return {
        "namespace": namespace,
        "name": name,
        "uid": f"uid-{namespace}-{name}",
        "created": 1772650000.0,
        "queue": queue,
        "min_member": members,
        "min_resources": {"cpu_milli": 8000 * members, "memory_mib": 65536 * members, "cards": {}},
        "priority_class": "pc-low",
        "annotations": {"volcano.sh/card.request": '{"NVIDIA-H200":8}'},
    }


def gangs(world: World, nodes: list[Node], draw: random.Random, now: dt.datetime, wall: dt.datetime) -> None:
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
            cluster=cluster,
            namespace=namespace,
            name=name,
            uid=f"uid-{key}",
            queue=owner,
            queue_name=queue,
            service_type=owner.service_type,
            owner_kind="ReplicaSet" if inference else "Job",
            owner_name=name,
            priority=80000 if inference else 20000,
            priority_class="pc-high" if inference else "pc-low",
            min_member=1 if inference else pods,
            replicas=pods,
            ready=pods if runs else 0,
            bound=pods if runs else 0,
            phase="Running" if runs else "Inqueue" if state is GangState.ADMITTED else "Pending",
            state=state,
            cards={card: pods * per_pod},
            cpu_milli=8000 * pods,
            memory_mib=65536 * pods,
            submitted_at=submitted,
            started_at=submitted + dt.timedelta(minutes=6) if runs else None,
            seen_at=wall,
            session_id=world.sessions[-1].pk,
            manifest=_manifest(namespace, name, queue, pods),
            **more,
        )
        world.gangs[key] = row
        step = GangEvent.objects.create
        step(gang=row, kind=GangEventKind.SUBMITTED, at=submitted, wall_at=wall, detail={"queue": queue})
        if runs:
            step(gang=row, kind=GangEventKind.ADMITTED, at=submitted + dt.timedelta(minutes=3), wall_at=wall)
            step(
                gang=row,
                kind=GangEventKind.BOUND,
                at=submitted + dt.timedelta(minutes=5),
                wall_at=wall,
                detail={"ready": pods, "min_member": row.min_member},
            )
            step(gang=row, kind=GangEventKind.RUNNING, at=submitted + dt.timedelta(minutes=6), wall_at=wall)
        members = []
        for number in range(pods):
            cells = take(card, per_pod) if runs else []
            members.append(
                GangPod(
                    gang=row,
                    name=f"{name}-{number}",
                    uid=f"{key}-{number}",
                    phase="Running" if cells else "Pending",
                    node=cells[0][0] if cells else "",
                    card=card if cells else "",
                    card_milli=1000 * per_pod if cells else 0,
                    card_indices=[place for _node, place in cells],
                    started_at=row.started_at if cells else None,
                )
            )
        GangPod.objects.bulk_create(members)
        return row

    inference = [
        ("search/rank-v7", "search-rank-inference", H200, 12),
        ("search/rank-canary", "search-rank-inference", L40S, 5),
        ("search/suggest", "search-suggest-inference", L40S, 8),
        ("voice/asr-zh", "voice-asr-inference", A100, 13),
        ("voice/asr-en", "voice-asr-inference", RTX, 5),
        ("maps/route", "maps-route-inference", L40S, 9),
        ("shop/ads-bid", "shop-ads-inference", H200, 10),
        ("shop/ads-image", "shop-ads-inference", A100, 9),
        ("vision/ocr", "vision-ocr-inference", RTX, 7),
        ("vision/ocr-small", "vision-ocr-inference", MIG, 6),
        ("search/suggest-lite", "search-suggest-inference", MPS, 3),
    ]
    for key, queue, card, pods in inference:
        gang(key, queue, card, pods, 1, GangState.RUNNING)
    training = [
        ("research/llm-pretrain-lap2-004", "research-training", H200, 2, 8),
        ("research/reward-model-lap2-011", "research-training", A100, 2, 8),
        ("search/embed-lap2-007", "search-training", A100, 4, 4),
        ("search/distil-lap2-002", "search-training", L40S, 2, 4),
        ("vision/detector-lap2-009", "vision-training", RTX, 2, 4),
        ("vision/segment-lap2-003", "vision-training", L40S, 1, 4),
        ("foundation/base-lap2-001", "foundation-training", A100, 1, 8),
    ]
    for key, queue, card, pods, per_pod in training:
        gang(key, queue, card, pods, per_pod, GangState.RUNNING)

    def holders(*keys: str) -> list[dict[str, object]]:
        return [
            {"gang": key, "queue": world.gangs[key].queue_name, "amount": sum(world.gangs[key].cards.values())}
            for key in keys
        ]

    waiting: list[tuple[str, str, str, int, int, str, dict[str, object], dict[str, object] | None]] = [
        (
            "search/embed-lap2-012",
            "search-training",
            H200,
            2,
            8,
            "WaitingForCards",
            {
                "resource": H200,
                "requested": 16,
                "free": 10,
                "short": 6,
                "position": 1,
                "holders": holders("research/llm-pretrain-lap2-004", "search/rank-v7", "shop/ads-bid"),
            },
            {"change": "gang_ends", "gang": "research/llm-pretrain-lap2-004", "verified": True},
        ),
        (
            "search/rank-lap2-013",
            "search-training",
            A100,
            4,
            8,
            "WaitingForQuota",
            {
                "resource": A100,
                "requested": 32,
                "limit": 32,
                "allocated": 16,
                "inqueue": 0,
                "free": 16,
                "short": 16,
                "position": 2,
            },
            {"change": "quota", "queue": "search-training", "card": A100, "by": 16, "verified": True},
        ),
        (
            "research/llm-sft-lap2-021",
            "research-training",
            H200,
            4,
            8,
            "ExceedsMaxQuota",
            {"resource": H200, "requested": 48, "limit": 40, "allocated": 16},
            None,
        ),
        (
            "vision/segment-lap2-017",
            "vision-training",
            L40S,
            3,
            4,
            "Fragmented",
            {
                "resource": L40S,
                "requested": 12,
                "free": 14,
                "nodes": {"cards in use or promised": 8, "no such card": 24},
            },
            None,
        ),
        ("research/probe-lap2-030", "research-training", A100, 1, 8, "BehindHigherPriority", {"position": 3}, None),
        (
            "foundation/base-lap2-002",
            "foundation-training",
            H200,
            2,
            8,
            "NoNodeMatches",
            {
                "resource": H200,
                "requested": 16,
                "nodes": {"no such card": 26, "memory in use": 4, "cards in use or promised": 2},
            },
            None,
        ),
    ]
    for place, (key, queue, card, pods, per_pod, code, numbers, remedy) in enumerate(waiting, 1):
        minutes = 400 - 45 * place
        row = gang(
            key,
            queue,
            card,
            pods,
            per_pod,
            GangState.WAITING,
            minutes=minutes,
            needs=True,
            position=place,
            reason_code=code,
            reason_numbers=numbers,
            reason_message="",
            reason_since=now - dt.timedelta(minutes=20),
            waiting_since=now - dt.timedelta(minutes=minutes),
        )
        GangEvent.objects.create(
            gang=row,
            kind=GangEventKind.REASON,
            at=now - dt.timedelta(minutes=20),
            wall_at=wall,
            detail={"code": code, "numbers": numbers},
        )
        GangRemedy.objects.create(
            gang=row,
            basis=basis(code, numbers),
            remedy=remedy,
            session_id=world.sessions[-1].pk,
            number=world.sessions[-1].number,
            at=now,
            worked_out_at=wall,
        )
    gang(
        "search/rank-v8",
        "search-rank-inference",
        H200,
        4,
        1,
        GangState.ADMITTED,
        minutes=3,
        needs=True,
        position=1,
        reason_code="WaitingForReclaim",
        waiting_since=now - dt.timedelta(minutes=2),
        reason_since=now,
        reason_numbers={"resource": H200, "requested": 4, "holders": holders("research/llm-pretrain-lap2-004")},
    )
    for number in range(60):
        state = draw.choice([GangState.FINISHED, GangState.FINISHED, GangState.FAILED])
        gang(
            f"research/eval-lap1-{number:03}",
            "research-training",
            A100,
            1,
            1,
            state,
            minutes=1500 + number,
            ended_at=now - dt.timedelta(minutes=700),
            gone_at=wall,
        )
