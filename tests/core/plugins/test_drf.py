"""drf: the order of gangs, who may be preempted, and the tree of queues."""

from __future__ import annotations

import pytest

from scheduler_core import BadInput, PluginOption, Policy, run_session
from scheduler_core.plugins.drf import Drf
from scheduler_core.serde.policy import parse_policy
from tests.core.plugins.opening import cores, opened, plain_queue
from tests.core.small_cluster import A, H, gang, node, snapshot


def pods(name, queue, count, *, running=0, cpu=1, **more):
    return gang(name, count, 0, queue, on=["n1"] * running, least=1, cpu=cpu * 1000, memory=0, **more)


def index(plugin, name):
    return plugin.session.gangs.names.index(f"ns/{name}")


def members(plugin, name):
    return plugin.session.gangs.members(index(plugin, name))


def tree_queue(name, path, weights, **more):
    notes = {"volcano.sh/hierarchy": path, "volcano.sh/hierarchy-weights": weights}
    return plain_queue(name, annotations=notes, **more)


class TestGangs:
    def test_the_smaller_dominant_share_goes_first(self):
        given = snapshot(
            [cores("n1", 10, 100_000)],
            [plain_queue("q")],
            gang("cpu", 3, 0, "q", on=["n1"] * 2, least=1, cpu=1500, memory=0),
            gang("mem", 3, 0, "q", on=["n1"] * 2, least=1, cpu=100, memory=20_000),
            pods("new", "q", 1),
        )
        plugin = opened(Drf, given)
        assert [plugin.job_order(index(plugin, name)) for name in ("cpu", "mem", "new")] == [(0.3,), (0.4,), (0.0,)]

    def test_a_promise_counts_as_held(self):
        plugin = opened(Drf, snapshot([cores("n1", 10)], [plain_queue("q")], pods("x", "q", 2, running=1)))
        assert plugin.job_order(0) == (0.1,)
        statement = plugin.session.statement()
        waiting = plugin.session.pending_tasks(0)
        statement.pipeline(waiting[0], 0)
        assert plugin.job_order(0) == (0.2,)

    @pytest.mark.parametrize(("compat", "shares"), [(False, [0.5, 0.25]), (True, [0.125, 0.1875])])
    def test_each_card_type_is_a_resource_of_its_own(self, compat, shares):
        given = snapshot(
            [node("n1", 4, H), node("n2", 12, A)],
            [plain_queue("q")],
            gang("rare", 1, 2, "q", on=["n1"], card=H, cpu=0, memory=0),
            gang("usual", 1, 3, "q", on=["n2"], card=A, cpu=0, memory=0),
        )
        plugin = opened(Drf, given, compat=compat)
        assert [plugin.job_order(g)[0] for g in range(2)] == shares


class TestPreemptable:
    def opinion(self, running, new, **more):
        given = snapshot(
            [cores("n1", 10)],
            [plain_queue("q")],
            pods("old", "q", running, running=running),
            pods("new", "q", 1, cpu=new),
        )
        plugin = opened(Drf, given, **more)
        return plugin.preemptable(members(plugin, "new")[0], members(plugin, "old")).allowed

    def test_as_long_as_their_gang_keeps_as_much(self):
        assert len(self.opinion(6, 2)) == 4
        assert len(self.opinion(6, 6)) == 0

    @pytest.mark.parametrize(("compat", "allowed"), [(False, True), (True, False)])
    def test_members_of_one_gang(self, compat, allowed):
        given = snapshot([cores("n1", 10)], [plain_queue("q")], pods("x", "q", 2, running=1))
        plugin = opened(Drf, given, compat=compat)
        (waiting,) = plugin.session.pending_tasks(0)
        (runs,) = set(members(plugin, "x")) - {waiting}
        assert (runs in plugin.preemptable(waiting, [runs]).allowed) is allowed


