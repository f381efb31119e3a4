"""Quota by the clock: weekdays, midnight, exceptions, clock changes, several plans, floors, rules at every moment."""

import datetime as dt
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tidesched_web.quota import tide, tide_document, tide_rules, tide_turns
from tidesched_web.quota.tide_overlaps import overlaps
from tidesched_web.quota.tree_rules import ROOT, Holder, Tree, breaches

UTC = dt.UTC
H = "NVIDIA-H200"
ALL = list(tide.WEEKDAYS)
BASE = {"train": {H: 8}, "chat": {H: 10}}


def layer(start="22:00", end="07:00", days=ALL, quota=None, name="night"):
    return {"name": name, "days": days, "start": start, "end": end, "quota": quota or {"train": {H: {"add": 4}}}}


def document(*layers, zone="UTC", position=0, exceptions=None, enabled=True):
    given_ = {
        "enabled": enabled, "position": position, "time_zone": zone, "exceptions": exceptions or {},
        "layers": list(layers),
    }  # fmt: skip
    found, faults = tide_document.canonical(given_)
    assert faults == []
    return found


def plan(*layers, name="plan", **more):
    return tide.plan_of(name, document(*layers, **more))


def at(text, zone="UTC"):
    return dt.datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone))


def train_at(moment, *plans, floors=None):
    return tide.effective_quota(BASE, plans, moment, floors)["train"][H]


@pytest.mark.parametrize(
    ("moment", "cards"),
    [
        ("2026-03-04T21:59:59", 8),
        ("2026-03-04T22:00:00", 12),
        ("2026-03-05T00:00:00", 12),
        ("2026-03-05T06:59:59", 12),
        ("2026-03-05T07:00:00", 8),
    ],
)
def test_a_layer_goes_on_past_midnight(moment, cards):
    assert train_at(at(moment), plan(layer())) == cards


def test_a_layer_belongs_to_the_day_on_which_it_begins():
    nights = plan(layer(days=["fri"]))
    assert train_at(at("2026-03-06T23:00:00"), nights) == 12  # a Friday
    assert train_at(at("2026-03-07T06:00:00"), nights) == 12
    assert train_at(at("2026-03-07T23:00:00"), nights) == 8
    assert train_at(at("2026-03-06T06:00:00"), nights) == 8


def test_an_exception_makes_a_date_count_as_another_day_or_as_none():
    weekend = plan(layer("08:00", "20:00", ["sat", "sun"]), exceptions={"2026-10-01": "sun", "2026-10-03": "none"})
    assert train_at(at("2026-10-01T12:00:00"), weekend) == 12, "a holiday on a Thursday"
    assert train_at(at("2026-10-03T12:00:00"), weekend) == 8, "a Saturday that does not count"
    assert train_at(at("2026-10-04T12:00:00"), weekend) == 12


def test_a_layer_that_a_person_has_ended_is_closed_until_its_next_start():
    ended = plan(layer() | {"ended_at": "2026-03-05T03:00:00+01:00"})
    for moment, cards in (("05T01:59:59", 12), ("05T02:00:00", 8), ("05T06:59:59", 8), ("05T22:00:00", 12)):
        assert train_at(at(f"2026-03-{moment}"), ended) == cards, moment
    assert train_at(at("2026-03-04T23:00:00"), ended) == 12, "before that it was open"
    assert tide.next_change([ended], at("2026-03-05T02:30:00")) == at("2026-03-05T22:00:00")
    assert tide.last_change([ended], at("2026-03-05T02:30:00")) == at("2026-03-05T02:00:00")
    (one,) = tide.ended_layers(ended, at("2026-03-05T03:00:00"))
    assert (one.at, one.opens_next) == (at("2026-03-05T02:00:00"), at("2026-03-05T22:00:00"))
    for moment in ("2026-03-05T01:00:00", "2026-03-05T07:00:00", "2026-03-05T23:00:00"):
        assert tide.ended_layers(ended, at(moment)) == []
    ahead = tide.moments([ended], at("2026-03-05T03:00:00"), days=2)
    assert set(ahead) == {(), ((0, 0),)}


