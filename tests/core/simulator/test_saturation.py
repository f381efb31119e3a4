"""How long card types are as good as full."""

from __future__ import annotations

from scheduler_core.simulator.saturation import Saturation


def test_time_counts_from_change_to_change():
    seen = Saturation({"a": 1000, "b": 1000, "c": 1000, "d": 1000}, 0.0)
    seen.taken("a", 950, 10.0)
    seen.taken("b", 1000, 20.0)
    seen.taken("c", 960, 30.0)
    seen.taken("a", 949, 50.0)
    seen.taken("d", 1000, 60.0)
    seen.bring_up(100.0)
    assert seen.seconds == {"a": 40.0, "b": 80.0, "c": 70.0, "d": 40.0}
    assert (seen.together, seen.longest) == (60.0, 40.0)


def test_what_is_freed_and_given_away_at_one_moment_breaks_no_stretch():
    seen = Saturation({"a": 1000, "b": 1000, "c": 1000}, 0.0)
    for card in "abc":
        seen.taken(card, 1000, 0.0)
    seen.taken("a", 500, 10.0)
    seen.taken("a", 1000, 10.0)
    seen.bring_up(20.0)
    assert seen.longest == 20.0


def test_turnover_between_two_sessions_does_not_end_a_stretch_of_means():
    seen = Saturation({"a": 1000, "b": 1000, "c": 1000, "d": 1000}, 0.0)
    for card in "abc":
        seen.taken(card, 1000, 0.0)
    seen.taken("a", 500, 290.0)
    seen.taken("a", 1000, 310.0)
    seen.taken("b", 0, 700.0)
    seen.taken("d", 1000, 900.0)
    seen.bring_up(1250.0)
    assert seen.steady.seconds == {"a": 1200.0, "b": 600.0, "c": 1200.0, "d": 300.0}
    assert (seen.steady.together, seen.steady.longest) == (900.0, 600.0)
    assert seen.longest == 390.0