class TestTree:
    QUEUES = (
        tree_queue("dev", "root/sci/dev", "1/2/8"),
        tree_queue("test", "root/sci/test", "1/2/2"),
        tree_queue("web", "root/eng", "1/1"),
    )

    def plugin(self, dev, test, web, *, on=True, **more):
        given = snapshot(
            [cores("n1", 20)],
            self.QUEUES,
            pods("d", "dev", 20, running=dev),
            pods("t", "test", 20, running=test),
            pods("w", "web", 20, running=web),
        )
        return opened(Drf, given, switches={"hierarchy": on}, **more)

    def test_level_by_level(self):
        plugin = self.plugin(4, 2, 3)
        # sci holds 2 + 2 as the tree counts it, at weight 2; eng holds 3 at weight 1. Below sci: 4/8 against 2/2.
        names = sorted(("dev", "test", "web"), key=lambda name: plugin.queue_order(plugin.session.ledger.index[name]))
        assert names == ["dev", "test", "web"]

    def test_a_placement_elsewhere_moves_a_queue(self):
        plugin = self.plugin(2, 2, 3)
        session = plugin.session
        web, dev = session.ledger.index["web"], session.ledger.index["dev"]
        assert session.queue_key(dev) < session.queue_key(web)
        statement = session.statement()
        for gang_name, count in (("t", 9), ("d", 9)):
            for task in session.pending_tasks(index(plugin, gang_name))[:count]:
                statement.allocate(task, 0)
        assert session.queue_key(web) < session.queue_key(dev)

    def test_without_the_switch_there_is_no_order_and_no_opinion(self):
        plugin = self.plugin(4, 2, 2, on=False)
        assert plugin.queue_order(0) == ()
        assert plugin.reclaimable(members(plugin, "w")[0], members(plugin, "d")).allowed is None

    @pytest.mark.parametrize(("compat", "count"), [(False, 4), (True, 12)])
    def test_victims_until_the_balance_would_tip(self, compat, count):
        given = snapshot(
            [cores("n1", 12)],
            [tree_queue("a", "root/a", "1/1"), tree_queue("b", "root/b", "1/1")],
            pods("old", "a", 14, running=12),
            pods("new", "b", 1, cpu=7),
        )
        plugin = opened(Drf, given, switches={"hierarchy": True}, compat=compat)
        before = plugin.queue_order(0), plugin.queue_order(1)
        running = [t for t in members(plugin, "old") if plugin.session.tasks.node[t] >= 0]
        opinion = plugin.reclaimable(members(plugin, "new")[0], running)
        assert len(opinion.allowed) == count
        assert (plugin.queue_order(0), plugin.queue_order(1)) == before

    def test_a_place_that_cannot_be_read_is_a_problem_of_its_gangs(self):
        given = snapshot([cores("n1", 4)], [tree_queue("a", "root/a", "1")], pods("x", "a", 1))
        plugin = opened(Drf, given, switches={"hierarchy": True})
        assert "1 weights for the 2 names" in plugin.session.problem(0)

    def test_a_queue_without_a_place_stands_below_the_root(self):
        given = snapshot(
            [cores("n1", 9)],
            [plain_queue("a", weight=1), plain_queue("b", weight=2)],
            pods("x", "a", 4, running=2),
            pods("y", "b", 4, running=3),
        )
        plugin = opened(Drf, given, switches={"hierarchy": True})
        assert plugin.queue_order(1) < plugin.queue_order(0)


class TestBesideProportion:
    TEXT = """\
actions: "enqueue, allocate"
tiers:
- plugins:
  - name: proportion
  - name: drf
    enableHierarchy: true
"""

    @pytest.mark.parametrize("head", ["", "compatibility: volcano\n"])
    def test_a_tree_and_proportion_are_an_error_at_its_line(self, head):
        with pytest.raises(BadInput) as caught:
            parse_policy(head + self.TEXT)
        assert (caught.value.code, caught.value.line) == ("plugin_conflict", 5 + head.count("\n"))

    def test_without_the_tree_they_go_together(self):
        assert parse_policy(self.TEXT.replace("true", "false"))

    def test_a_policy_made_by_hand_is_checked_too(self):
        option = PluginOption(name="drf", switches={"hierarchy": True})
        policy = Policy(actions=("allocate",), tiers=((PluginOption(name="proportion"),), (option,)))
        with pytest.raises(BadInput, match="cannot be in one policy"):
            run_session(snapshot([], []), policy, now=0.0)