def test_when_a_layer_was_ended_is_kept_to_the_second_and_with_its_zone():
    written = document(layer() | {"ended_at": "2026-03-05T10:00:00.25+08:00"})
    assert written["layers"][0]["ended_at"] == "2026-03-05T02:00:00+00:00"
    assert "ended_at" not in document(layer() | {"ended_at": None})["layers"][0]
    for wrong, code in (
        ("2026-03-05T02:00:00", "invalid"), ("tonight", "invalid"), (2, "invalid"),
        ("0001-01-01T00:00:00+10:00", "out_of_years"),
    ):  # fmt: skip
        _found, faults = tide_document.canonical({"layers": [layer() | {"ended_at": wrong}]})
        assert [(fault.field, fault.code) for fault in faults] == [("/layers/0/ended_at", code)], wrong


def test_what_plans_make_of_a_figure_now_or_next_is_one_stretch():
    nights, more = plan(layer(), name="nights"), plan(layer("23:00", "24:00"), name="more")
    evening, noon = at("2026-03-04T22:30:00"), at("2026-03-04T12:00:00")
    (now,) = tide_turns.turns(BASE, [nights], evening)
    assert (now.queue, now.card, now.base, now.cards, now.plans, now.is_open) == ("train", H, 8, 12, ("nights",), True)
    assert (now.start, now.end) == (at("2026-03-04T22:00:00"), at("2026-03-05T07:00:00"))
    (then,) = tide_turns.turns(BASE, [nights], noon)
    assert (then.start, then.end, then.is_open, then.lends, then.by) == (now.start, now.end, False, False, 4)
    (first,) = tide_turns.turns(BASE, [more, nights], evening)
    assert (first.cards, first.end) == (12, at("2026-03-05T07:00:00")), "when the base holds again"
    assert [(one.at, one.cards) for one in first.changes] == [
        (at("2026-03-04T23:00:00"), 16), (at("2026-03-05T00:00:00"), 12)
    ]  # fmt: skip
    always = plan(layer("00:00", "24:00", quota={"chat": {H: {"add": -3}}}), name="always")
    (lent,) = tide_turns.turns(BASE, [always], noon)
    assert (lent.start, lent.end, lent.lends, lent.by) == (None, None, True, 3)
    rare = plan(layer(days=["mon"]), exceptions={"2026-03-09": "none"})
    assert tide_turns.turns(BASE, [rare], noon) == [], "not in the next eight days"
    assert tide_turns.turns({"chat": {H: 10}}, [nights], evening) == [], "no queue of theirs"


def test_two_plans_on_one_figure_are_one_stretch_with_parts():
    """One lends at every hour, one lends more by night: nothing comes back but what the second one lends."""
    whole = plan(layer("00:00", "24:00", quota={"chat": {H: {"add": -6}}}), name="always")
    night = plan(layer("14:00", "23:00", quota={"chat": {H: {"add": -4}}}), name="night")
    plans = tide.in_order([night, whole])
    (noon,) = tide_turns.turns({"chat": {H: 16}}, plans, at("2026-03-04T12:00:00"))
    assert (noon.cards, noon.plans, noon.end) == (10, ("always",), None)
    assert noon.start == at("2026-03-03T23:00:00"), "when the night before was over"
    assert [(one.at, one.cards, one.plans) for one in noon.changes[:2]] == [
        (at("2026-03-04T14:00:00"), 6, ("always", "night")), (at("2026-03-04T23:00:00"), 10, ("always",))
    ]  # fmt: skip
    assert (noon.least, noon.standing) == (6, ("always",))
    (evening,) = tide_turns.turns({"chat": {H: 16}}, plans, at("2026-03-04T18:00:00"))
    assert (evening.cards, evening.start, evening.by, evening.end) == (6, at("2026-03-04T14:00:00"), 10, None)
    assert (evening.changes[0].cards, evening.least) == (10, 6)


