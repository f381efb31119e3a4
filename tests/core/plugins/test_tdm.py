"""tdm: windows minute by minute, budgets number by number, and what a policy may write."""

from __future__ import annotations

from zoneinfo import ZoneInfo

import pytest

from scheduler_core import parse_policy
from scheduler_core.algorithms.allowance import share_of
from scheduler_core.algorithms.tide_window import parse_window
from scheduler_core.model.errors import BadInput
from tests import builders as b

UTC = ZoneInfo("UTC")


@pytest.mark.parametrize(
    ("window", "inside", "outside"),
    [
        ("08:00-20:00", ["8:00", "19:59", "12:00"], ["7:59", "20:00", "0:00"]),
        ("22:00-06:00", ["22:00", "23:59", "0:00", "5:59"], ["6:00", "21:59", "12:00"]),
        ("20:00-24:00", ["20:00", "23:59"], ["0:00", "19:59"]),
        ("20:00-00:00", ["20:00", "23:59"], ["0:00", "19:59"]),
        ("0:00-24:00", ["0:00", "12:00", "23:59"], []),
        ("8:00-8:00", ["0:00", "7:59", "8:00", "23:59"], []),
        ("0:00-0:00", ["0:00", "12:00", "23:59"], []),
    ],
)
def test_windows_to_the_minute(window, inside, outside):
    for times, expected in ((inside, True), (outside, False)):
        for text in times:
            hours, minutes = map(int, text.split(":"))
            assert parse_window(window).contains(b.now(hours * 3600 + minutes * 60), UTC) is expected, text


def test_upstream_closes_at_midnight():
    window = parse_window("22:00-06:00")
    assert window.contains(b.now(23 * 3600), UTC, past_midnight=False)
    assert not window.contains(b.now(3600), UTC, past_midnight=False)
    assert parse_window("0:00-0:00").contains(b.now(3600), UTC, past_midnight=False)
    assert not parse_window("8:00-8:00").contains(b.now(3600), UTC, past_midnight=False)


def test_a_window_keeps_its_hours_over_a_change_of_the_clock():
    """In Berlin the clock goes from 2 to 3 on 29 March 2026: 01:30 UTC is 03:30 there."""
    seconds = (31 + 28 + 28) * 86_400 + 5_400
    assert parse_window("03:00-04:00").contains(b.now(seconds), ZoneInfo("Europe/Berlin"))


@pytest.mark.parametrize("text", ["", "8-20", "25:00-06:00", "08:60-09:00", "08:00-24:01", "08:00", "a:b-c:d"])
def test_what_is_no_window(text):
    with pytest.raises(ValueError, match="is not a window"):
        parse_window(text)


@pytest.mark.parametrize(("text", "total", "expected"), [("3", 10, 3), ("25%", 10, 3), ("100%", 7, 7), ("0%", 7, 0)])
def test_numbers_and_percentages(text, total, expected):
    assert share_of(text, total) == expected


@pytest.mark.parametrize("text", ["", "-1", "x", "1.5", "%", "9999999999"])
def test_what_is_neither(text):
    with pytest.raises(ValueError, match="neither a number nor a percentage"):
        share_of(text, 1)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ('{tdm.revocable-zone.a: "8-20"}', "is not a window"),
        ("{tdm.evict.period: soon}", "is not a duration"),
        ("{tdm.timezone: Nowhere/Town}", "no time zone"),
        ("{tdm.zone: x}", "unknown argument"),
    ],
)
def test_what_cannot_be_is_refused(arguments, says):
    text = f"actions: allocate\ntiers:\n- plugins:\n  - name: tdm\n    arguments: {arguments}\n"
    with pytest.raises(BadInput, match=says):
        parse_policy(text)
