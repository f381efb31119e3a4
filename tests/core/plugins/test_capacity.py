"""capacity: ceilings, lines and guarantees of queues, flat and as a tree."""

from __future__ import annotations

import pytest

from scheduler_core.framework.combine import Ballot
from scheduler_core.framework.demand import Shortfall
from scheduler_core.model.queue import QueueState
from scheduler_core.model.reason import ReasonCode
from scheduler_core.plugins.capacity import Capacity
from tests.core.plugins.opening import cores, opened, plain_queue, waiting_job
from tests.core.small_cluster import H, gang, node, snapshot

TREE = {"hierarchy": True}


def pods(name, queue, count, *, running=0, cpu=1, **more):
    return gang(name, count, 0, queue, on=["n1"] * running, least=1, cpu=cpu * 1000, memory=0, **more)


def plugin_of(total, queues, *gangs, **more):
    return opened(Capacity, snapshot([cores("n1", total)], queues, *gangs), **more)


def members(plugin, name):
    return plugin.session.gangs.members(plugin.session.gangs.names.index(f"ns/{name}"))


def cls_of(plugin, name):
    return plugin.session.cluster.class_of(members(plugin, name)[0])


def order(plugin):
    names = [queue.name for queue in plugin.session.ledger.queues]
    return sorted(names, key=lambda name: plugin.queue_order(plugin.session.ledger.index[name]))


class TestOrder:
    def test_priority_then_share_then_who_has_a_line(self):
        plugin = plugin_of(
            20,
            [
                plain_queue("half", deserved=4),
                plain_queue("full", deserved=2),
                plain_queue("none"),
                plain_queue("high", deserved=1, priority=5),
            ],
            pods("a", "half", 2, running=2),
            pods("b", "full", 2, running=2),
            pods("c", "high", 3, running=3),
        )
        assert order(plugin) == ["high", "half", "full", "none"]
        index = plugin.session.ledger.index
        victims = sorted(index, key=lambda name: plugin.victim_queue_order(index[name], index["half"]))
        assert [name for name in victims if name != "half"] == ["none", "full", "high"]
        assert [plugin.queue_share(index[name]) for name in ("half", "full", "none")] == [0.5, 1.0, 1.0]

    def test_branches_are_compared_below_the_common_ancestor(self):
        plugin = plugin_of(
            40,
            [
                plain_queue("a", deserved=10),
                plain_queue("a1", parent="a", deserved=5),
                plain_queue("a2", parent="a", deserved=5),
                plain_queue("b", deserved=10),
                plain_queue("b1", parent="b", deserved=10),
            ],
            pods("x", "a1", 1, running=1),
            pods("y", "a2", 7, running=7),
            pods("z", "b1", 6, running=6),
            switches=TREE,
        )
        # Branch a has 8 of 10, branch b 6 of 10, though a1 alone has only 1 of 5.
        leaves = [name for name in order(plugin) if name in ("a1", "a2", "b1")]
        assert leaves == ["b1", "a1", "a2"]

    def test_victims_from_near_by_first(self):
        plugin = plugin_of(
            40,
            [plain_queue("a"), plain_queue("a1", parent="a"), plain_queue("a2", parent="a"), plain_queue("b")],
            pods("z", "b", 6, running=6),
            switches=TREE,
        )
        index = plugin.session.ledger.index
        assert min(("a2", "b"), key=lambda name: plugin.victim_queue_order(index[name], index["a1"])) == "a2"

    def test_what_happens_elsewhere_in_a_branch_moves_its_queues(self):
        plugin = plugin_of(
            40,
            [
                plain_queue("a", deserved=10),
                plain_queue("a1", parent="a", deserved=5),
                plain_queue("a2", parent="a", deserved=5),
                plain_queue("b", deserved=10),
            ],
            pods("y", "a2", 9),
            pods("z", "b", 4, running=4),
            switches=TREE,
        )
        session, index = plugin.session, plugin.session.ledger.index
        assert session.queue_key(index["a1"]) < session.queue_key(index["b"])
        statement = session.statement()
        for task in session.pending_tasks(session.gangs.names.index("ns/y"))[:5]:
            statement.allocate(task, 0)
        assert session.queue_key(index["b"]) < session.queue_key(index["a1"])


