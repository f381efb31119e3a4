"""What is tried for a gang that waits depends on its reason: each code of the closed list has its place here."""

from __future__ import annotations

import pytest

from scheduler_core.framework import remedies
from scheduler_core.model.decision import Result
from scheduler_core.model.node_refusal import NodeRefusal
from scheduler_core.model.reason import Holder, Reason, ReasonCode, ReasonNumbers
from scheduler_core.model.snapshot import Snapshot
from tests.core.small_cluster import H, decide, gang, node, snapshot, training

QUOTA, END, PRIORITY = "more quota", "the end of another gang", "another priority"
# A person, time or another object ends the others, so no session is tried for them.
TRIED: dict[str, set[str]] = {
    "Suspended": set(),
    "Misconfigured": set(),
    "NotSupported": set(),
    "TimedOut": set(),
    "NoMatchingCard": set(),
    "QueueClosed": set(),
    "ExceedsMaxQuota": {QUOTA},
    "GangIncomplete": set(),
    "WaitingForReclaim": set(),
    "NotAllowedInQueue": set(),
    "WaitingForQuota": {QUOTA, END},
    "OverCommitted": {END},
    "WaitingForCards": {END},
    "NoNodeMatches": {END},
    "WaitingForResources": {END},
    "Fragmented": {END},
    "BehindHigherPriority": {PRIORITY},
    "ReclaimForbidden": set(),
    "BackingOff": set(),
    "PendingEvaluation": set(),
}
HELD = gang("holder", 1, 4, "training", on=["n1"])
GIVEN = snapshot([node("n1", 4)], [training(quota={H: 6})], gang("x", 1, 4, "training"), HELD)


def test_each_code_has_its_place() -> None:
    assert set(TRIED) == {code.value for code in ReasonCode}


@pytest.mark.parametrize("code", ReasonCode)
def test_only_the_changes_that_may_end_a_reason_are_tried(code: ReasonCode) -> None:
    numbers = ReasonNumbers(
        resource=H,
        requested=4.0,
        short=2.0,
        holders=(Holder("ns/holder", "training", 4.0),),
        nodes={NodeRefusal.HOST_PORT: 1},
    )
    waits, tried = decide(GIVEN), set[str]()

    def session(changed: Snapshot) -> Result:
        """Nothing helps, so that all that may help is tried."""
        if changed.queues != GIVEN.queues:
            tried.add(QUOTA)
        if {group.key for group in changed.pod_groups} != {group.key for group in GIVEN.pod_groups}:
            tried.add(END)
        elif changed.pod_groups != GIVEN.pod_groups:
            tried.add(PRIORITY)
        return waits

    found = remedies.search(GIVEN, Reason(podgroup="ns/x", code=code, numbers=numbers), session)
    assert found.remedy is None
    assert tried == TRIED[code.value]


def test_of_a_reason_by_nodes_only_what_other_pods_cause_may_end_with_them() -> None:
    """A selector or a taint stays, whichever gang ends."""
    waits, ended = decide(GIVEN), list[Snapshot]()

    def session(changed: Snapshot) -> Result:
        ended.append(changed)
        return waits

    for refusal, tries in (
        (NodeRefusal.POD_ANTI_AFFINITY, 1),
        (NodeRefusal.VOLUME_IN_USE, 1),
        (NodeRefusal.TAINT, 0),
        (NodeRefusal.NODE_SELECTOR, 0),
    ):
        ended.clear()
        numbers = ReasonNumbers(resource=H, requested=4.0, nodes={refusal: 1})
        reason = Reason(podgroup="ns/x", code=ReasonCode.NO_NODE_MATCHES, numbers=numbers)
        assert remedies.search(GIVEN, reason, session).remedy is None
        assert len(ended) == tries, refusal
