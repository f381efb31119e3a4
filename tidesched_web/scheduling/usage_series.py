import datetime as dt
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import NamedTuple

from tidesched_web.common.physical import share_of_board


class UsageRow(NamedTuple):
    key: tuple[int, str]
    at: dt.datetime
    quota: int
    allocated: int
    inqueue: int
    elastic: int

    @property
    def figures(self) -> tuple[int, int, int, int]:
        return self.quota, self.allocated, self.inqueue, self.elastic


class UsagePoint(NamedTuple):
    """The sum from ``at`` on, in cards; over several card types in physical cards."""

    at: dt.datetime
    quota: float
    allocated: float
    inqueue: float
    elastic: float


_NOTHING = (0, 0, 0, 0)
# A board is cut into 1 to 7 slices or up to 16 shares: of so many parts of it each is a whole number.
_PARTS = 720_720


def summed(
    standing: Iterable[UsageRow], changes: Iterable[UsageRow], *, physical: bool = False
) -> Iterator[UsagePoint]:
    """Sums are whole fractions of milli-cards: nothing drifts. ``physical``: a slice counts as its part of a board."""
    now: dict[tuple[int, str], tuple[int, int, int, int]] = {}
    total = list(_NOTHING)
    last: tuple[int, ...] | None = None
    for rows in (list(standing), changes):
        for at, group in groupby(rows, key=lambda row: row.at):
            for row in group:
                before, after = now.get(row.key, _NOTHING), row.figures
                parts = int(share_of_board(row.key[1]) * _PARTS) if physical else _PARTS
                for index in range(4):
                    total[index] += (after[index] - before[index]) * parts
                now[row.key] = after
            if tuple(total) != last:
                last = tuple(total)
                yield UsagePoint(at, *(round(figure / _PARTS / 1000, 6) for figure in total))


def resampled(
    points: Iterable[UsagePoint], start: dt.datetime, end: dt.datetime, step: dt.timedelta
) -> Iterator[UsagePoint]:
    waiting = iter(points)
    current: UsagePoint | None = None
    following = next(waiting, None)
    at = start
    while at <= end:
        while following is not None and following.at <= at:
            current, following = following, next(waiting, None)
        if current is not None:
            yield current._replace(at=at)
        at += step
