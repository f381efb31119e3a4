"""The tide as samples: gaps, physical cards, one meaning of training."""

from __future__ import annotations

import datetime as dt

import pytest

from tidesched_web.common.physical import share_of_board
from tidesched_web.console.figures import base, tide
from tidesched_web.console.figures.tide_rows import rows, runs
from tidesched_web.scheduling.selectors import TidePointRow

NOON = dt.datetime(2026, 3, 2, 12, tzinfo=dt.UTC)
HOUR = dt.timedelta(hours=1)
WHOLE, SLICE, HALF = "NVIDIA-A100", "NVIDIA-A100/mig-3g.40gb-mixed", "NVIDIA-H800/mps-80g*1/2"


def point(hours: float, *, card: str = WHOLE, wall: float | None = None, **more: int | None) -> TidePointRow:
    figures = {"total": 8000, "inference": 2000, "training": 4000, "borrowed": 1000, "foreign": 0, "idle": 2000}
    figures |= {"waiting": 500, "quota": 6000} | more
    return TidePointRow(NOON + HOUR * hours, NOON + HOUR * (hours if wall is None else wall), card, **figures)


def test_hours_without_sessions_are_a_gap_and_not_a_flat_line() -> None:
    points = [point(n / 12) for n in range(13)] + [point(4 + n / 12) for n in range(13)]
    found = rows(points, NOON, NOON + 5 * HOUR, now=NOON + 5 * HOUR, steps=10)
    assert [row is None for row in found] == [False] * 3 + [True] * 5 + [False] * 3
    assert len(list(runs(found))) == 2
    drawn = tide.figure(found, "light", unit="cards", quota=True)
    assert {trace.stackgroup for trace in drawn.data if trace.stackgroup} == {"cards0", "cards1"}
    last = drawn.data[0].x[-1]
    assert last <= "2026-03-02 13:00:00.000", "no area reaches into the gap"
    assert all(".2~f}" in trace.hovertemplate for trace in drawn.data), "349.14 cards, not 349.143"


def test_what_no_session_has_seen_since_is_not_drawn_as_measured() -> None:
    points = [point(n / 12) for n in range(13)]
    found = rows(points, NOON, NOON + 2 * HOUR, now=NOON + 2 * HOUR, steps=4)
    assert [row is None for row in found] == [False, False, False, True, True]
    assert rows(points, NOON, NOON + HOUR, now=NOON + HOUR, steps=4)[-1] is not None


def test_a_fast_clock_makes_no_gap() -> None:
    points = [point(n, wall=n / 144) for n in range(0, 48, 2)]
    found = rows(points, NOON, NOON + 46 * HOUR, now=NOON + 46 * HOUR / 144)
    assert None not in found


def test_slices_and_halves_count_as_parts_of_a_card() -> None:
    points = [point(0), point(0, card=SLICE), point(0, card=HALF)]
    row = rows(points, NOON, NOON + HOUR / 12, now=NOON, steps=1)[-1]
    assert row is not None
    assert (row.total, row.training, row.quota) == (16, 8, 12)
    alone = rows([points[1]], NOON, NOON + HOUR / 12, now=NOON, physical=False, steps=1)[-1]
    assert alone is not None
    assert alone.total == 8


@pytest.mark.parametrize(
    ("card", "parts"),
    [
        *((WHOLE, 1), (SLICE, 2), (HALF, 2), ("X/mig-1g.10gb-mixed", 7), ("X/mig-2g.20gb", 3)),
        *(("X/mig-4g.40gb", 1), ("X/mig-7g.80gb", 1), ("X/mps-80g*1/4", 4), ("X/mig-9g.1gb", 1)),
    ],
)
def test_how_many_of_a_slice_make_a_card(card: str, parts: int) -> None:
    assert share_of_board(card) * parts == 1


def test_training_means_all_of_it_and_borrowed_is_a_part() -> None:
    found = rows([point(0)], NOON, NOON + HOUR / 12, now=NOON, steps=1)
    drawn = tide.figure(found, "light", unit="cards", quota=False)
    training, borrowed = drawn.data[1], drawn.data[2]
    assert (training.customdata[-1], training.y[-1], borrowed.y[-1]) == (4, 3, 1)
    assert "Inference quota" not in {trace.name for trace in drawn.data}


def test_a_quota_that_was_not_recorded_is_no_zero() -> None:
    found = rows([point(0), point(0, card=HALF, quota=None)], NOON, NOON + HOUR / 12, now=NOON, steps=1)
    assert found[-1] is not None
    assert found[-1].quota is None


def test_labels_of_lines_that_end_together_at_the_top_stay_on_the_axis() -> None:
    labels = base.spread([{"y": 56.0}, {"y": 56.0}, {"y": 57.0}, {"y": 5.0}], 60.0, room=0.1)
    assert [round(label["y"]) for label in labels] == [48, 54, 60, 5], "apart, in their order, none above 60"
