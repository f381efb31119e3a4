"""A result's long lists: made when they are read, once, and out of nothing that a later session changes."""

from __future__ import annotations

import msgspec

from scheduler_core import Workspace, run_session
from scheduler_core.model.later import Later
from tests.core.small_cluster import gang, inference, node, policy, service, snapshot, training

GIVEN = snapshot(
    [node("n1", 8), node("n2", 4)],
    [inference(), training()],
    gang("old", 2, 2, "training", on=["n1", "n2"]),
    gang("new", 2, 1, "training"),
    gang("big", 4, 8, "training"),
    service("svc", 2, 1),
)


def test_it_is_the_tuple_and_is_made_once():
    calls = []

    def make():
        calls.append(1)
        return ["a", "b"]

    later = Later(2, make)
    assert len(later) == 2
    assert not calls
    assert later == ("a", "b") == later
    assert later == ("a", "b")
    assert later != ("a",)
    assert [*later, later[0], later[-1]] == ["a", "b", "a", "b"]
    assert later[1:] == ("b",)
    assert "b" in later
    assert later == Later(2, make)
    assert len({later, Later(2, make)}) == 1
    assert repr(later) == "('a', 'b')"
    assert len(calls) == 3


def test_a_result_that_is_read_late_says_the_same():
    """The workspace's rows have long gone to other pods by then."""
    kept = Workspace()
    late, _ = run_session(GIVEN, policy(), now=1000.0, workspace=kept)
    fewer = msgspec.structs.replace(GIVEN, pods=GIVEN.pods[3:], pod_groups=GIVEN.pod_groups[1:])
    other = snapshot([node("n1", 8)], [inference(), training()], gang("aaa", 4, 1, "training", on=["n1"] * 4))
    for given in (fewer, other, fewer):
        run_session(given, policy(), now=1010.0, workspace=kept)
    early, _ = run_session(GIVEN, policy(), now=1000.0)
    assert list(early.binds)
    assert [list(early.podgroups), list(early.binds), list(early.queues)] == [
        list(late.podgroups), list(late.binds), list(late.queues),
    ]  # fmt: skip


def test_outcomes_that_did_not_change_are_the_same_objects_and_others_are_not():
    kept = Workspace()
    rules = policy()
    one, _ = run_session(GIVEN, rules, now=1000.0, workspace=kept)
    before = {outcome.name: outcome for outcome in one.podgroups}
    pods = tuple(msgspec.structs.replace(pod, node="n1") if pod.name.startswith("new") else pod for pod in GIVEN.pods)
    two, _ = run_session(msgspec.structs.replace(GIVEN, pods=pods), rules, now=1000.0, workspace=kept)
    fresh, _ = run_session(msgspec.structs.replace(GIVEN, pods=pods), rules, now=1000.0)
    assert list(two.podgroups) == list(fresh.podgroups)
    same = {outcome.name for outcome in two.podgroups if outcome is before[outcome.name]}
    assert "ns/old" in same
    assert "ns/big" not in same
