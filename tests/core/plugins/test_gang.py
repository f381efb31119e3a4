"""gang: ready, pipelined, starving, and the members that may go."""

from __future__ import annotations

from scheduler_core.framework.combine import Ballot
from scheduler_core.plugins.gang import Gang
from tests.core.plugins.opening import opened
from tests.core.small_cluster import code, decide, gang, node, snapshot, training


def on_two_nodes(*gangs) -> Gang:
    return opened(Gang, snapshot([node("n1"), node("n2")], [training()], *gangs))


def tasks(plugin: Gang) -> list[int]:
    session = plugin.session
    return sorted(session.gangs.members(0), key=session.tasks.keys.__getitem__)


def test_members_above_the_minimum_may_go():
    plugin = on_two_nodes(gang("x", 4, 1, "training", on=["n1"] * 4, least=2))
    t1, t2, *_ = members = tasks(plugin)
    opinion = plugin.preemptable(members[0], members)
    assert opinion.allowed == {t1, t2}
    assert set(opinion.refused.values()) == {"the gang would fall below minMember"}


def test_promised_members_make_it_pipelined_but_not_ready():
    plugin = on_two_nodes(gang("x", 4, 1, "training", on=["n1", "n1"], least=4))
    session = plugin.session
    statement = session.statement()
    assert plugin.job_starving(0)
    for task in session.pending_tasks(0):
        statement.pipeline(task, 1, 0, (len(statement.operations),))
    assert not plugin.job_starving(0)
    assert plugin.job_pipelined(0) is Ballot.PERMIT
    assert not plugin.job_ready(0)
    assert plugin.job_order(0) == (False,)


def test_every_role_needs_its_minimum():
    group = {"min_task_member": {"worker": 2}, "min_member": 3}
    plugin = on_two_nodes(gang("x", 3, 1, "training", group=group, role="worker"))
    assert plugin.job_valid(0) is None
    short = on_two_nodes(gang("x", 3, 1, "training", group=group, role="master"))
    assert short.job_valid(0) == "0 of at least 2 members of role worker exist"


def test_a_sum_of_roles_above_the_minimum_is_not_looked_at():
    plugin = on_two_nodes(gang("x", 3, 1, "training", group={"min_task_member": {"worker": 9}, "min_member": 3}))
    assert plugin.job_valid(0) is None


def test_members_that_ask_for_nothing_count_as_ready():
    plugin = on_two_nodes(gang("x", 2, 0, "training", cpu=0, memory=0))
    assert plugin.job_ready(0)


def test_an_incomplete_gang_is_not_looked_at():
    group, pods = gang("x", 3, 1, "training")
    result = decide(snapshot([node("n1")], [training()], (group, pods[:1])))
    assert not result.binds
    assert code(result, "x") == "GangIncomplete"
