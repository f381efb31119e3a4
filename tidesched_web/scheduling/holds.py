"""The one order of the reasons to send nothing, for sessions and for pages."""

import datetime as dt
import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tidesched_web.clusters.models import Cluster, ClusterMode

GUARD_KEY = "guard:evictions"
GUARD_CODE = "eviction_budget"
FOREIGN_CODE = "foreign_scheduler"


class Hold(enum.StrEnum):
    OBSERVE = "observe"
    QUOTA_ONLY = "quota"
    PAUSED = "paused"
    MODE_CHANGED = "mode_changed"
    POLICY_UNRELEASED = "policy_unreleased"
    GUARD = "guard"
    FOREIGN = "foreign_scheduler"


# Those that a cluster in mode schedule stands under until a person or another installation ends them.
STOPS = (Hold.PAUSED, Hold.FOREIGN, Hold.POLICY_UNRELEASED, Hold.GUARD)


@dataclass(frozen=True, slots=True)
class SendingStop:
    """Nothing is sent to a cluster. ``numbers`` are those of the guard; ``session``: where the guard stopped."""

    code: Hold
    since: dt.datetime | None
    by: str = ""
    reason: str = ""
    numbers: Mapping[str, Any] = field(default_factory=dict)
    session: int | None = None
    alert: int | None = None


def standing_hold(cluster: Cluster, *, released: bool, guarded: bool, foreign: bool = False) -> Hold | None:
    """The hold that lasts until it is ended; ``foreign``: another scheduler's alert is open."""
    if cluster.mode == ClusterMode.OBSERVE:
        return Hold.OBSERVE
    if cluster.mode == ClusterMode.QUOTA:
        return Hold.QUOTA_ONLY
    if cluster.paused:
        return Hold.PAUSED
    if foreign:
        return Hold.FOREIGN
    if not released:
        return Hold.POLICY_UNRELEASED
    return Hold.GUARD if guarded else None


def sending_stop(cluster: Any) -> SendingStop | None:
    """Modes in which Volcano schedules send no decisions in normal work: only a pause is a stop there."""
    if cluster.disconnected_at is not None:
        return None
    if cluster.paused:
        return SendingStop(Hold.PAUSED, cluster.paused_at, cluster.paused_by, cluster.paused_reason)
    alerts = {row["code"]: row for row in cluster.stop_rows}
    policy = cluster.newest_policy
    released = policy is None or policy["released_at"] is not None
    foreign = FOREIGN_CODE in alerts
    found = standing_hold(cluster, released=released, guarded=GUARD_CODE in alerts, foreign=foreign)
    if found is Hold.FOREIGN:
        row = alerts[FOREIGN_CODE]
        return SendingStop(found, _moment(row["raised_at"]), numbers=row["numbers"], alert=row["pk"])
    if found is Hold.POLICY_UNRELEASED:
        return SendingStop(found, _moment(policy["created_at"]), policy["created_by"])
    if found is Hold.GUARD:
        row = alerts[GUARD_CODE]
        at = _moment(row["raised_at"])
        return SendingStop(found, at, numbers=row["numbers"], session=row["session"], alert=row["pk"])
    return None


def _moment(text: str) -> dt.datetime:
    return dt.datetime.fromisoformat(text)
