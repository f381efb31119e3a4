import datetime as dt
from typing import Any

import msgspec

from tidesched_web.common.hints import cut
from tidesched_web.engine.gangs import goes_on
from tidesched_web.engine.model import PodGroup, Reason
from tidesched_web.workloads.gang_rows import Seen
from tidesched_web.workloads.models import GangEventKind, GangState

LASTS = dt.timedelta(hours=1)
MOST = 2000


class LeftGang(msgspec.Struct, frozen=True):
    """``at`` and ``lost_at``: cluster's clock; ``wall_at``: when it left."""

    owner_uid: str
    at: dt.datetime
    wall_at: dt.datetime
    ran_at: dt.datetime | None
    lost_at: dt.datetime | None
    reclaim_id: int | None
    spared_until: dt.datetime | None


class LeftGangs:
    """The newest ``MOST`` of them by key, the oldest first; none is kept for longer than ``LASTS``."""

    def __init__(self) -> None:
        self._by_key: dict[str, LeftGang] = {}

    def __len__(self) -> int:
        return len(self._by_key)

    def note(self, key: str, left: LeftGang) -> None:
        self._by_key.pop(key, None)
        self._by_key[key] = left
        if len(self._by_key) > MOST:
            del self._by_key[next(iter(self._by_key))]

    def forget_old(self, wall_at: dt.datetime) -> None:
        while self._by_key:
            key = next(iter(self._by_key))
            if wall_at - self._by_key[key].wall_at < LASTS:
                return
            del self._by_key[key]

    def take(self, group: PodGroup, *, running_at: dt.datetime | None) -> LeftGang | None:
        """None for another gang of the name. Pods that ran on while their PodGroup was made anew restarted nothing."""
        left = self._by_key.pop(group.key, None)
        if left is None or not goes_on(group, owner_uid=left.owner_uid, at=left.at.timestamp()):
            return None
        return None if running_at is not None and running_at == left.ran_at else left


# The sentence of a reason may quote what an annotation says, up to a quarter of a mebibyte; lists show it.
MOST_MESSAGE = 1000


class TimelineEntry(msgspec.Struct, frozen=True):
    """``at`` None = the session's time; ``by_reclaim``: by the reclaim of this session."""

    kind: GangEventKind
    detail: dict[str, Any] = {}
    at: dt.datetime | None = None
    by_reclaim: bool = False
    reclaim_id: int | None = None


def reason_detail(reason: Reason) -> dict[str, Any]:
    """What is kept of a reason. Who held the cards is not: everybody who sees the gang reads its timeline."""
    numbers = {name: value for name, value in msgspec.to_builtins(reason.numbers).items() if name != "holders"}
    detail = {"code": str(reason.code), "numbers": numbers}
    # No number says what is wrong with a gang as it is written.
    return detail | {"message": cut(reason.message, MOST_MESSAGE)} if reason.code == "Misconfigured" else detail


def entries(
    gang: Seen, *, was_state: str, was_phase: str, was_reason: str, was_promised: bool, was_running: bool
) -> list[TimelineEntry]:
    values, found = gang.values, []
    if not was_state:
        found.append(TimelineEntry(GangEventKind.SUBMITTED, {"queue": values.queue_name}, at=values.submitted_at))
    if gang.running_at is not None and not was_running:
        found.append(TimelineEntry(GangEventKind.RUNNING, at=gang.running_at))
    if values.state == GangState.RECLAIMED and was_state != GangState.RECLAIMED:
        found.append(TimelineEntry(GangEventKind.RECLAIMED, by_reclaim=True))
    if was_state == GangState.RECLAIMED and values.state in (GangState.WAITING, GangState.ADMITTED):
        found.append(TimelineEntry(GangEventKind.RESTARTED))
    if values.phase == "Inqueue" and was_phase in ("", "Pending"):
        found.append(TimelineEntry(GangEventKind.ADMITTED))
    if gang.promised and not was_promised:
        found.append(TimelineEntry(GangEventKind.PROMISED))
    if values.state == GangState.RUNNING and was_state != GangState.RUNNING:
        found.append(TimelineEntry(GangEventKind.BOUND, {"ready": values.ready, "min_member": values.min_member}))
    if was_reason and gang.reason is None and values.state == was_state == GangState.RUNNING:
        found.append(TimelineEntry(GangEventKind.BOUND, {"ready": values.ready, "waits_no_more": True}))
    if gang.reason is not None and values.reason_code != was_reason:
        found.append(TimelineEntry(GangEventKind.REASON, reason_detail(gang.reason)))
    if values.state == GangState.FINISHED and was_state != GangState.FINISHED:
        found.append(TimelineEntry(GangEventKind.FINISHED))
    if values.state == GangState.FAILED and was_state != GangState.FAILED:
        found.append(TimelineEntry(GangEventKind.FAILED))
    return found


def came_back(
    *, ran_at: dt.datetime | None, lost_at: dt.datetime | None, reclaim_id: int | None, made_at: dt.datetime
) -> list[TimelineEntry]:
    """What a gang that restarts under a new PodGroup has behind it: that it ran, lost its cards, and was made anew."""
    found = [TimelineEntry(GangEventKind.RUNNING, at=ran_at)] if ran_at is not None else []
    if lost_at is not None:
        found.append(TimelineEntry(GangEventKind.RECLAIMED, at=lost_at, reclaim_id=reclaim_id))
    return [*found, TimelineEntry(GangEventKind.RESTARTED, at=made_at)]