class TestAdmission:
    QUEUES = (
        plain_queue("a", cpu=6),
        plain_queue("a1", parent="a"),
        plain_queue("a2", parent="a", cpu=4),
        plain_queue("b", guarantee=2),
    )

    def vote(self, queue, cpu, *, queues=QUEUES, switches=TREE, **more):
        group = waiting_job("new", queue, cpu)
        plugin = plugin_of(10, queues, pods("runs", "a2", 2, running=2), (group, []), switches=switches, **more)
        return plugin.job_enqueueable(0, plugin.session.minimum(0))

    def test_the_ceiling_of_every_ancestor_counts(self):
        assert self.vote("a1", 4) is Ballot.PERMIT
        refusal = self.vote("a1", 5)
        assert isinstance(refusal, Shortfall)
        assert (refusal.queue, refusal.limit, refusal.allocated, refusal.short) == ("a", 6000, 2000, 1000)
        assert self.vote("a2", 3).queue == "a2"

    def test_flat_only_its_own(self):
        assert self.vote("a1", 8, switches={}) is Ballot.PERMIT
        assert self.vote("a1", 9, switches={}).limit == 8000

    def test_a_queue_with_queues_below_it_takes_no_gangs(self):
        assert self.vote("a", 1) is Ballot.REJECT
        plugin = plugin_of(10, self.QUEUES, pods("x", "a", 1), switches=TREE)
        assert plugin.session.problem(0) == "queue a has queues below it; gangs use one of those"

    def test_a_closed_ancestor_closes_all_below(self):
        queues = (plain_queue("a", state=QueueState.CLOSED), plain_queue("a1", parent="a"))
        group = waiting_job("new", "a1", 1)
        plugin = plugin_of(10, queues, (group, []), switches=TREE)
        assert plugin.job_enqueueable(0, plugin.session.minimum(0)).code is ReasonCode.QUEUE_CLOSED

    @pytest.mark.parametrize("compat", [False, True])
    def test_a_broken_tree_says_why_and_stops_whom_it_concerns(self, compat):
        queues = (plain_queue("a", parent="nowhere"), plain_queue("b"))
        plugin = plugin_of(10, queues, pods("x", "a", 1), pods("y", "b", 1), switches=TREE, compat=compat)
        assert "its parent queue nowhere does not exist" in plugin.session.problem(0)
        assert (plugin.session.problem(1) is not None) is compat
        assert plugin.job_enqueueable(0, plugin.session.minimum(0)) is Ballot.REJECT


class TestAllocation:
    def test_up_to_the_ceiling_and_no_line_in_the_way(self):
        plugin = plugin_of(10, [plain_queue("a", cpu=3, deserved=1)], pods("x", "a", 4, running=2))
        assert plugin.allocatable(0, cls_of(plugin, "x"), -1) is None
        short = plugin.preemptive(0, cls_of(plugin, "x"), -1)
        assert (short.limit, short.allocated, short.short) == (1000, 2000, 2000)
        plugin.session.ledger.pipelined[0, 0] += 1000
        assert plugin.allocatable(0, cls_of(plugin, "x"), -1).limit == 3000

    def test_a_queue_without_a_line_takes_nothing_back(self):
        plugin = plugin_of(10, [plain_queue("a")], pods("x", "a", 1))
        assert plugin.preemptive(0, cls_of(plugin, "x"), -1) is not None

    @pytest.mark.parametrize(("level", "allowed"), [(0, False), (1, True)])
    def test_an_ancestor_may_lend_its_line(self, level, allowed):
        queues = [
            plain_queue("a", deserved=6),
            plain_queue("a1", parent="a", deserved=2),
            plain_queue("a2", parent="a", deserved=4),
        ]
        plugin = plugin_of(10, queues, pods("x", "a1", 3, running=2), switches=TREE, ancestorReclaimLevel=level)
        assert (plugin.preemptive(1, cls_of(plugin, "x"), -1) is None) is allowed

    @pytest.mark.parametrize(("compat", "allowed"), [(False, False), (True, True)])
    def test_all_that_is_asked_for_stays_within_the_line(self, compat, allowed):
        queue = plain_queue("a", deserved={"cpu": 9000, "memory": 500})
        asks = gang("x", 2, 0, "a", on=["n1"], least=1, cpu=1000, memory=400)
        plugin = plugin_of(10, [queue], asks, compat=compat)
        assert (plugin.preemptive(0, cls_of(plugin, "x"), -1) is None) is allowed

    def test_cards_by_their_resource(self):
        queue = plain_queue("a", scalars={"nvidia.com/gpu": 3000}, deserved={"nvidia.com/gpu": 2000})
        given = snapshot([node("n1", 8, H)], [queue], gang("x", 4, 1, "a", on=["n1"], card="", cpu=0, memory=0))
        plugin = opened(Capacity, given)
        assert plugin.preemptive(0, cls_of(plugin, "x"), 0) is None
        assert plugin.queue_deserved(0).cards == {H: 2000}
        plugin.session.ledger.pipelined[2, 0] += 1000
        assert plugin.preemptive(0, cls_of(plugin, "x"), 0).limit == 2000
        assert plugin.allocatable(0, cls_of(plugin, "x"), 0) is None