def test_a_layer_that_follows_on_itself_changes_nothing():
    whole = plan(layer("00:00", "24:00"), name="always")
    assert tide.next_change([whole], at("2026-03-04T12:00:00")) is None
    assert tide.last_change([whole], at("2026-03-04T12:00:00")) is None
    week = plan(layer("00:00", "24:00", ["mon", "tue", "wed", "thu", "fri"]))
    assert tide.next_change([week], at("2026-03-04T12:00:00")) == at("2026-03-07T00:00:00"), "the end of Friday"
    assert tide.last_change([week], at("2026-03-04T12:00:00")) == at("2026-03-02T00:00:00")


def test_the_time_zone_of_the_plan_decides():
    shanghai = plan(layer(), zone="Asia/Shanghai")
    assert train_at(at("2026-03-04T14:00:00"), shanghai) == 12
    assert train_at(at("2026-03-04T22:00:00"), shanghai) == 12
    assert train_at(at("2026-03-04T23:00:00"), shanghai) == 8


def test_the_whole_day_and_neighbours_leave_no_gap():
    whole = plan(layer("00:00", "24:00"))
    assert all(train_at(at(f"2026-03-04T{hour:02}:00:00"), whole) == 12 for hour in range(24))
    two = plan(layer("00:00", "12:00"), layer("12:00", "24:00"))
    assert all(train_at(at(f"2026-03-04T{hour:02}:00:00"), two) == 12 for hour in range(24))


BERLIN = "Europe/Berlin"  # 2026-03-29 02:00 → 03:00, 2026-10-25 03:00 → 02:00


def test_a_time_that_does_not_happen_means_the_jump():
    spring = plan(layer("02:30", "05:00", name="early"), zone=BERLIN)
    jump = dt.datetime(2026, 3, 29, 1, tzinfo=UTC)
    assert train_at(jump - dt.timedelta(seconds=1), spring) == 8
    assert train_at(jump, spring) == 12
    inside = plan(layer("02:10", "02:50"), zone=BERLIN)
    assert all(train_at(jump + dt.timedelta(minutes=step), inside) == 8 for step in range(-60, 60, 5))


def test_a_time_that_happens_twice_means_its_first_occurrence():
    autumn = plan(layer("02:30", "06:00"), zone=BERLIN)
    first = dt.datetime(2026, 10, 25, 0, 30, tzinfo=UTC)
    assert train_at(first - dt.timedelta(seconds=1), autumn) == 8
    assert train_at(first, autumn) == 12
    ending = plan(layer("00:00", "02:30"), zone=BERLIN)
    assert train_at(first - dt.timedelta(seconds=1), ending) == 12
    assert train_at(first, ending) == 8
    assert train_at(first + dt.timedelta(hours=1), ending) == 8, "not again when the clock shows 02:30 once more"


def test_a_day_that_a_zone_has_skipped_and_a_midnight_that_does_not_happen():
    samoa = plan(layer("09:00", "17:00"), zone="Pacific/Apia")  # there was no 2011-12-30
    day = [dt.datetime(2011, 12, 30, 10, tzinfo=UTC) + dt.timedelta(minutes=10 * step) for step in range(144)]
    shown = [moment.astimezone(ZoneInfo("Pacific/Apia")) for moment in day if train_at(moment, samoa) == 12]
    assert {local.date() for local in shown} <= {dt.date(2011, 12, 29), dt.date(2011, 12, 31)}
    assert all(9 <= local.hour < 17 for local in shown)
    # Beirut's clocks jump at midnight: 00:00 of 2026-03-29 does not happen.
    beirut = plan(layer("00:00", "01:30"), zone="Asia/Beirut")
    jump = dt.datetime(2026, 3, 28, 22, tzinfo=UTC)
    assert [train_at(jump + dt.timedelta(minutes=step), beirut) for step in (-1, 0, 29, 30)] == [8, 12, 12, 8]


