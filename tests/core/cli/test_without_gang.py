"""Policies in which no plugin says when a gang is ready: each member starts on its own."""

import pytest

from tests import builders as b

PLUGINS = """
actions: "enqueue, allocate, backfill{more}"
tiers:
- plugins:
{first}
- plugins:
  - name: predicates
  - name: nodeorder
"""
NOBODY = PLUGINS.format(first="  - name: priority", more="")
NOT_WHEN_READY = PLUGINS.format(first="  - name: gang\n    enableJobReady: false", more="")
NEITHER = PLUGINS.format(first="  - name: gang\n    enableJobReady: false\n    enableJobPipelined: false", more="")
CARD = "A"
CLUSTER = [b.node("n1", CARD, 2), b.queue("q", {CARD: 8})]


@pytest.mark.parametrize("policy", [NOBODY, NOT_WHEN_READY, NEITHER])
class TestEachMemberOnItsOwn:
    def test_all_of_a_gang_is_bound(self, decided, policy):
        found = decided(CLUSTER, b.training("t", "q", 2, CARD), policy=policy)
        assert found.binds == {"t-0": "n1", "t-1": "n1"}
        assert found.codes == {}

    def test_what_has_room_is_kept(self, decided, policy):
        found = decided(CLUSTER, b.training("t", "q", 3, CARD), policy=policy)
        assert found.binds == {"t-0": "n1", "t-1": "n1"}
        assert found.codes == {"t": "WaitingForCards"}

    def test_a_member_that_fits_nowhere_does_not_keep_the_others_out(self, decided, policy):
        group, *members = b.training("t", "q", 2, CARD)[1:]
        members[0]["spec"]["nodeSelector"] = {"there": "is-none"}
        assert decided(CLUSTER, group, *members, policy=policy).binds == {"t-1": "n1"}


def test_with_the_plugin_all_or_nothing(decided):
    policy = PLUGINS.format(first="  - name: gang", more="")
    assert decided(CLUSTER, b.training("t", "q", 3, CARD), policy=policy).binds == {}


def test_a_gang_that_lacks_members_says_so(decided):
    found = decided(CLUSTER, b.training("t", "q", 2, CARD, min_member=3), policy=NOBODY)
    assert len(found.binds) == 2
    assert found.codes == {"t": "GangIncomplete"}


def test_upstream_gives_up_by_the_minimum(decided):
    policy = "compatibility: volcano" + NOBODY
    group, *members = b.training("t", "q", 2, CARD)[1:]
    members[0]["spec"]["nodeSelector"] = {"there": "is-none"}
    assert decided(CLUSTER, group, *members, policy=policy, naive=False).binds == {}
    assert len(decided(CLUSTER, b.training("t", "q", 3, CARD), policy=policy, naive=False).binds) == 2


def test_a_reclaim_keeps_what_it_has_found_too(decided):
    types = "{overCommitFactor: 2, podOwnerReferenceToServiceType: {ReplicaSet: inference, Job: training}}"
    first = f"  - name: priority\n  - name: conformance\n  - name: capacity-card\n    arguments: {types}"
    policy = PLUGINS.format(first=first, more=", reclaim")
    objects = (
        b.node("n1", CARD, 2),
        b.priority_classes(),
        b.queue("web", {CARD: 4}, **b.INFERENCE),
        b.queue("train", {CARD: 4}, **b.TRAINING),
        b.training("t", "train", 2, CARD, nodes=["n1"]),
        b.inference("s", "web", 3, CARD, min_member=3),
    )
    found = decided(*objects, policy=policy)
    assert found.evictions == ["t-0", "t-1"], found.reasons
