"""The jobs of the story: one that runs, one that is done, one that failed."""

from __future__ import annotations

import datetime as dt
from typing import Any

from django.utils import timezone

from tidesched_web.accounts.models import User
from tidesched_web.clusters.models import Cluster
from tidesched_web.jobs import services
from tidesched_web.jobs.models import Job, JobKind, JobState


def _gang(name: str, queue: str, cards: int, **more: Any) -> dict[str, Any]:
    return {
        "gang": name, "queue": queue, "service_type": "training", "priority": 20000, "cards": {"NVIDIA-H200": cards},
        **more,
    }  # fmt: skip


QUOTA = {
    "code": "WaitingForQuota",
    "numbers": {"resource": "NVIDIA-H200", "requested": 16, "limit": 24, "allocated": 24, "free": 0, "short": 16},
    "message": "",
}
IMPACT: dict[str, Any] = {
    "version": 1,
    "session": 1479,
    "session_id": 1,
    "at": "2026-11-20T10:00:00+00:00",
    "age_seconds": 1.2,
    "stale": False,
    "pods": 1840,
    "gangs": 230,
    "counts": {"gangs_run": 1, "gangs_admitted": 1, "queues_over": 1, "reclaimed_next": 1, "reclaimed_at_flood": 1},
    "gangs_run": [
        _gang("search/embed-lap2-012", "search-training", 16, becomes="running", pods_more=16, reason_before=QUOTA),
    ],
    "gangs_promised": [],
    "gangs_admitted": [
        _gang("research/llm-sft-lap2-021", "research-training", 8, becomes="admitted", pods_more=0, reason_before=None),
    ],
    "gangs_lose": [],
    "queues_over": [
        {"queue": "research-training", "service_type": "training", "resource": "NVIDIA-H200", "quota_before": 64,
         "quota": 48, "in_use": 56, "over": 8}
    ],
    "reclaimed_next": [
        {"gang": "research/llm-pretrain-lap2-004", "queue": "research-training", "cards": {"NVIDIA-H200": 32},
         "pods": 4, "work_lost_card_seconds": 46080.0, "reclaimer": "shop/ads-bid", "reclaimer_queue": "shop-online",
         "action": "reclaim"}
    ],
    "spared_next": [],
    "reclaimed_at_flood": [
        {"gang": "search/rank-v7", "queue": "search-training", "cards": {"NVIDIA-H200": 8}, "pods": 1,
         "work_lost_card_seconds": 3600.0, "reclaimer": "", "reclaimer_queue": "shop-online", "action": "reclaim"}
    ],
    "spared_at_flood": [],
    "flood": None,
    "card_hours": None,
    "pending": [],
}  # fmt: skip


def jobs(owner: User, cluster: Cluster) -> None:
    """All three are of ``owner``."""
    now = timezone.now()
    since = now - dt.timedelta(minutes=3)
    line = {"at": now.isoformat(), "text": "%(tried)s of %(recorded)s recorded sessions are tried."}
    states: list[tuple[str, str, dict[str, Any]]] = [
        (JobKind.IMPACT_DAY, "", {"state": JobState.FAILED, "error": "No session of the last day is kept any more."}),
        (JobKind.IMPACT, "change:1", {"state": JobState.DONE, "progress": 1.0, "result": IMPACT}),
        (
            JobKind.IMPACT_DAY,
            "change:1",
            {"state": JobState.RUNNING, "progress": 0.62, "log": [line | {"values": {"tried": 240, "recorded": 618}}]},
        ),
    ]
    for kind, subject, values in states:
        job = services.enqueue(
            kind=kind, owner=owner, actor=owner.get_username(), params={}, cluster=cluster, subject=subject
        )
        ended = now - dt.timedelta(minutes=1) if values["state"] != JobState.RUNNING else None
        Job.objects.filter(pk=job.pk).update(started_at=since, heard_at=now, finished_at=ended, attempt=1, **values)
