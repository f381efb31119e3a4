"""conformance: system pods are no victims, and the vote says so."""

from __future__ import annotations

from scheduler_core.framework.session import Session
from scheduler_core.model.memory import Memory
from scheduler_core.plugins.conformance import Conformance
from scheduler_core.state.workspace import Workspace
from tests.core.small_cluster import gang, node, policy, snapshot, training


def test_system_pods_are_taken_out():
    plugin = Conformance({})
    given = snapshot(
        [node("n1")],
        [training()],
        gang("plain", 1, 1, "training", on=["n1"]),
        gang("critical", 1, 1, "training", on=["n1"], priority_class="system-cluster-critical"),
    )
    session = Session(given, policy(), [[(plugin, {})]], now=0.0, seed=0, memory=Memory(), workspace=Workspace())
    members = {session.gangs.names[g]: session.gangs.members(g)[0] for g in range(2)}
    for vote in (plugin.reclaimable, plugin.preemptable, plugin.unified_evictable):
        opinion = vote(0, list(members.values()))
        assert opinion.allowed == {members["ns/plain"]}
        assert opinion.refused == {
            members["ns/critical"]: "priority class system-cluster-critical is protected",
        }
