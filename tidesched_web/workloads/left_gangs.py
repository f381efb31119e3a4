"""Gangs that left and may come back under a new PodGroup: a few facts of each, bounded in time and number.

A controller that restarts a Job deletes its PodGroup and makes another one of the same name. That gang goes on with its
timeline; a new Job of the same name does not. The rule is the scheduler's own (`engine.same_gang`), which decides by it
who keeps a place in the queue and a cool-down.
"""

from __future__ import annotations

import datetime as dt

import msgspec

from tidesched_web.engine.model import PodGroup
from tidesched_web.engine.same_gang import goes_on

LASTS = dt.timedelta(hours=1)
MOST = 2000


class LeftGang(msgspec.Struct, frozen=True):
    """What is kept of a gang that had cards. ``at`` and ``lost_at``: cluster's clock; ``wall_at``: when it left.

    ``ran_at``: when it began to run; ``lost_at`` and ``reclaim_id``: when and by which reclaim it was evicted;
    ``spared_until``: the end of the cool-down after that.
    """

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
        """Drop those that left too long ago. O(dropped)."""
        while self._by_key:
            key = next(iter(self._by_key))
            if wall_at - self._by_key[key].wall_at < LASTS:
                return
            del self._by_key[key]

    def take(self, group: PodGroup, *, running_at: dt.datetime | None) -> LeftGang | None:
        """What ``group`` goes on from; None for another gang of the name, which ends what was kept under it.

        ``running_at``: since when its pods run. Pods that ran on while their PodGroup was made anew restarted nothing.
        """
        left = self._by_key.pop(group.key, None)
        if left is None or not goes_on(group, owner_uid=left.owner_uid, at=left.at.timestamp()):
            return None
        return None if running_at is not None and running_at == left.ran_at else left