zones = st.sampled_from([BERLIN, "America/New_York", "Asia/Shanghai", "Australia/Lord_Howe", "Asia/Beirut", "UTC"])
days_of_2026 = st.dates(dt.date(2026, 1, 1), dt.date(2026, 12, 30))
edges = st.integers(0, 24 * 60 - 1)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(zones, days_of_2026, st.lists(edges, min_size=2, max_size=6, unique=True))
def test_layers_that_follow_each_other_never_overlap_nor_leave_a_gap(zone, day, cuts):
    cuts = sorted(cuts)
    here = ZoneInfo(zone)
    moments = [tide.instant(day, cut, here) for cut in cuts]
    assert moments == sorted(moments)
    ring = [*pairwise(cuts), (cuts[-1], cuts[0])]
    follows = plan(*(layer(tide.clock(a), tide.clock(b), quota={"train": {H: {"add": 1}}}) for a, b in ring), zone=zone)
    start = dt.datetime.combine(day, dt.time(), UTC)
    for step in range(0, 26 * 60, 13):
        assert train_at(start + dt.timedelta(minutes=step), follows) == 9


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(zones, days_of_2026, edges, edges, st.sets(st.sampled_from(ALL), min_size=1))
def test_the_next_change_is_the_next_moment_at_which_anything_differs(zone, day, start, end, days):
    if start == end:
        return
    one = [plan(layer(tide.clock(start), tide.clock(end), sorted(days)), zone=zone)]
    now = dt.datetime.combine(day, dt.time(11, 7), UTC)
    found = tide.next_change(one, now, days=9)
    standing = tide.open_layers(one, now)
    step = now
    while found is None or step < found:
        assert tide.open_layers(one, step) == standing
        step += dt.timedelta(minutes=29)
        if step > now + dt.timedelta(days=7):
            break
    if found is not None:
        assert tide.open_layers(one, found) != standing or start == end


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(zones, days_of_2026, edges, st.integers(1, 60))
def test_the_steps_of_a_span_are_what_is_open_in_it_also_on_its_last_local_day(zone, day, start, hours):
    one = [plan(layer(tide.clock(start), tide.clock((start + 90) % (24 * 60)), ALL), zone=zone)]
    first = dt.datetime.combine(day, dt.time(11, 7), UTC)
    steps = tide.steps({}, one, first, first + dt.timedelta(hours=hours))
    assert (steps[0].start, steps[-1].end) == (first, first + dt.timedelta(hours=hours))
    for step in steps:
        moment = step.start
        while moment < step.end:
            assert tide.open_layers(one, moment) == step.open
            moment += dt.timedelta(minutes=29)


def test_plans_apply_in_order_and_layers_in_the_order_in_which_they_stand():
    sets = document(layer("00:00", "24:00", quota={"train": {H: {"set": 20}}}), position=1)
    adds = document(layer("00:00", "24:00", quota={"train": {H: {"add": -5}}}), position=2)
    noon = at("2026-03-04T12:00:00")
    assert train_at(noon, *tide.enabled_plans({"b": sets, "a": adds})) == 15
    assert train_at(noon, *tide.enabled_plans({"a": sets | {"position": 3}, "b": adds})) == 20
    assert train_at(noon, *tide.enabled_plans({"a": sets | {"enabled": False}, "b": adds})) == 3
    takes = layer("00:00", "24:00", quota={"train": {H: {"add": -50}}})
    assert train_at(noon, plan(takes)) == 0, "never below nothing"
    stranger = layer("00:00", "24:00", quota={"gone": {H: {"set": 4}}})
    assert tide.effective_quota(BASE, [plan(stranger)], noon) == BASE


def turns(act, cards, name="turn", start="22:00", end="07:00", days=ALL, **more):
    return plan(layer(start, end, days, {"train": {H: {act: cards}}}), name=name, **more)


