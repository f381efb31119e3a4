"""Budgets count in minutes of the cluster's clock, over what was really sent, so they survive a restart."""

import datetime as dt
from typing import Any

import msgspec
from django.db import connection
from django.utils import timezone

from tidesched_web.clusters.models import Cluster, PolicyRevision
from tidesched_web.engine.model import Result, ServiceType, Snapshot
from tidesched_web.engine.tide import running_cards
from tidesched_web.scheduling.holds import GUARD_KEY, Hold, standing_hold
from tidesched_web.scheduling.models import Alert, Session

# A person's release lets one session pass, if it comes this soon.
RELEASE_LASTS = dt.timedelta(minutes=10)


class Breach(msgspec.Struct, frozen=True):
    rule: str
    limit: float
    asked: float
    message: str

    def numbers(self) -> dict[str, Any]:
        return {"rule": self.rule, "limit": self.limit, "asked": self.asked}


def hold(cluster: Cluster, policy: PolicyRevision) -> Hold | None:
    """Why nothing may be sent now, or None. Read again right before sending: a pause must not wait for a session."""
    guarded = Alert.objects.filter(cluster=cluster, key=GUARD_KEY, resolved_at__isnull=True).exists()
    standing = standing_hold(cluster, released=policy.released_at is not None, guarded=guarded)
    if standing in (None, Hold.GUARD) and mode_changed(cluster):
        return Hold.MODE_CHANGED  # shown once as a dry run; the session after it goes on
    return standing


def mode_changed(cluster: Cluster) -> bool:
    newest = Session.objects.filter(cluster=cluster).order_by("-id").values_list("mode", flat=True).first()
    return newest is not None and newest != cluster.mode


def paused(cluster_id: int) -> bool:
    return Cluster.objects.filter(pk=cluster_id, paused_at__isnull=False).exists()


def breach(cluster: Cluster, result: Result, snapshot: Snapshot, *, now: dt.datetime) -> Breach | None:
    if not result.evictions:
        return None
    gangs = {victim.gang for reclaim in result.reclaims for victim in reclaim.victims}
    milli = sum(sum(victim.cards.values()) for reclaim in result.reclaims for victim in reclaim.victims)
    before_gangs, before_cards = _sent_in_the_last_minute(cluster.pk, now)
    asked_gangs, asked_cards = before_gangs + len(gangs), before_cards + milli / 1000
    if asked_gangs > cluster.evict_gangs_per_minute:
        return Breach(
            "gangs_per_minute", cluster.evict_gangs_per_minute, asked_gangs,
            f"{asked_gangs} gangs would have been evicted within a minute; "
            f"the budget is {cluster.evict_gangs_per_minute}.",
        )  # fmt: skip
    if asked_cards > cluster.evict_cards_per_minute:
        return Breach(
            "cards_per_minute", cluster.evict_cards_per_minute, asked_cards,
            f"{asked_cards:g} cards would have been taken back within a minute; "
            f"the budget is {cluster.evict_cards_per_minute}.",
        )  # fmt: skip
    return _share_breach(cluster, milli, len(gangs), running_cards(snapshot, result, ServiceType.TRAINING))


def _share_breach(cluster: Cluster, milli: int, gangs: int, running: int) -> Breach | None:
    """A single gang is never too much: where only one or two run, its share says nothing."""
    limit = cluster.evict_share_of_training
    if gangs > 1 and running and milli > limit * running:
        return Breach(
            "share_of_training", limit, round(milli / running, 3),
            f"{milli / 1000:g} of {running / 1000:g} running training cards would have been taken back by one "
            f"session; the limit is {limit:.0%}.",
        )  # fmt: skip
    return None


def _sent_in_the_last_minute(cluster_id: int, now: dt.datetime) -> tuple[int, float]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(DISTINCT v.gang), "
            "coalesce(sum((SELECT sum(c.value::numeric) FROM jsonb_each_text(v.cards) c)), 0) "
            "FROM scheduling_reclaim r JOIN scheduling_reclaimvictim v ON v.reclaim_id = r.id "
            "WHERE r.cluster_id = %s AND r.at > %s AND r.at <= %s AND r.source = 'own' AND r.state <> 'cancelled'",
            [cluster_id, now - dt.timedelta(minutes=1), now],
        )
        gangs, cards = cursor.fetchone()
    return int(gangs), float(cards)


def use_release(cluster_id: int, session_number: int, wanted: Breach) -> bool:
    """True for an unused release that covers ``wanted``: the same budget, and no more than the person was shown."""
    recent = timezone.now() - RELEASE_LASTS
    newest = (
        Alert.objects.filter(cluster_id=cluster_id, key=GUARD_KEY, resolved_at__gte=recent)
        .order_by("-resolved_at")
        .first()
    )
    if newest is None or "used_by" in newest.numbers:
        return False
    if newest.numbers.get("rule") != wanted.rule or wanted.asked > newest.numbers.get("asked", 0):
        return False
    newest.numbers = {**newest.numbers, "used_by": session_number}
    newest.save(update_fields=["numbers"])
    return True
