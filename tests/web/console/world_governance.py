"""What the story adds for the pages that answer for quota: a log with signatures and a segment, and tide plans."""

from __future__ import annotations

import datetime as dt
from typing import Any
from unittest.mock import patch

from django.utils import timezone

from tests.quota_writes import write_tide_plan
from tests.web.console import world_drift
from tests.web.console.cast import A100, H200, L40S, RTX, World
from tidesched_web.accounts.models import Tenant
from tidesched_web.audit import check_services, segment_services, signing_services
from tidesched_web.audit import services as audit
from tidesched_web.common import request_context
from tidesched_web.quota import tide

WORK = list(tide.WEEKDAYS[:5])


def answered(world: World) -> None:
    """Add it."""
    _plans(world)
    _log(world)
    world_drift.meddled(world)


def _plans(world: World) -> None:
    night = {
        "name": "night", "days": list(tide.WEEKDAYS), "start": "19:00", "end": "07:00",
        "quota": {
            "search-suggest-inference": {L40S: {"add": -4}}, "maps-route-inference": {L40S: {"add": 6}},
            "vision-ocr-inference": {RTX: {"add": 4}},
        },
    }  # fmt: skip
    rush = {
        "name": "rush hour", "days": WORK, "start": "08:00", "end": "10:30",
        "quota": {"maps-route-inference": {L40S: {"set": 18}}},
    }  # fmt: skip
    ebb = {"name": "ebb", "days": ["sat", "sun"], "start": "00:00", "end": "24:00"}
    documents: dict[str, dict[str, Any]] = {
        "nights": {
            "enabled": True, "position": 1, "time_zone": "Asia/Shanghai", "layers": [night, rush],
            "exceptions": {"2026-03-06": "sun"},
        },
        "weekends": {"layers": [ebb | {"quota": {"voice-asr-inference": {A100: {"set": 8}}}}], "position": 2},
    }  # fmt: skip
    for name, document in documents.items():
        write_tide_plan(
            cluster=world.cluster, name=name, document=document, actor="admin", reason="The tide has a clock."
        )


def _log(world: World) -> None:
    chain, cluster = audit.cluster_chain(world.cluster.pk), world.cluster.pk
    search = Tenant.objects.get(slug="search").pk
    with request_context.carried(request_context.RequestContext("7f3a9c21d0b84e5fa1c2", "192.0.2.17")):
        for name, before, after in (
            ("search-training", {"card_quota": {H200: 24, A100: 32}, "weight": 1},
             {"card_quota": {H200: 28, A100: 32, L40S: 4}, "weight": 2}),
            ("search-rank-inference", {"card_quota": {H200: 16}}, {"card_quota": {H200: 12}}),
        ):  # fmt: skip
            audit.append(
                chain=chain, actor="mei", action="queue.update", object_type="queue", object_id=world.queues[name].pk,
                object_label=name, cluster_id=cluster, tenant_ids=[search], before=before, after=after,
                reason="Ranking moves to the smaller model, training gets what it leaves.",
            )  # fmt: skip
    reclaim = world.reclaims[-1]
    audit.append(
        chain=chain, actor="scheduler", action="reclaim.decide", object_type="reclaim", object_id=reclaim.pk,
        object_label=reclaim.reclaimer, cluster_id=cluster, tenant_ids=[search], reason=reclaim.rule,
        after={"needed": reclaim.needed, "freed": reclaim.freed},
    )  # fmt: skip
    audit.append(chain="platform", actor="admin", action="user.create", object_type="user", object_id=9,
                 object_label="newcomer", after={"username": "newcomer"})  # fmt: skip
    signing_services.sign_heads()
    with patch.object(segment_services, "YOUNGEST", dt.timedelta(0)):
        made = segment_services.seal(before=timezone.now(), actor="admin", reason="Every month.")
    segment_services.mark_exported(segment=made[0], actor="admin")
    check_services.ask(actor="admin")