@pytest.mark.parametrize(
    ("first", "second", "said", "decides"),
    [
        (("add", -4), ("set", 20), "overlap decides it then (= 20); what night does to it (−4) has no effect.", True),
        (("set", 6), ("add", -4), "night makes it = 6, then overlap changes that (−4).", True),
        (("add", -4), ("add", 2), "Both count: −4 and +2 add up.", False),
    ],
)
def test_of_two_plans_that_turn_one_figure_the_order_says_which_decides(first, second, said, decides):
    early, late = turns(*first, name="night"), turns(*second, name="overlap", start="20:00", end="23:00")
    (found,) = overlaps([late, early], at("2026-03-04T12:00"))
    assert (found.first.name, found.last.name, found.adds_up) == ("night", "overlap", not decides)
    assert (found.start, found.end) == (at("2026-03-04T22:00"), at("2026-03-04T23:00"))
    words = found.sentence()
    assert "both turn the H200 quota of queue train" in words
    assert "next on Wednesday 2026-03-04 from 22:00 to 23:00 (UTC)." in words
    assert said in words
    assert ("Both plans have position 0, so the later name applies last." in words) is decides
    # What is said of the order is what the effective quota does.
    together = train_at(at("2026-03-04T22:30"), *tide.in_order([late, early]))
    assert together == train_at(at("2026-03-04T22:30"), early, late)
    if found.replaces:
        assert together == second[1]


def test_an_overlap_is_found_in_its_next_hours_whatever_zones_days_and_exceptions():
    now = at("2026-03-04T12:00")  # a Wednesday
    night = turns("set", 9, name="a", days=["sat"], position=2)
    day = turns("set", 7, name="b", start="06:00", end="08:00", days=["sun"], position=1)
    (found,) = overlaps([night, day], now)
    assert (found.first.name, found.start) == ("b", at("2026-03-08T06:00")), "the night of Saturday ends on Sunday"
    assert "Position 2 applies after position 1." in found.sentence()
    assert overlaps([night, day], now, about="c") == []
    # Six o'clock of Sunday comes eight hours earlier in Shanghai, when the night of Saturday begins in UTC.
    early = turns("set", 7, "b", "05:00", "06:30", ["sun"], zone="Asia/Shanghai")
    assert [one.end for one in overlaps([night, early], now)] == [at("2026-03-07T22:30")]
    assert overlaps([night, turns("set", 7, "b", "05:00", "06:00", ["sun"], zone="Asia/Shanghai")], now) == []
    never = turns("set", 7, name="b", start="12:00", end="13:00")
    assert overlaps([night, never], now) == []
    once = turns("set", 7, name="b", start="23:00", end="24:00", days=["sun"], exceptions={"2026-10-03": "sun"})
    (found,) = overlaps([night, once], now)
    assert found.start == at("2026-10-03T23:00")
    running = overlaps([night, day], at("2026-03-08T06:30"))
    assert running[0].start == at("2026-03-08T06:00"), "one that is open now is the next"
    assert "in the same hours, now until Sunday 07:00 (UTC)." in running[0].sentence()
    others = plan(layer(quota={"chat": {H: {"set": 1}}}), name="b")
    assert overlaps([night, others], now) == [], "another queue"


def test_a_plan_never_takes_what_inference_uses():
    takes = plan(layer("00:00", "24:00", quota={"chat": {H: {"set": 2}}}))
    noon = at("2026-03-04T12:00:00")

    def chat(used):
        return tide.effective_quota(BASE, [takes], noon, {"chat": {H: used}})["chat"][H]

    assert [chat(used) for used in (0, 2, 3, 7, 10)] == [2, 2, 3, 7, 10]
    assert chat(14) == 10, "what a person took is not given back by a plan"


def tree(project_limit=None, hardware=40, train=8, chat=10, quiet=0):
    inference = {"inference": {H: project_limit}} if project_limit is not None else {}
    holders = [
        Holder("tenant:1", "acme"),
        Holder("project:1", "bots", "tenant:1", inference),
        Holder("queue:1", "chat", "project:1", {"inference": {H: chat}}),
        Holder("queue:2", "quiet", "project:1", {"inference": {H: quiet}}),
        Holder("queue:3", "train", ROOT, {"training": {H: train}}),
    ]
    return Tree({holder.key: holder for holder in holders}, {H: hardware}, {"inference": 1.0, "training": 1.0})


NOW = at("2026-03-04T12:00:00")


