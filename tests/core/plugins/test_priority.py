"""priority: order of gangs and tasks, and who may preempt whom."""

from __future__ import annotations

import msgspec

from scheduler_core.framework.session import Session
from scheduler_core.model.memory import Memory
from scheduler_core.plugins.priority import Priority
from scheduler_core.state.workspace import Workspace
from tests.core.small_cluster import binds, decide, gang, node, policy, snapshot, training


def test_the_stronger_task_of_a_gang_goes_first():
    group, pods = gang("x", 3, 1, "training", least=1)
    pods = [msgspec.structs.replace(pod, priority=i) for i, pod in enumerate(pods)]
    assert list(binds(decide(snapshot([node("n1", 1)], [training()], (group, pods))))) == ["x-2"]


def test_tasks_of_equal_priority_go_by_the_number_in_their_name():
    group, pods = gang("job", 11, 1, "training", least=1)
    pods = [msgspec.structs.replace(pod, name=f"job-worker-{i}") for i, pod in enumerate(pods)]
    result = decide(snapshot([node("n1", 3)], [training()], (group, pods)))
    assert sorted(binds(result)) == ["job-worker-0", "job-worker-1", "job-worker-2"]


def test_only_strictly_lower_priority_is_preempted():
    plugin = Priority({})
    given = snapshot(
        [node("n1")],
        [training()],
        gang("low", 1, 1, "training", on=["n1"], group={"priority": 1}),
        gang("new", 1, 1, "training", group={"priority": 2}),
        gang("same", 1, 1, "training", on=["n1"], group={"priority": 2}),
    )
    session = Session(given, policy(), [[(plugin, {})]], now=0.0, seed=0, memory=Memory(), workspace=Workspace())
    low, new, same = (session.gangs.members(g)[0] for g in range(3))
    opinion = plugin.preemptable(new, [low, same])
    assert opinion.allowed == {low}
    assert opinion.refused == {same: "priority is not lower"}
    assert plugin.job_starving(1)
