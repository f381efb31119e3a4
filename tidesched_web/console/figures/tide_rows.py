import datetime as dt
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

from tidesched_web.common.physical import share_of_board
from tidesched_web.scheduling.selectors import TideMoment, TidePointRow

Row = TypeVar("Row")
MAX_POINTS = 320
# The tide is written every few minutes whatever happens: after so long without a point no session ran.
SILENCE = dt.timedelta(minutes=15)


@dataclass(frozen=True, slots=True)
class TideRow:
    """``training`` holds ``borrowed``; ``quota`` is None where it was not recorded."""

    at: dt.datetime
    total: float
    inference: float
    training: float
    borrowed: float
    foreign: float
    idle: float
    waiting: float
    quota: float | None


def silences(
    points: Sequence[TidePointRow | TideMoment], now: dt.datetime
) -> list[tuple[dt.datetime, dt.datetime | None]]:
    moments = sorted({(point.wall_at, point.at) for point in points})
    found: list[tuple[dt.datetime, dt.datetime | None]] = [
        (at, following) for (wall, at), (next_wall, following) in pairwise(moments) if next_wall - wall > SILENCE
    ]
    if moments and now - moments[-1][0] > SILENCE:
        found.append((moments[-1][1], None))
    return found


def rows(
    points: Iterable[TidePointRow],
    start: dt.datetime,
    end: dt.datetime,
    *,
    now: dt.datetime,
    physical: bool = True,
    steps: int = MAX_POINTS,
) -> list[TideRow | None]:
    """None stands for a gap; before the first point of all there is nothing, not zero."""
    ordered = sorted(points, key=lambda point: point.at)
    if not ordered or end <= start:
        return []
    start = max(start, ordered[0].at)
    if end <= start:
        return []
    holes, hole = silences(ordered, now), 0
    step = (end - start) / steps
    standing: dict[str, TidePointRow] = {}
    found: list[TideRow | None] = []
    place = 0
    for number in range(steps + 1):
        at = start + step * number
        while place < len(ordered) and ordered[place].at <= at:
            standing[ordered[place].card] = ordered[place]
            place += 1
        while hole < len(holes) and (until := holes[hole][1]) is not None and until <= at:
            hole += 1
        if hole < len(holes) and holes[hole][0] < at:
            found.append(None)
        elif standing:
            found.append(_sum(at, standing.values(), physical=physical))
    return found


def _sum(at: dt.datetime, standing: Iterable[TidePointRow], *, physical: bool) -> TideRow:
    total = inference = training = borrowed = foreign = idle = waiting = quota = 0.0
    known = True
    for point in standing:
        share = float(share_of_board(point.card)) / 1000 if physical else 0.001
        total += point.total * share
        inference += point.inference * share
        training += point.training * share
        borrowed += point.borrowed * share
        foreign += point.foreign * share
        idle += point.idle * share
        waiting += point.waiting * share
        known = known and point.quota is not None
        quota += (point.quota or 0) * share
    return TideRow(
        at,
        total=round(total, 6),
        inference=round(inference, 6),
        training=round(training, 6),
        borrowed=round(borrowed, 6),
        foreign=round(foreign, 6),
        idle=round(idle, 6),
        waiting=round(waiting, 6),
        quota=round(quota, 6) if known else None,
    )


def runs(series: Iterable[Row | None]) -> Iterator[list[Row]]:
    run: list[Row] = []
    for row in series:
        if row is not None:
            run.append(row)
        elif run:
            yield run
            run = []
    if run:
        yield run