def test_the_first_moment_that_breaches_is_found_and_said():
    plans = {"nights": document(layer(quota={"train": {H: {"add": 40}}}), zone="Asia/Shanghai")}
    (found,) = tide_rules.first_breaches(tree(), tree(), {}, plans, now=NOW)
    assert (found.plan, found.breach.requested, found.breach.limit) == ("nights", 48, 40)
    assert found.layers == ["nights: night"]
    said = found.sentence()
    assert said.startswith("On Wednesday 2026-03-04 at 22:00 (Asia/Shanghai) the training quotas below")
    assert "below the hardware of the cluster would add up to 48 × H200, but it has 40." in said
    unnamed = {"nights": document(layer(quota={"train": {H: {"add": 40}}}, name=""), zone="Asia/Shanghai")}
    (found,) = tide_rules.first_breaches(tree(), tree(), {}, unnamed, now=NOW)
    assert found.layers == ["nights: layer 1"]


def test_a_moment_that_is_over_today_is_said_as_it_comes_next():
    """The first breach to come, and no hour of this morning at which the same layers were open."""
    late = layer("22:00", "07:00", quota={"train": {H: {"add": 40}}}, name="late")
    early = layer("20:00", "06:30", quota={"quiet": {H: {"add": 1}}}, name="early")
    plans = {"nights": document(late, early)}
    (found,) = tide_rules.first_breaches(tree(), tree(), {}, plans, now=NOW)
    assert found.at == at("2026-03-04T22:00:00")
    (found,) = tide_rules.first_breaches(tree(), tree(), {}, plans, now=at("2026-03-04T23:10:00"))
    assert found.at == at("2026-03-04T23:10:00"), "it is so now"


def test_moves_inside_a_limit_hold_only_when_they_meet():
    moves = layer(quota={"chat": {H: {"add": -6}}, "quiet": {H: {"add": 6}}})
    late = layer("23:00", "06:00", quota={"quiet": {H: {"add": 1}}}, name="late")
    tight = tree(project_limit=10)
    assert tide_rules.first_breaches(tight, tight, {}, {"p": document(moves)}, now=NOW) == []
    (found,) = tide_rules.first_breaches(tight, tight, {}, {"p": document(moves, late)}, now=NOW)
    assert (found.at.hour, found.holder, found.breach.requested) == (23, "bots", 11)
    assert found.layers == ["p: night", "p: late"]


def test_a_holiday_on_which_two_layers_meet_is_found():
    days = layer("08:00", "20:00", ["mon"], {"train": {H: {"add": 20}}}, "work")
    rest = layer("08:00", "20:00", ["sun"], {"train": {H: {"add": 20}}}, "rest")
    apart = {"a": document(days), "b": document(rest)}
    assert tide_rules.first_breaches(tree(), tree(), {}, apart, now=NOW) == []
    meet = {"a": document(days), "b": document(rest, exceptions={"2026-10-05": "sun"})}  # a Monday
    (found,) = tide_rules.first_breaches(tree(), tree(), {}, meet, now=NOW)
    assert found.at == at("2026-10-05T08:00:00")


def test_the_rule_is_monotone():
    plans = {"nights": document(layer(quota={"train": {H: {"add": 30}}}))}
    lost = tree(hardware=30)
    assert tide_rules.first_breaches(lost, lost, plans, plans, now=NOW) == [], "nobody's doing"
    lower = tree(hardware=30, train=6)
    assert tide_rules.first_breaches(lost, lower, plans, plans, now=NOW) == []
    more = tree(hardware=30, train=9)
    assert len(tide_rules.first_breaches(lost, more, plans, plans, now=NOW)) == 1, "an edit of the base enlarges it"


