"""What the story adds where others have a hand in the cluster: drift, evictions by Volcano, alerts of every kind."""

from __future__ import annotations

import datetime as dt

from django.utils import timezone

from tests.web.console.cast import H200, L40S, RTX, World
from tidesched_web.quota.models import Drift, DriftLook
from tidesched_web.scheduling.models import Alert, ClusterReach, Reclaim, ReclaimVictim


def meddled(world: World) -> None:
    """Add it."""
    wall = timezone.now()
    _drift(world, wall)
    _observed(world, wall)
    _alerts(world, wall)


def _field(name: str, intent: str, live: str, by: str = "kubectl-edit") -> dict[str, str]:
    at = "2026-03-04T20:11:32Z" if by else ""
    return {"field": name, "intent": intent, "pushed": intent, "live": live, "changed_by": by, "changed_at": at}


def _drift(world: World, wall: dt.datetime) -> None:
    def row(name: str, fields: list[dict[str, str]], minutes: int, **more: object) -> Drift:
        queue, found = world.queues.get(name), wall - dt.timedelta(minutes=minutes)
        values = {
            "kind": "Queue", "queue": queue, "what": "changed", "fields": fields, "digest": name,
            "live": {"kind": "Queue"}, "found_at": found, "changed_at": found,
        }  # fmt: skip
        return Drift.objects.create(cluster=world.cluster, name=name, **(values | more))

    row("search-training", [_field(f"card_quota.{H200}", "28", "40"), _field("spec.weight", "2", "9")], 4)
    row("research-training", [_field("labels[tidesched.io/tenant]", "research", "shop", "argocd-controller")], 9)
    row("maps-route-inference", [_field(f"card_quota.{L40S}", "16", "16", "")], 2, what="missing", live=None)
    row(
        "pc-normal", [_field("value", "40000", "45000", "kubectl-replace")], 75, kind="PriorityClass", queue=None,
        state="ignored", decided_by="admin", decided_at=wall - dt.timedelta(minutes=60), reason="A trial until Friday.",
    )  # fmt: skip
    row(
        "vision-ocr-inference", [_field(f"card_quota.{RTX}", "12", "14")], 300, state="resolved", end="pushed",
        decided_by="admin", decided_at=wall - dt.timedelta(minutes=290), reason="The figure of the contract holds.",
        ended_at=wall - dt.timedelta(minutes=289),
    )  # fmt: skip
    DriftLook.objects.create(
        cluster=world.cluster, looked_at=wall, objects_compared=len(world.queues) + 4, unmanaged=["legacy-batch", "tmp"]
    )


def _observed(world: World, wall: dt.datetime) -> None:
    session = world.sessions[-1]
    amount = {"cpu_milli": 64000, "memory_bytes": 2**39, "cards": {H200: 16}}
    victim = {"gang": "foundation/base-lap2-001", "queue": "foundation-training", "pods": 1, "cards": {H200: 4}}
    instead = {
        "session": world.sessions[-2].number, "session_id": world.sessions[-2].pk, "at": session.now.isoformat(),
        "found": "reclaims", "gangs": 1, "pods": 1, "cards": {H200: 4}, "work_lost_card_seconds": 5400.0,
        "reclaims": [
            {"reclaimer": "search/rank-v8", "queue": "search-rank-inference", "action": "reclaim", "rule": "",
             "victims": [victim | {"work_lost_card_seconds": 5400.0}]},
        ],
    }  # fmt: skip
    for reclaimer, maker, told in (("search/rank-v8", "volcano", instead), ("", "unknown", None)):
        row = Reclaim.objects.create(
            cluster=world.cluster, session=session, at=session.now, wall_at=wall, source="observed", made_by=maker,
            action="reclaim" if reclaimer else "evict", state="promised" if reclaimer else "seen", reclaimer=reclaimer,
            queue=world.queues["search-rank-inference"] if reclaimer else None,
            queue_name="search-rank-inference" if reclaimer else "",
            needed={"cpu_milli": 8000, "memory_bytes": 2**36, "cards": {H200: 4} if reclaimer else {}}, freed=amount,
            work_lost_card_seconds=16 * 3600, rule="Pod is evicted, because of reclaim", instead=told,
        )  # fmt: skip
        ReclaimVictim.objects.create(
            reclaim=row, gang="research/llm-pretrain-lap2-003", queue=world.queues["research-training"],
            queue_name="research-training", pods=["research/llm-pretrain-lap2-003-0"], cards={H200: 16},
            work_lost_card_seconds=16 * 3600,
        )  # fmt: skip
        world.reclaims.append(row)


def _alerts(world: World, wall: dt.datetime) -> None:
    def alert(code: str, minutes: int, severity: str = "warning", numbers: dict | None = None, **more: object) -> Alert:
        values = {
            "cluster": world.cluster, "key": f"{code}:story", "code": code, "severity": severity, "message": f"{code}.",
            "numbers": numbers or {}, "raised_at": wall - dt.timedelta(minutes=minutes),
        }  # fmt: skip
        return Alert.objects.create(**(values | more))

    alert("drift", 4, numbers={"objects": 3})
    alert("card_lost", 50, numbers={"card": RTX, "quota": 12})
    alert("node_recut", 22, numbers={"node": "h200-03", "before": {H200: 8}, "after": {H200: 6}})
    alert(
        "quota_without_card", 180, numbers={"card": "NVIDIA-B200", "quota": 8}, acknowledged_by="admin",
        acknowledged_at=wall - dt.timedelta(minutes=170), note="The nodes come on Monday.",
    )  # fmt: skip
    alert("audit_broken", 15, "critical", {"chain": "platform", "entry": 31}, cluster=None)


def away(world: World) -> None:
    """The API server does not answer."""
    ClusterReach.objects.create(
        cluster=world.cluster, state="unreachable", since=timezone.now() - dt.timedelta(minutes=3),
        detail="https://10.0.0.1:6443: connection refused", kinds=["Node", "Pod"],
    )  # fmt: skip
