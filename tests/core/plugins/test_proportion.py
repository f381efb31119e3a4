"""proportion: what queues deserve, admission, orders and who gives back."""

from __future__ import annotations

import pytest

from scheduler_core.framework.combine import Ballot
from scheduler_core.framework.demand import Shortfall
from scheduler_core.model.reason import ReasonCode
from scheduler_core.plugins.proportion import Proportion
from tests.core.plugins.opening import cores, opened, plain_queue, waiting_job
from tests.core.small_cluster import A, H, gang, node, snapshot

MIB_PER_POD = 1024


def on_cores(total, queues, *gangs):
    return snapshot([cores("n1", total)], queues, *gangs)


def pods(name, queue, count, *, running=0, cpu=1, **more):
    return gang(name, count, 0, queue, on=["n1"] * running, least=1, cpu=cpu * 1000, memory=0, **more)


def cpu_deserved(plugin):
    return [amounts[0] // 1000 for amounts in plugin.deserved]


def cls_of(plugin, name):
    session = plugin.session
    return session.cluster.class_of(session.gangs.members(session.gangs.names.index(f"ns/{name}"))[0])


class TestDeserved:
    def test_by_weight_and_what_one_leaves_goes_to_the_other(self):
        queues = [plain_queue("a", weight=1), plain_queue("b", weight=2)]
        given = on_cores(9, queues, pods("x", "a", 1), pods("y", "b", 10))
        assert cpu_deserved(opened(Proportion, given)) == [1, 8]

    def test_a_guarantee_stands_even_where_less_is_asked_for(self):
        queues = [plain_queue("a", weight=1, guarantee=4), plain_queue("b", weight=2)]
        plugin = opened(Proportion, on_cores(9, queues, pods("x", "a", 1), pods("y", "b", 10)))
        assert cpu_deserved(plugin) == [4, 5]
        assert [real[0] // 1000 for real in plugin.real] == [9, 5]

    def test_what_runs_counts_as_asked_for(self):
        queues = [plain_queue("a"), plain_queue("b")]
        given = on_cores(10, queues, pods("x", "a", 8, running=8), pods("y", "b", 3))
        assert cpu_deserved(opened(Proportion, given)) == [7, 3]

    def test_a_queue_without_gangs_takes_no_part(self):
        queues = [plain_queue("a"), plain_queue("b", guarantee=2), plain_queue("c")]
        assert cpu_deserved(opened(Proportion, on_cores(10, queues, pods("x", "a", 20)))) == [8, 2, 0]

    def test_capability_bounds_it_and_zero_is_no_bound(self):
        queues = [plain_queue("a", cpu=2), plain_queue("b", cpu=0)]
        given = on_cores(10, queues, pods("x", "a", 20), pods("y", "b", 20))
        assert cpu_deserved(opened(Proportion, given)) == [2, 8]

    def test_cards_are_shared_by_the_resource_that_counts_them(self):
        given = snapshot(
            [node("n1", 4, H), node("n2", 4, A)],
            [plain_queue("a"), plain_queue("b")],
            gang("x", 8, 1, "a", card=f"{H}|{A}"),
            gang("y", 8, 1, "b", card=""),
        )
        plugin = opened(Proportion, given)
        gpu = plugin.rows.names.index("nvidia.com/gpu")
        assert [amounts[gpu] for amounts in plugin.deserved] == [4000, 4000]
        assert plugin.queue_deserved(0).cards == {"nvidia.com/gpu": 4000}

    def test_a_resource_of_one_card_type_goes_by_its_name(self):
        plugin = opened(Proportion, snapshot([node("n1", 4)], [plain_queue("a")], gang("x", 8, 1, "a")))
        assert plugin.queue_deserved(0).cards == {H: 4000}


class TestOrders:
    def test_priority_then_the_smaller_share(self):
        queues = [plain_queue("a"), plain_queue("b"), plain_queue("c", priority=1)]
        given = on_cores(
            30, queues, pods("x", "a", 9, running=5), pods("y", "b", 9, running=3), pods("z", "c", 9, running=9)
        )
        plugin = opened(Proportion, given)
        assert sorted(range(3), key=plugin.queue_order) == [2, 1, 0]
        assert sorted(range(3), key=lambda q: plugin.victim_queue_order(q, 2)) == [0, 1, 2]
        assert plugin.queue_share(0) == pytest.approx(5 / 9)


class TestAdmission:
    def vote(self, cpu, *, compat=False, scalars=None, **queue):
        queues = [plain_queue("a", **queue), plain_queue("b", guarantee=2)]
        given = on_cores(10, queues, pods("runs", "a", 5, running=5))
        group = waiting_job("new", "a", cpu, scalars=scalars)
        plugin = opened(
            Proportion, snapshot(given.nodes, queues, pods("runs", "a", 5, running=5), (group, [])), compat=compat
        )
        session = plugin.session
        return plugin.job_enqueueable(0, session.minimum(0))

    def test_up_to_the_most_that_the_queue_may_use(self):
        # 10 cores less the 2 that the other queue is guaranteed; 5 run, and none counts as elastic before the action.
        assert self.vote(3) is Ballot.PERMIT
        refusal = self.vote(4)
        assert isinstance(refusal, Shortfall)
        assert (refusal.resource, refusal.requested, refusal.limit, refusal.allocated, refusal.short) == (
            "cpu",
            4000,
            8000,
            5000,
            1000,
        )

    def test_a_closed_queue(self):
        from scheduler_core.model.queue import QueueState

        assert self.vote(1, state=QueueState.CLOSED).code is ReasonCode.QUEUE_CLOSED

    def test_a_resource_that_no_node_has(self):
        assert self.vote(1, scalars={"example.com/fpga": 1000}) is Ballot.PERMIT

    def test_elastic_room_may_be_asked_for(self):
        queues = [plain_queue("a")]
        group = waiting_job("new", "a", 9)
        plugin = opened(Proportion, snapshot([cores("n1", 10)], queues, pods("runs", "a", 5, running=5), (group, [])))
        demand = plugin.session.minimum(0)
        assert plugin.job_enqueueable(0, demand) is not Ballot.PERMIT
        plugin.session.ledger.elastic[0, 0] = 4000
        assert plugin.job_enqueueable(0, demand) is Ballot.PERMIT

    def test_without_minimum_resources_the_pods_speak_and_upstream_lets_it_pass(self):
        queues = [plain_queue("a", cpu=2)]
        given = on_cores(10, queues, pods("new", "a", 1, cpu=4))
        for compat in (False, True):
            plugin = opened(Proportion, given, compat=compat)
            assert (plugin.job_enqueueable(0, plugin.session.minimum(0)) is Ballot.PERMIT) is compat


class TestAllocation:
    def plugin(self, **more):
        queues = [plain_queue("a", **more), plain_queue("b")]
        return opened(Proportion, on_cores(10, queues, pods("x", "a", 9, running=4), pods("y", "b", 9)))

    def test_within_what_is_deserved(self):
        plugin = self.plugin()
        assert plugin.allocatable(0, cls_of(plugin, "x"), -1) is None
        assert not plugin.overused(0)
        plugin.session.ledger.pipelined[0, 0] += 1000
        short = plugin.allocatable(0, cls_of(plugin, "x"), -1)
        assert (short.limit, short.allocated, short.short) == (5000, 5000, 1000)
        assert plugin.preemptive(0, cls_of(plugin, "x"), -1) == short
        assert not plugin.overused(0), "a promise must still become a place"
        plugin.session.ledger.allocated[0, 0] += 1000
        assert plugin.overused(0)


class TestReclaimable:
    def opinion(self, *, running, compat=False, memory=0):
        queues = [plain_queue("a"), plain_queue("b")]
        given = on_cores(10, queues, pods("old", "a", running, running=running), pods("new", "b", 10))
        plugin = opened(Proportion, given, compat=compat)
        session = plugin.session
        old, new = (session.gangs.names.index(f"ns/{name}") for name in ("old", "new"))
        return plugin.reclaimable(session.gangs.members(new)[0], session.gangs.members(old))

    def test_only_what_is_beyond_the_deserved(self):
        assert len(self.opinion(running=8).allowed) == 3
        assert self.opinion(running=5).allowed == frozenset()
        assert set(self.opinion(running=5).refused.values()) == {"its queue uses no more than it deserves"}

    @pytest.mark.parametrize(("compat", "count"), [(False, 0), (True, 1)])
    def test_excess_of_something_else_costs_nothing_that_is_asked_for(self, compat, count):
        queues = [plain_queue("a"), plain_queue("b")]
        greedy = gang("old", 2, 0, "a", on=["n1"] * 2, least=1, cpu=1000, memory=800)
        given = snapshot(
            [cores("n1", 10, 2000)],
            queues,
            greedy,
            gang("new", 1, 0, "b", least=1, cpu=1000, memory=0),
            gang("other", 1, 0, "b", least=1, cpu=1000, memory=1500),
        )
        plugin = opened(Proportion, given, compat=compat)
        session = plugin.session
        new, old = session.gangs.members(0), session.gangs.members(1)
        assert session.gangs.names[:2] == ["ns/new", "ns/old"]
        assert len(plugin.reclaimable(new[0], old).allowed) == count