def figures_worked_out(count, monkeypatch):
    """How often a layer is applied to a figure while the year of so many layers is walked, each on its own queue."""
    holders = [Holder(f"queue:{n}", f"q{n}", ROOT, {"training": {H: 1}}) for n in range(count)]
    wide = Tree({one.key: one for one in holders}, {H: 10 * count}, {"inference": 1.0, "training": 1.0})
    layers = [
        layer(f"{n // 60:02}:{n % 60:02}", f"{12 + n // 60:02}:{n % 60:02}", quota={f"q{n}": {H: {"add": 1}}})
        for n in range(count)
    ]
    plans, calls, on = {"p": document(*layers)}, [], tide.Amount.on
    assert len(tide.moments_ahead(plans, NOW)) == 2 * count
    monkeypatch.setattr(tide.Amount, "on", lambda amount, figure: calls.append(1) or on(amount, figure))
    assert tide_rules.first_breaches(wide, wide, {}, plans, now=NOW) == []
    monkeypatch.setattr(tide.Amount, "on", on)
    return len(calls)


def test_a_year_of_twice_as_many_layers_is_twice_the_work(monkeypatch):
    """Each of its moments costs what opens and closes there, not what is open."""
    few, many = (figures_worked_out(count, monkeypatch) for count in (20, 40))
    assert few >= 20
    assert many <= 2.2 * few


def test_an_edit_of_the_base_asks_no_second_time_which_layers_are_open(monkeypatch):
    """With plans that stay the same the moments are those of before, however many sums were exceeded already."""
    plans = {
        "nights": document(layer(quota={"train": {H: {"add": 30}}}), layer("01:00", "05:00"), layer("02:00", "03:00"))
    }
    lost, asked, look = tree(hardware=30), [], tide.open_layers
    monkeypatch.setattr(tide, "open_layers", lambda plans, now: asked.append(1) or look(plans, now))
    assert tide_rules.first_breaches(lost, lost, plans, plans, now=NOW) == []
    assert len(asked) <= 2, "what is open at the start"


def test_what_a_floor_keeps_holds_back_what_was_to_be_given():
    tight = tree(project_limit=10)
    moves = plan(layer("00:00", "24:00", quota={"chat": {H: {"add": -6}}, "quiet": {H: {"add": 6}}}))
    base = tide_rules.base_of(tight)
    for used, expected in ((0, (4, 6)), (5, (5, 5)), (9, (9, 1)), (10, (10, 0))):
        wanted = tide.effective_quota(base, [moves], NOW, {"chat": {H: used}})
        held = tide_rules.within_tree(tight, wanted)
        assert (held["chat"][H], held["quiet"][H]) == expected
    assert tide_rules.within_tree(tight, base) == base


@pytest.mark.parametrize(
    ("change", "field", "words"),
    [
        ({"time_zone": "Asia/Shangai"}, "/time_zone", "Did you mean “Asia/Shanghai”?"),
        ({"time_zone": "北京"}, "/time_zone", "There is no time zone “北京”. Did you mean “Asia/Shanghai”?"),
        ({"time_zone": "北京时间"}, "/time_zone", "Did you mean “Asia/Shanghai”?"),
        ({"time_zone": "utc+8"}, "/time_zone", "Did you mean “Asia/Shanghai”?"),
        ({"time_zone": "new york"}, "/time_zone", "Did you mean “America/New_York”?"),
        ({"time_zone": "../etc/passwd"}, "/time_zone", "no time zone"),
        ({"layer": []}, "/layer", "Did you mean 'layers'"),
        ({"enabled": 1}, "/enabled", "true or false"),
        ({"position": -1}, "/position", "whole number"),
        ({"exceptions": {"tomorrow": "mon"}}, "/exceptions/tomorrow", "no date"),
        ({"exceptions": {"2026-10-01": "holiday"}}, "/exceptions/2026-10-01", "counts as"),
        ({"layers": [layer("25:00")]}, "/layers/0/start", "no time of day"),
        ({"layers": [layer("22:00", "22:00")]}, "/layers/0/end", "never opens"),
        ({"layers": [layer("24:00", "07:00")]}, "/layers/0/start", "no time of day"),
        ({"layers": [layer(days=["mo"])]}, "/layers/0/days", "none of mon"),
        ({"layers": [layer(quota={"train": {H: {"mul": 2}}})]}, f"/layers/0/quota/train/{H}", "Write"),
        ({"layers": [layer(quota={"train": {H: {"set": -1}}})]}, f"/layers/0/quota/train/{H}/set", "whole number"),
        ({"layers": [layer() | {"form": "x"}]}, "/layers/0/form", "no field 'form'"),
        ({"layers": [layer(quota={"a/b": {H: 4}})]}, f"/layers/0/quota/a~1b/{H}", "Write"),
    ],
)
def test_what_is_wrong_is_said_at_its_place(change, field, words):
    _found, faults = tide_document.canonical(change)
    assert [fault.field for fault in faults] == [field]
    assert words in faults[0].detail


