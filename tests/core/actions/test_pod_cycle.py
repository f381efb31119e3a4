"""The per-pod cycle: its points in order, what a failure undoes, groups that wait, preemption."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from scheduler_core import Workspace, run_session
from scheduler_core.framework.plugin import Plugin
from scheduler_core.framework.pod_points import APPROVE, Deny, Wait
from scheduler_core.model.errors import BadInput
from scheduler_core.plugins import PLUGINS
from scheduler_core.serde.policy import parse_policy
from tests import builders as b

SORTED = """
actions: "enqueue, allocate"
tiers:
- plugins:
  - name: priority-sort
  - name: predicates
  - name: nodeorder
  - name: default-preemption
"""
TOGETHER = SORTED.replace("priority-sort", "coscheduling")


def decide(policy, *objects, at=100, memory=None, workspace=None):
    taken = b.snapshot(b.priority_classes(), b.queue("q"), *objects)
    return run_session(taken, policy, now=b.now(at), memory=memory, workspace=workspace, check=True)


def binds(result):
    return {bind.pod.removeprefix("default/"): bind.node for bind in result.binds}


def lone(name, **fields):
    """A pod with a group of its own."""
    priority = fields.pop("priority", "pc-normal")
    created = fields.pop("created", 0)
    pod = b.pod(name, name, priority=priority, created=created, **fields)
    return [b.pod_group(name, "q", 1, priority=priority, created=created, phase="Inqueue"), pod]


class Recorder(Plugin):
    """Writes down at which point it is asked, and answers as it was set."""

    name: ClassVar[str] = "recorder"
    calls: ClassVar[list[str]] = []
    answers: ClassVar[dict[str, Any]] = {}

    def _say(self, point, default=None):
        Recorder.calls.append(point)
        answer = Recorder.answers.get(point, default)
        return answer(self.session) if callable(answer) else answer

    def pre_filter(self, task):
        return self._say("pre_filter")

    def pre_score(self, task, nodes):
        return self._say("pre_score")

    def normalize_score(self, task, scores):
        Recorder.calls.append("normalize_score")
        return -scores if Recorder.answers.get("normalize_score") else scores

    def reserve(self, task, node):
        return self._say("reserve")

    def unreserve(self, task, node):
        self._say("unreserve")

    def permit(self, task, node):
        return self._say("permit", APPROVE)

    def pre_bind(self, task, node):
        return self._say("pre_bind")

    def bind(self, task, node):
        return self._say("bind", False)

    def post_bind(self, task, node):
        self._say("post_bind")


class Second(Plugin):
    """A second binder and reserver."""

    name: ClassVar[str] = "second"

    def bind(self, task, node):
        Recorder.calls.append("second bind")
        return True

    def unreserve(self, task, node):
        Recorder.calls.append("second unreserve")


@pytest.fixture
def recorder(monkeypatch):
    """A policy with the recorder in it."""
    monkeypatch.setitem(PLUGINS, "recorder", Recorder)
    monkeypatch.setitem(PLUGINS, "second", Second)
    monkeypatch.setattr("scheduler_core.scheduler._tables", None)
    Recorder.calls, Recorder.answers = [], {}
    return Recorder


def with_recorder():
    return parse_policy(f"{SORTED}  - name: recorder\n  - name: second\n")


class TestPoints:
    def test_they_are_asked_in_order(self, recorder):
        result, _ = decide(with_recorder(), b.node("n1"), *lone("a", cpu=1))
        assert binds(result) == {"a": "n1"}
        asked = ["pre_filter", "pre_score", "normalize_score", "reserve", "permit", "pre_bind", "bind", "second bind"]
        assert recorder.calls == [*asked, "post_bind"]

    def test_the_first_bind_that_succeeds_ends_the_list(self, recorder):
        recorder.answers = {"bind": True}
        decide(with_recorder(), b.node("n1"), *lone("a", cpu=1))
        assert "second bind" not in recorder.calls
        assert recorder.calls[-1] == "post_bind"

    def test_a_failed_pre_filter_ends_the_cycle(self, recorder):
        recorder.answers = {"pre_filter": "not now"}
        result, _ = decide(with_recorder(), b.node("n1"), *lone("a", cpu=1))
        assert binds(result) == {}
        assert recorder.calls == ["pre_filter"]

    @pytest.mark.parametrize(
        ("point", "answer"),
        [("reserve", "no"), ("permit", Deny("no")), ("pre_bind", "no"), ("bind", "the API server said no")],
    )
    def test_a_failure_from_reserve_on_unreserves_in_reverse_order(self, recorder, point, answer):
        recorder.answers = {point: answer}
        result, _ = decide(with_recorder(), b.node("n1"), *lone("a", cpu=1))
        assert binds(result) == {}
        assert recorder.calls[-2:] == ["second unreserve", "unreserve"]
        assert result.pipelined == ()

    def test_a_failed_pre_score_places_nobody(self, recorder):
        recorder.answers = {"pre_score": "no data"}
        result, _ = decide(with_recorder(), b.node("n1"), *lone("a", cpu=1))
        assert binds(result) == {}

    def test_normalised_scores_choose_the_node(self, recorder):
        objects = [b.node("n1", cpu=64), b.node("n2", cpu=4), *lone("a", cpu=1)]
        assert binds(decide(with_recorder(), *objects)[0]) == {"a": "n1"}
        recorder.answers = {"normalize_score": True}
        assert binds(decide(with_recorder(), *objects)[0]) == {"a": "n2"}

    def test_a_pod_that_waits_keeps_its_place_until_its_time_is_over(self, recorder):
        recorder.answers = {"permit": lambda session: Wait(b.now(130))}
        first, memory = decide(with_recorder(), b.node("n1", cpu=1), *lone("a", cpu=1))
        assert (binds(first), len(first.pipelined)) == ({}, 1)
        later, memory = decide(
            with_recorder(), b.node("n1", cpu=1), *lone("a", cpu=1), *lone("b", cpu=1), at=120, memory=memory
        )
        assert (binds(later), [p.pod for p in later.pipelined]) == ({}, ["default/a"])
        recorder.answers = {}
        last, _ = decide(with_recorder(), b.node("n1", cpu=1), *lone("a", cpu=1), at=125, memory=memory)
        assert binds(last) == {"a": "n1"}

    def test_two_sorters_are_an_error(self):
        with pytest.raises(BadInput, match="one sorter"):
            parse_policy(f"{SORTED}  - name: coscheduling\n")


class TestOrderAndQueue:
    def test_the_higher_priority_goes_first_then_the_older(self):
        objects = [b.node("n1", cpu=2), *lone("a", cpu=1, created=5), *lone("b", cpu=1, created=1)]
        objects += lone("c", cpu=1, priority="pc-high", created=9)
        assert set(binds(decide(parse_policy(SORTED), *objects)[0])) == {"b", "c"}

    def test_who_found_no_place_is_not_tried_again_until_something_happens(self):
        policy = parse_policy(SORTED)
        full = [b.node("n1", cpu=1), *lone("big", cpu=4)]
        _, memory = decide(policy, *full)
        assert [(e.pod, e.where.value, e.attempts) for e in memory.queue] == [("default/big", "unschedulable", 1)]
        _, memory = decide(policy, *full, at=150, memory=memory)
        assert memory.queue[0].attempts == 1
        result, memory = decide(policy, b.node("n2", cpu=8), *full, at=160, memory=memory)
        assert binds(result) == {"big": "n2"}
        assert memory.queue == ()

    def test_whoever_backs_off_says_so(self):
        policy = parse_policy(SORTED)
        full = [b.node("n1", cpu=1), *lone("big", cpu=4)]
        _, memory = decide(policy, *full)
        result, _ = decide(policy, b.node("n2", cpu=8), *full, at=100.5, memory=memory)
        assert binds(result) == {}
        assert [reason.code.value for reason in result.reasons] == ["BackingOff"]


def group(name, size, least, cpu=1, *, timeout=None, created=90, priority="pc-normal"):
    made = b.pod_group(name, "q", least, priority=priority, created=created, phase="Inqueue")
    if timeout is not None:
        made["metadata"].setdefault("annotations", {})["tidesched.io/schedule-timeout-seconds"] = str(timeout)
    return [made, *(b.pod(f"{name}-{i}", name, cpu=cpu, priority=priority, created=created) for i in range(size))]


class TestCoscheduling:
    def test_a_group_is_bound_when_enough_have_a_place(self):
        result, memory = decide(parse_policy(TOGETHER), b.node("n1", cpu=3), *group("g", 4, 3))
        assert sorted(binds(result)) == ["g-0", "g-1", "g-2"]
        assert memory.reservations == ()

    @pytest.mark.parametrize(("room", "bound", "kept"), [(40, 40, 0), (39, 0, 39)])
    def test_of_a_large_group_all_are_bound_or_none(self, room, bound, kept):
        result, memory = decide(parse_policy(TOGETHER), b.node("n1", cpu=room), *group("g", 40, 40))
        assert (len(binds(result)), len(memory.assumed)) == (bound, bound)
        assert (len(result.pipelined), len(memory.reservations)) == (kept, kept)

    def test_one_that_is_not_complete_keeps_its_places_and_binds_nobody(self):
        result, memory = decide(parse_policy(TOGETHER), b.node("n1", cpu=2), *group("g", 4, 3))
        assert (binds(result), len(result.pipelined)) == ({}, 2)
        assert [r.expires for r in memory.reservations] == [b.now(160)] * 2

    def test_and_is_bound_as_soon_as_it_is(self):
        policy = parse_policy(TOGETHER)
        _, memory = decide(policy, b.node("n1", cpu=2), *group("g", 4, 3))
        result, _ = decide(policy, b.node("n1", cpu=2), b.node("n2", cpu=1), *group("g", 4, 3), at=110, memory=memory)
        assert len(binds(result)) == 3

    def test_a_member_whose_room_has_to_be_left_first_does_not_count_before(self):
        policy = parse_policy(TOGETHER)
        group_of_3 = group("g", 3, 3, priority="pc-high")
        group_of_3[1] = b.pod("g-0", "g", cpu=2, priority="pc-high", created=90)
        low = [b.pod_group("low", "q", 1, priority="pc-low", phase="Running")]
        low.append(b.pod("low", "low", cpu=2, node="n1", priority="pc-low"))
        # low leaves for g-0, g-1 has a place, g-2 has none: none starts yet.
        nodes = [b.node("n1", cpu=2), b.node("n2", cpu=2)]
        filler = [b.pod_group("f", "q", 1, phase="Running"), b.pod("f", "f", cpu=1, node="n2", priority="pc-high")]
        result, memory = decide(policy, *nodes, *filler, *low, *group_of_3)
        assert (binds(result), [e.pod for e in result.evictions]) == ({}, ["default/low"])
        low[1]["metadata"]["deletionTimestamp"] = b.at(100)
        result, memory = decide(policy, *nodes, *filler, *low, *group_of_3, at=110, memory=memory)
        assert binds(result) == {}
        # low is gone, but one member has no place: the room that was made is kept like the other's.
        result, memory = decide(policy, *nodes, *filler, low[0], *group_of_3, at=120, memory=memory)
        assert (binds(result), len(result.pipelined)) == ({}, 2)
        result, memory = decide(policy, *nodes, low[0], *group_of_3, at=130, memory=memory)
        assert binds(result) == {"g-0": "n1", "g-1": "n2", "g-2": "n2"}

    def test_after_its_time_everybody_is_let_go(self):
        policy = parse_policy(TOGETHER)
        _, memory = decide(policy, b.node("n1", cpu=2), *group("g", 4, 3, timeout=30))
        assert len(memory.reservations) == 2
        late = [b.node("n1", cpu=2), *group("g", 4, 3, timeout=30), *group("h", 2, 2, created=95)]
        result, memory = decide(policy, *late, at=121, memory=memory)
        assert sorted(binds(result)) == ["h-0", "h-1"]
        assert {r.podgroup: r.code.value for r in result.reasons} == {"default/g": "TimedOut"}
        assert memory.reservations == ()

    def test_the_clock_runs_from_the_creation_of_the_group(self):
        result, _ = decide(parse_policy(TOGETHER), b.node("n1", cpu=8), *group("g", 4, 3, timeout=5, created=90))
        assert binds(result) == {}
        assert [r.code.value for r in result.reasons] == ["TimedOut"]

    def test_members_that_run_count_when_one_is_made_anew(self):
        runs = group("g", 3, 3, timeout=5, created=10)
        for pod in runs[1:3]:
            pod["spec"]["nodeName"], pod["status"]["phase"] = "n1", "Running"
        result, _ = decide(parse_policy(TOGETHER), b.node("n1", cpu=3), *runs)
        assert binds(result) == {"g-2": "n1"}

    def test_groups_stay_together_by_priority_and_creation(self):
        objects = [*group("late", 2, 2, created=95), *group("early", 2, 2, created=91)]
        result, _ = decide(parse_policy(TOGETHER), b.node("n1", cpu=3), *objects)
        assert sorted(binds(result)) == ["early-0", "early-1"]

    def test_each_role_has_its_own_minimum(self):
        made, *pods = group("g", 3, 2)
        made["spec"]["minTaskMember"] = {"ps": 1, "worker": 1}
        for pod, role in zip(pods, ("worker", "worker", "ps"), strict=True):
            pod["metadata"].setdefault("annotations", {})["volcano.sh/task-spec"] = role
            pod["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "2" if role == "ps" else "1"}}
        result, _ = decide(parse_policy(TOGETHER), b.node("n1", cpu=2), made, *pods)
        assert binds(result) == {}
        result, _ = decide(parse_policy(TOGETHER), b.node("n1", cpu=4), made, *pods)
        assert len(binds(result)) == 3

    def test_members_of_different_priorities_are_an_error(self):
        objects = group("g", 2, 2)
        objects[2]["spec"]["priority"] = 5
        result, _ = decide(parse_policy(TOGETHER), b.node("n1"), *objects)
        (reason,) = result.reasons
        assert reason.code.value == "Misconfigured"
        assert "share one" in reason.message


class TestPreemption:
    def victims(self, *objects, at=1000):
        result, memory = decide(parse_policy(SORTED), *objects, at=at)
        return sorted(e.pod.removeprefix("default/") for e in result.evictions), result, memory

    def runs(self, name, node, priority, *, cpu=1, started=10):
        return lone(name, cpu=cpu, priority=priority, node=node, started=started)

    def test_only_who_is_needed_leaves(self):
        objects = [b.node("n1", cpu=4)]
        for i in range(4):
            objects += self.runs(f"low-{i}", "n1", "pc-low", started=10 + i)
        fallen, result, memory = self.victims(*objects, *lone("vip", cpu=2, priority="pc-high"))
        assert fallen == ["low-2", "low-3"]
        assert [(p.pod, p.node) for p in result.pipelined] == [("default/vip", "n1")]
        assert memory.queue[0].nominated == "n1"

    @pytest.mark.parametrize(
        ("first", "second", "chosen"),
        [
            (("pc-normal",), ("pc-low",), "n2"),
            (("pc-normal", "pc-normal"), ("pc-normal", "pc-low"), "n2"),
            (("pc-low", "pc-low"), ("pc-low",), "n2"),
            (("pc-low",), ("pc-low",), "n1"),
        ],
        ids=["lowest top priority", "lowest sum", "fewest victims", "first name"],
    )
    def test_the_node_is_chosen_by_the_rules(self, first, second, chosen):
        objects = []
        for node, held in (("n1", first), ("n2", second)):
            objects.append(b.node(node, cpu=2))
            for i, priority in enumerate(held):
                objects += self.runs(f"{node}-{i}", node, priority, cpu=2 // len(held))
        _, result, _ = self.victims(*objects, *lone("vip", cpu=2, priority="pc-high"))
        assert {e.node for e in result.evictions} == {chosen}

    def test_the_latest_start_of_the_top_victims_decides_between_equals(self):
        objects = [b.node("n1", cpu=1), b.node("n2", cpu=1)]
        objects += self.runs("old", "n1", "pc-low", started=10) + self.runs("new", "n2", "pc-low", started=500)
        assert self.victims(*objects, *lone("vip", cpu=1, priority="pc-high"))[0] == ["new"]

    @pytest.mark.parametrize(("budgets", "leaves"), [((), "b"), ((1,), "a")], ids=["no budget", "one may leave"])
    def test_equal_victims_go_by_name_whichever_was_there_first(self, budgets, leaves):
        # The budget allows the first of them to leave and protects the other one.
        workspace, objects = Workspace(), [b.node("n1", cpu=2), *(self.budget("kept", allowed) for allowed in budgets)]
        for name in ("b", "a"):
            runs = self.runs(name, "n1", "pc-low")
            runs[1]["metadata"]["labels"] = {"app": "kept"}
            objects += runs
            decide(parse_policy(SORTED), *objects, workspace=workspace)
        objects += lone("vip", cpu=1, priority="pc-high")
        result, _ = decide(parse_policy(SORTED), *objects, workspace=workspace)
        assert [e.pod for e in result.evictions] == [f"default/{leaves}"]

    def budget(self, app, allowed):
        return {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": app, "namespace": "default"},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": app}}},
            "status": {"disruptionsAllowed": allowed},
        }

    def test_fewest_violated_budgets_come_before_the_lowest_priority(self):
        objects = [b.node("n1", cpu=1), b.node("n2", cpu=1), self.budget("kept", 0)]
        kept = self.runs("low", "n1", "pc-low")
        kept[1]["metadata"]["labels"] = {"app": "kept"}
        objects += kept + self.runs("normal", "n2", "pc-normal")
        assert self.victims(*objects, *lone("vip", cpu=1, priority="pc-high"))[0] == ["normal"]

    def test_who_a_budget_protects_is_kept_before_others(self):
        objects = [b.node("n1", cpu=3), self.budget("kept", 1)]
        for i, app in enumerate(("kept", "kept", "free")):
            runs = self.runs(f"{app}-{i}", "n1", "pc-low", started=10 + i)
            runs[1]["metadata"]["labels"] = {"app": app}
            objects += runs
        assert self.victims(*objects, *lone("vip", cpu=1, priority="pc-high"))[0] == ["free-2"]

    def test_nobody_leaves_where_it_would_not_help(self):
        objects = [b.node("n1", cpu=2), *self.runs("low", "n1", "pc-low"), *self.runs("high", "n1", "pc-high")]
        assert self.victims(*objects, *lone("vip", cpu=2, priority="pc-high"))[0] == []

    def test_a_policy_of_never_is_respected(self):
        objects = [b.node("n1", cpu=1), *self.runs("low", "n1", "pc-low")]
        asks = lone("vip", cpu=1, priority="pc-high")
        asks[1]["spec"]["preemptionPolicy"] = "Never"
        assert self.victims(*objects, *asks)[0] == []

    def test_while_its_victims_leave_it_asks_nobody_else(self):
        objects = [b.node("n1", cpu=1), b.node("n2", cpu=1)]
        leaving = self.runs("low", "n1", "pc-low")
        leaving[1]["metadata"]["deletionTimestamp"] = b.at(990)
        objects += leaving + self.runs("other", "n2", "pc-low")
        asks = lone("vip", cpu=1, priority="pc-high")
        asks[1]["status"]["nominatedNodeName"] = "n1"
        assert self.victims(*objects, *asks)[0] == []

    def test_a_nomination_that_became_impossible_lets_it_ask_again(self):
        objects = [b.node("n1", cpu=1, unschedulable=True), b.node("n2", cpu=1)]
        leaving = self.runs("low", "n1", "pc-low")
        leaving[1]["metadata"]["deletionTimestamp"] = b.at(990)
        objects += leaving + self.runs("other", "n2", "pc-low")
        asks = lone("vip", cpu=1, priority="pc-high")
        asks[1]["status"]["nominatedNodeName"] = "n1"
        assert self.victims(*objects, *asks)[0] == ["other"]

    def test_the_room_stays_promised_until_the_pod_has_it(self):
        policy = parse_policy(SORTED)
        low, vip = self.runs("low", "n1", "pc-low"), lone("vip", cpu=1, priority="pc-high")
        _, memory = decide(policy, b.node("n1", cpu=1), *low, *vip, at=1000)
        low[1]["metadata"]["deletionTimestamp"] = b.at(1001)
        thief = lone("thief", cpu=1, priority="pc-high", created=0)
        result, memory = decide(policy, b.node("n1", cpu=1), *low, *vip, *thief, at=1005, memory=memory)
        assert binds(result) == {}
        result, memory = decide(policy, b.node("n1", cpu=1), *vip, *thief, at=1030, memory=memory)
        assert binds(result) == {"vip": "n1"}


class TestAssumedPods:
    def test_a_bound_pod_keeps_its_place_before_the_cluster_shows_it(self):
        policy = parse_policy(SORTED)
        late = [b.node("n1", cpu=1), *lone("a", cpu=1)]
        result, memory = decide(policy, *late)
        assert binds(result) == {"a": "n1"}
        result, memory = decide(policy, *late, *lone("b", cpu=1), at=110, memory=memory)
        assert binds(result) == {}
        assert [entry.pod for entry in memory.assumed] == ["default/a"]

    def test_it_is_believed_for_so_long_and_tried_again_after_that(self):
        policy = parse_policy(SORTED)
        late = [b.node("n1", cpu=1), *lone("a", cpu=1)]
        _, memory = decide(policy, *late)
        result, memory = decide(policy, *late, at=129, memory=memory)
        assert binds(result) == {}
        result, memory = decide(policy, *late, at=130, memory=memory)
        assert binds(result) == {"a": "n1"}

    def test_what_the_cluster_shows_is_no_belief_any_more(self):
        policy = parse_policy(SORTED)
        _, memory = decide(policy, b.node("n1", cpu=1), *lone("a", cpu=1))
        group, pod = lone("a", cpu=1)
        pod["spec"]["nodeName"], pod["status"]["phase"] = "n1", "Running"
        _, memory = decide(policy, b.node("n1", cpu=1), group, pod, at=110, memory=memory)
        assert memory.assumed == ()

    def test_a_new_pod_of_the_same_name_is_another_one(self):
        policy = parse_policy(SORTED)
        group, pod = lone("a", cpu=1)
        pod["metadata"]["uid"] = "one"
        _, memory = decide(policy, b.node("n1", cpu=1), group, pod)
        pod["metadata"]["uid"] = "two"
        result, _ = decide(policy, b.node("n1", cpu=1), group, pod, at=110, memory=memory)
        assert binds(result) == {"a": "n1"}


def test_zones_take_turns_between_equal_nodes():
    policy = SORTED.replace("  - name: nodeorder\n", "")
    zones = {"n1": "east", "n2": "east", "n3": "west"}
    nodes = [b.node(n, cpu=1, labels={"topology.kubernetes.io/zone": zone}) for n, zone in zones.items()]
    pods = [*lone("a", cpu=1, created=1), *lone("b", cpu=1, created=2)]
    assert binds(decide(parse_policy(policy), *nodes, *pods)[0]) == {"a": "n1", "b": "n2"}
    turns = policy + "configurations:\n- name: allocate\n  arguments: {interleaveZones: true}\n"
    assert binds(decide(parse_policy(turns), *nodes, *pods)[0]) == {"a": "n1", "b": "n3"}


@pytest.mark.parametrize(
    ("arguments", "bound"),
    [
        ("{}", True),
        ("{podInitialBackoffSeconds: 9.0}", False),
        ("{podInitialBackoffSeconds: 9.0, podMaxBackoffSeconds: 3.0}", True),
    ],
)
def test_how_long_a_pod_waits_before_it_is_tried_again(arguments, bound):
    """There is room five seconds after the first attempt."""
    policy = parse_policy(f"{SORTED}configurations:\n- name: allocate\n  arguments: {arguments}\n")
    _, memory = decide(policy, b.node("n1", cpu=1), *lone("a", cpu=2), at=100)
    nodes = [b.node("n1", cpu=1), b.node("n2", cpu=4)]
    assert bool(binds(decide(policy, *nodes, *lone("a", cpu=2), at=105, memory=memory)[0])) is bound