class TestReclaimable:
    def opinion(self, queues, running, *, victim=None, new="new", point="reclaimable", **more):
        plugin = plugin_of(20, queues, pods("old", "old", running, running=running), pods("new", new, 9), **more)
        ask = getattr(plugin, point)
        return ask(members(plugin, "new")[0], members(plugin, "old"))

    def test_down_to_the_line(self):
        queues = [plain_queue("old", deserved=4), plain_queue("new", deserved=10)]
        assert len(self.opinion(queues, 7).allowed) == 3
        assert self.opinion(queues, 4).allowed == frozenset()

    def test_down_to_the_guarantee(self):
        queues = [plain_queue("old", deserved={"memory": 1}, guarantee=5), plain_queue("new", deserved=10)]
        opinion = self.opinion(queues, 7)
        assert len(opinion.allowed) == 2
        assert set(opinion.refused.values()) == {"its queue would fall below its guarantee"}

    def test_without_a_line_for_what_it_holds_at_once(self):
        queues = [plain_queue("old", deserved={"nvidia.com/gpu": 1000}), plain_queue("new", deserved=10)]
        assert len(self.opinion(queues, 3).allowed) == 3

    def test_nothing_in_common(self):
        queues = [plain_queue("old"), plain_queue("new", deserved=10)]
        plugin = plugin_of(
            20,
            queues,
            gang("old", 1, 0, "old", on=["n1"], cpu=0, memory=10),
            gang("new", 1, 0, "new", cpu=1000, memory=0),
        )
        opinion = plugin.reclaimable(members(plugin, "new")[0], members(plugin, "old"))
        assert set(opinion.refused.values()) == {"it holds nothing of what is asked for"}

    @pytest.mark.parametrize("level", [0, 1])
    def test_the_branch_of_the_victim_counts_too(self, level):
        queues = [
            plain_queue("p", deserved=10),
            plain_queue("old", parent="p", deserved=2),
            plain_queue("new", deserved=10),
        ]
        opinion = self.opinion(queues, 7, switches=TREE, ancestorReclaimLevel=level)
        assert len(opinion.allowed) == (5 if level == 0 else 0)

    def test_a_shared_parent_does_not_count(self):
        queues = [
            plain_queue("p", deserved=20),
            plain_queue("old", parent="p", deserved=2),
            plain_queue("new", parent="p", deserved=10),
        ]
        assert len(self.opinion(queues, 7, switches=TREE, ancestorReclaimLevel=5).allowed) == 5

    def test_a_broken_tree_is_a_veto(self):
        queues = [plain_queue("old"), plain_queue("new", parent="nowhere", deserved=10)]
        assert self.opinion(queues, 7, switches=TREE).allowed == frozenset()

    def test_one_answer_for_actions_on_gangs(self):
        queues = [plain_queue("old", deserved=4), plain_queue("new", deserved=10)]
        assert len(self.opinion(queues, 7, point="unified_evictable").allowed) == 3
        assert len(self.opinion(queues, 7, new="old", point="unified_evictable").allowed) == 7