def test_documents_are_canonical_and_name_what_is_not_there():
    found, faults = tide_document.canonical({"layers": [layer(1320, 420, ["sun", "mon"])]})
    assert (faults, found["layers"][0]["start"], found["layers"][0]["days"]) == ([], "22:00", ["mon", "sun"])
    assert tide_document.canonical({"layers": [layer(1320.0, 420.0, ["mon"])]})[1] == []
    assert tide_document.canonical({"layers": [layer(1320.5, 420, ["mon"])]})[1] != []
    assert tide_document.canonical(found) == (found, [])
    (queue,) = tide_document.unknown_names(found, ["training"], [H])
    assert (queue.field, queue.code) == ("/layers/0/quota/train", "unknown_queue")
    assert "Did you mean 'training'?" in queue.detail


limits = st.none() | st.integers(0, 12)
small_trees = st.builds(
    tree,
    project_limit=limits, hardware=st.integers(4, 30), train=st.integers(0, 20), chat=st.integers(0, 12),
    quiet=st.integers(0, 6),
)  # fmt: skip
small_amounts = st.builds(dict, set=st.integers(0, 20)) | st.builds(dict, add=st.integers(-8, 8))
small_layers = st.builds(
    layer,
    start=st.sampled_from(["00:00", "06:00", "22:00"]), end=st.sampled_from(["07:00", "12:00", "24:00"]),
    days=st.sampled_from([ALL, ["mon", "tue"], ["sun"]]), name=st.just("l"),
    quota=st.dictionaries(
        st.sampled_from(["chat", "quiet", "train"]), st.dictionaries(st.just(H), small_amounts, min_size=1), min_size=1
    ),
)  # fmt: skip
small_plans = st.dictionaries(st.sampled_from("ab"), st.lists(small_layers, max_size=3).map(lambda ls: document(*ls)))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(small_trees, small_trees, small_plans, small_plans)
def test_moments_are_checked_as_if_the_whole_tree_was_looked_at_each_time(before, after, plans_before, plans_after):
    now_on, then_on = tide.enabled_plans(plans_after), tide.enabled_plans(plans_before)
    expected = set()
    for open_now, moment in tide.moments_ahead(plans_after, NOW).items() if now_on else ():
        then = tide.open_layers(then_on, moment)
        old = breaches(under(before, then_on, then))
        base = breaches(before)
        touched = {
            key for key, breach in breaches(under(after, now_on, open_now)).items()
            if breach.excess > max((found[key].excess for found in (old, base) if key in found), default=0)
        }  # fmt: skip
        # What the base alone does is the base's rule.
        unmoved = breaches(after)
        expected |= {
            key for key in touched
            if key not in unmoved or breaches(under(after, now_on, open_now))[key].excess != unmoved[key].excess
        }  # fmt: skip
    found = tide_rules.first_breaches(before, after, plans_before, plans_after, now=NOW)
    assert {(each.breach.holder, each.breach.service_type, each.breach.resource) for each in found} >= expected
    for each in found:
        key = (each.breach.holder, each.breach.service_type, each.breach.resource)
        whole = breaches(under(after, now_on, tide.open_layers(now_on, each.at)))
        assert whole[key].requested == each.breach.requested
        assert whole[key].limit == each.breach.limit


def under(base, plans, open_now):
    quota = tide_rules.base_of(base, tide.touched(plans))
    return tide_rules.with_quota(base, tide.with_layers(quota, plans, open_now))
