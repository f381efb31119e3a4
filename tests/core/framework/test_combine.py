"""The one tier walk: the vectors of volcano-semantics 9, and every combine rule."""

from __future__ import annotations

import pytest

from scheduler_core.framework.combine import Ballot, Hooks, Opinion
from scheduler_core.framework.extension_points import EXTENSION_POINTS, POINTS, SWITCHES
from scheduler_core.framework.plugin import Plugin


def hooks(point, *tiers, switches=None, compat=False, guards=()):
    """Plugins that answer a fixed value at one point; ``tiers`` are lists of (name, answer)."""

    def plugin(name, answer):
        guarding = frozenset({point} if name in guards else ())
        made = type(name, (Plugin,), {"name": name, "guards": guarding, point: lambda self, *subject: answer})
        return made({}), (switches or {}).get(name, {})

    return Hooks([[plugin(name, answer) for name, answer in tier] for tier in tiers], compat=compat)


X, Y, Z = 1, 2, 3


def some(*tasks):
    return Opinion(frozenset(tasks))


NOBODY, ABSTAINS = Opinion(frozenset()), Opinion(None)


@pytest.mark.parametrize(
    ("tiers", "ours", "upstream"),
    [
        ([[("A", some(X, Y)), ("B", some(Y))], [("C", NOBODY)]], {Y}, {Y}),
        ([[("A", NOBODY)], [("C", some(X))]], set(), {X}),
        ([[("A", some(X)), ("B", NOBODY), ("C", some(X))], [("D", some(Z))]], set(), {Z}),
        ([[("A", some(X)), ("B", some(Y)), ("C", some(Z))]], set(), {Z}),
        ([[("A", some(X)), ("B", some(Y))], [("C", some(Z))]], set(), {Z}),
        ([[("A", ABSTAINS)], [("C", some(X))]], {X}, {X}),
        ([[("A", ABSTAINS), ("B", some(X))], [("C", some(Y))]], {X}, {X}),
        ([[]], set(), set()),
    ],
    ids=[
        "first tier decides",
        "empty is a veto",
        "empty after others is a veto",
        "disjoint is nobody",
        "disjoint at the end of a tier",
        "all abstain",
        "abstain beside",
        "nobody asked",
    ],
)
def test_victims(tiers, ours, upstream):
    assert hooks("reclaimable", *tiers).victims("reclaimable", None, [X, Y, Z]).allowed == ours
    assert hooks("reclaimable", *tiers, compat=True).victims("reclaimable", None, [X, Y, Z]).allowed == upstream


@pytest.mark.parametrize(
    ("tiers", "ours", "upstream"),
    [
        ([[("A", some(X, Y))], [("B", some(Z)), ("guard", some(Y, Z))]], {Y}, {X, Y}),
        ([[("A", some(X, Y))], [("guard", NOBODY)]], set(), {X, Y}),
        ([[("A", some(X, Y))], [("guard", ABSTAINS)]], {X, Y}, {X, Y}),
        ([[("A", NOBODY)], [("guard", some(X))]], set(), {X}),
        ([[("guard", some(X, Y))], [("B", some(Y))]], {X, Y}, {X, Y}),
    ],
    ids=["a lower guard counts", "and may veto", "or abstain", "and revives nobody", "above the others it decides"],
)
def test_a_guard_is_asked_wherever_it_stands(tiers, ours, upstream):
    made = hooks("reclaimable", *tiers, guards={"guard"})
    assert made.victims("reclaimable", None, [X, Y, Z]).allowed == ours
    assert made.guarded_below("reclaimable", 1) is (tiers[0][0][0] != "guard")
    old = hooks("reclaimable", *tiers, guards={"guard"}, compat=True)
    assert old.victims("reclaimable", None, [X, Y, Z]).allowed == upstream


def test_the_first_tier_that_names_somebody_decides_who_is_asked_to_leave():
    named = hooks("victim_tasks", [("A", {})], [("B", {X: "b"}), ("C", {X: "c", Y: "c"})], [("D", {Z: "d"})])
    assert named.named("victim_tasks", [X, Y, Z]) == {X: ("B", "b"), Y: ("C", "c")}
    assert hooks("victim_tasks", []).named("victim_tasks", []) == {}


def test_victims_keep_votes_and_rules():
    verdict = hooks("reclaimable", [("A", ABSTAINS)], [("B", Opinion(frozenset({X}), {Y: "too dear"}))]).victims(
        "reclaimable", None, [X, Y]
    )
    assert [(vote.tier, vote.plugin, vote.vote) for vote in verdict.votes] == [(1, "A", "abstain"), (2, "B", "permit")]
    assert verdict.refused == {Y: "too dear"}


@pytest.mark.parametrize(
    ("tiers", "permitted"),
    [
        ([[("A", Ballot.PERMIT)], [("B", Ballot.REJECT)]], True),
        ([[("A", Ballot.PERMIT), ("B", Ballot.REJECT)]], False),
        ([[("A", Ballot.ABSTAIN)], [("B", Ballot.REJECT)]], False),
        ([[("A", Ballot.ABSTAIN)]], True),
        ([[]], True),
    ],
    ids=["lower tier not asked", "reject wins in a tier", "abstain goes on", "all abstain", "nobody asked"],
)
def test_votes(tiers, permitted):
    assert (hooks("job_enqueueable", *tiers).vote("job_enqueueable", 0) is None) == permitted


def test_a_reject_may_say_why():
    assert hooks("job_enqueueable", [("A", "no room")]).vote("job_enqueueable", 0) == "no room"


def test_keys_follow_one_another():
    order = hooks("job_order", [("A", (1,))], [("B", (2, 3))])
    assert order.key("job_order", 0) == (1, 2, 3)


def test_starving_asks_the_first_tier_that_has_a_registrant():
    assert not hooks("job_starving", [], [("A", True), ("B", False)], [("C", True)]).first_tier_all("job_starving", 0)
    assert hooks("job_starving", [("A", True)], [("B", False)]).first_tier_all("job_starving", 0)
    assert not hooks("job_starving", []).first_tier_all("job_starving", 0)


def test_all_any_first_and_defaults():
    assert hooks("job_ready", [("A", True)], [("B", True)]).all_true("job_ready", 0)
    assert not hooks("job_ready", [("A", True)], [("B", False)]).all_true("job_ready", 0)
    assert hooks("overused", [("A", False)], [("B", True)]).any_true("overused", 0)
    assert hooks("target_job", [("A", 4)], [("B", 5)]).first("target_job") == 4
    empty = hooks("job_ready", [])
    assert empty.all_true("job_ready", 0)
    assert not empty.any_true("overused", 0)
    assert empty.first("target_job") is None
    assert empty.refusal("allocatable", 0) is None


def test_a_switch_turns_a_plugin_off_at_its_point_only():
    off = hooks("reclaimable", [("A", NOBODY)], [("B", some(X))], switches={"A": {"reclaimable": False}})
    assert off.victims("reclaimable", None, [X]).allowed == {X}


def test_every_switch_of_a_point_is_one_that_a_policy_file_can_set():
    known = {name for name, _ in SWITCHES.values()}
    assert {point.switch for point in EXTENSION_POINTS if point.switch} <= known
    assert len(POINTS) == len(EXTENSION_POINTS)
