"""capacity-card: each defect of upstream's (volcano-semantics 4.10, a to n) stays away, and comes back where asked for.

With ``compatibility: volcano`` the decisions are upstream's where the test says so.
"""

from __future__ import annotations

import msgspec
import pytest

from scheduler_core import Memory, run_session
from scheduler_core.actions.enqueue import Enqueue
from scheduler_core.framework.combine import Ballot
from scheduler_core.framework.plugin import Plugin
from scheduler_core.framework.session import Session
from scheduler_core.model.pod import Pod, PodPhase
from scheduler_core.model.podgroup import GangPhase
from scheduler_core.model.resources import Amount
from scheduler_core.plugins.capacity_card import CapacityCard
from scheduler_core.state.workspace import Workspace
from tests import builders as b
from tests.core.plugins.opening import opened
from tests.core.small_cluster import (
    A,
    H,
    binds,
    code,
    decide,
    evicted,
    gang,
    inference,
    node,
    policy,
    service,
    snapshot,
    training,
)

B = "NVIDIA-B300"


def as_upstream(rules=None):
    return msgspec.structs.replace(rules or policy("enqueue allocate"), compatibility="volcano")


def phases(result):
    return {outcome.name.removeprefix("ns/"): outcome.phase for outcome in result.podgroups}


def used(result, queue="training"):
    return next(outcome.allocated.cards for outcome in result.queues if outcome.name == queue)


class TestVectors:
    """Quota A5 H3: job mode with A2 H1 in use, task mode with A5 H1."""

    def plugin(self, a, h):
        given = snapshot(
            [node("n1", 9, A), node("n2", 9, H)],
            [training(quota={A: 5, H: 3})],
            gang("a", 1, a, "training", card=A, on=["n1"]),
            gang("h", 1, h, "training", card=H, on=["n2"]),
            *(gang(f"new-{n}", 1, n, "training", card=f"{A}|{H}") for n in (2, 3, 4, 6)),
        )
        return opened(CapacityCard, given, overCommitFactor=100.0)

    @pytest.mark.parametrize(("cards", "permitted"), [(4, True), (6, False)])
    def test_job_mode(self, cards, permitted):
        plugin = self.plugin(2, 1)
        new = plugin.session.gangs.names.index(f"ns/new-{cards}")
        answer = plugin.job_enqueueable(new, plugin.session.minimum(new))
        assert (answer is Ballot.PERMIT) is permitted

    @pytest.mark.parametrize(("cards", "options"), [(2, [False, True]), (3, [False, False])])
    def test_task_mode(self, cards, options):
        plugin = self.plugin(5, 1)
        cls = plugin.session.classes_of(plugin.session.gangs.names.index(f"ns/new-{cards}"))[0]
        assert [plugin.allocatable(0, cls, card) is None for card in cls.cards] == options


def test_a_cpu_and_memory_of_card_tasks_never_count_with_the_flag():
    given = snapshot(
        [node("n1", 8)],
        [training(cpu_milli=4000)],
        gang("cards", 2, 1, "training", on=["n1", "n1"], cpu=3000),
        gang("cpu", 1, 0, "training", cpu=4000),
    )
    assert binds(decide(given)) == {"cpu-0": "n1"}


class TestB:
    def given(self):
        return snapshot(
            [node("n1", 8)],
            [training(quota={H: 1}, cpu_milli=64_000, memory_mib=512_000)],
            gang("nameless", 1, 4, "training", card=""),
        )

    def test_cards_without_a_name_do_not_slip_past_the_quota(self):
        result = decide(self.given())
        assert (binds(result), code(result, "nameless")) == ({}, "Misconfigured")

    def test_upstream_counts_them_against_nothing(self):
        result = decide(self.given(), as_upstream())
        assert (binds(result), used(result)) == ({"nameless-0": "n1"}, {})


class TestC:
    def given(self):
        return snapshot(
            [node("n1", 8, A), node("n2", 1, H)],
            [training(quota={A: 2, H: 8}), training("other", quota={H: 1})],
            gang("full", 1, 2, "training", card=A, on=["n1"]),
            gang("holds", 1, 1, "other", card=H, on=["n2"]),
            gang("new", 1, 1, "training", card=f"{A}|{H}"),
        )

    def test_quota_of_one_card_buys_no_other(self):
        result = decide(self.given(), policy("enqueue allocate"))
        assert (binds(result), used(result)) == ({}, {A: 2000})

    def test_upstream_overruns_the_quota_of_the_card_it_takes(self):
        result = decide(self.given(), as_upstream())
        assert (binds(result), used(result)) == ({"new-0": "n1"}, {A: 3000})


class TestD:
    def given(self):
        return snapshot(
            [node("n1", 4, A), node("n2", 4, H)],
            [training(quota={A: 2, H: 2}), training("other", quota={A: 4, H: 4})],
            gang("a", 1, 4, "other", card=A, on=["n1"]),
            gang("h", 1, 4, "other", card=H, on=["n2"]),
            gang("choice", 4, 1, "training", card=f"{A}|{H}", group={"created": 1.0}),
            gang("late", 1, 1, "training", card=A, group={"created": 2.0}),
        )

    def test_a_promised_choice_counts_against_its_cards(self):
        assert phases(decide(self.given(), policy("enqueue")))["late"] is GangPhase.PENDING

    def test_upstream_keeps_it_under_a_name_of_its_own(self):
        assert phases(decide(self.given(), as_upstream(policy("enqueue"))))["late"] is GangPhase.INQUEUE


def test_e_a_vote_that_another_plugin_overrules_promises_nothing():
    class Refuses(Plugin):
        """Rejects one gang."""

        name = "refuses"

        def job_enqueueable(self, gang_, demand):
            return Ballot.REJECT if self.session.gangs.names[gang_] == "ns/first" else Ballot.ABSTAIN

    given = snapshot(
        [node("n1", 8)],
        [training(quota={H: 4})],
        gang("first", 1, 4, "training", group={"created": 1.0}),
        gang("second", 1, 4, "training", group={"created": 2.0}),
    )
    tiers = [[(CapacityCard({}), {}), (Refuses({}), {})]]
    session = Session(given, policy("enqueue"), tiers, now=9.0, seed=0, memory=Memory(), workspace=Workspace())
    Enqueue({}).execute(session)
    assert [session.phase[g] for g in range(2)] == [GangPhase.PENDING, GangPhase.INQUEUE]


class TestF:
    """A gang that is admitted and has some of its pods: what it holds is not asked for again."""

    def minimum(self, compat, pods):
        group = {"phase": GangPhase.INQUEUE, "min_resources": Amount(4000, 4096), "card_request": {H: 4000}}
        half = gang("half", pods, 1, "training", on=["n1", "n1"], least=4, group={**group, "waits_for_admission": True})
        given = snapshot([node("n1", 8)], [training()], half)
        session = opened(CapacityCard, given, compat=compat).session
        return session.minimum(0)

    @pytest.mark.parametrize("pods", [2, 4])
    def test_only_the_rest_is_promised(self, pods):
        found = self.minimum(False, pods)
        assert (found.cpu_milli, found.memory_mib, found.cards) == (2000, 2048, {(0,): 2000})

    def test_upstream_promises_the_whole_again(self):
        assert self.minimum(True, 2).cards == {(0,): 4000}

    def test_the_room_beside_it_is_not_lost(self):
        given = snapshot(
            [node("n1", 8)],
            [training(quota={H: 6})],
            gang("half", 4, 1, "training", on=["n1", "n1"], group={"phase": GangPhase.INQUEUE}),
            gang("new", 1, 2, "training", group={"created": 5.0}),
        )
        assert set(binds(decide(given))) == {"half-2", "half-3", "new-0"}


@pytest.mark.parametrize(("compat", "cards"), [(False, 2000), (True, 4000)])
def test_g_finished_pods_need_nothing_any_more(compat, cards):
    group = {"min_resources": Amount(4000, 4096), "card_request": {H: 4000}, "waits_for_admission": True}
    made, pods = gang("job", 4, 1, "training", on=["n1", "n1"], group=group, phase=GangPhase.INQUEUE)
    pods = [msgspec.structs.replace(pod, phase=PodPhase.SUCCEEDED) for pod in pods[:2]]
    session = opened(CapacityCard, snapshot([node("n1", 8)], [training()], (made, pods)), compat=compat).session
    assert session.minimum(0).cards == {(0,): cards}


class TestH:
    def test_only_the_resource_of_the_label_counts_cards(self):
        body = b.node("n1", "A", 4, extended={"nvidia.com/gpumem": 99, "nvidia.com/gpucores": 400})
        (found,) = b.snapshot(body).nodes
        assert [(cards.card, cards.count) for cards in found.cards] == [("A", 4)]

    def test_slices_without_a_product_are_no_cards(self):
        body = b.node("n1", extended={"nvidia.com/mig-1g.18gb": 7})
        taken = b.snapshot(body)
        assert (taken.nodes[0].cards, taken.card_types) == ((), ())
        assert "nvidia.com/mig-1g.18gb is not counted as cards" in taken.warnings[0]

    def test_whole_cards_and_slices_on_one_node_keep_their_names_in_any_order(self):
        labels = {"amd.com/gpu.product": "MI300", "nvidia.com/gpu.product": "A"}
        extended = {"nvidia.com/gpu": 2, "nvidia.com/mig-1g.18gb": 7, "amd.com/gpu": 4}
        names = []
        for turn in (1, -1):
            body = b.node(
                "n1", labels=dict(list(labels.items())[::turn]), extended=dict(list(extended.items())[::turn])
            )
            names.append([(cards.card, cards.count) for cards in b.snapshot(body).nodes[0].cards])
        assert names[0] == names[1] == [("A", 2), ("A/mig-1g.18gb-mixed", 7), ("MI300", 4)]


class TestI:
    def given(self):
        return snapshot(
            [node("n1", 4, A)],
            [training(quota={A: 4, B: 4}, cpu_milli=9000, memory_mib=9000)],
            gang("x", 1, 1, "training", card=f"{B}|{A}"),
        )

    def test_an_unknown_card_leaves_the_others(self):
        assert binds(decide(self.given())) == {"x-0": "n1"}

    def test_upstream_fails_on_the_first(self):
        result = decide(self.given(), as_upstream())
        assert (binds(result), code(result, "x")) == ({}, "Misconfigured")


def test_j_queues_without_gangs_and_pods_without_a_gang_break_nothing():
    stray = Pod(namespace="ns", name="stray", scheduler="volcano", group="gone", cpu_milli=10, memory_mib=10)
    given = snapshot([node("n1", 4)], [training(), inference(), training("idle", quota={})], pods=[stray])
    plugin = opened(CapacityCard, given)
    assert [plugin.queue_order(q)[1] for q in range(3)] == [0.0, 0.0, 0.0]
    assert binds(decide(given)) == {}


def test_k_quotas_that_together_exceed_the_cluster_take_nothing_from_anybody():
    given = snapshot(
        [node("n1", 8)],
        [training("a", quota={H: 8}), training("b", quota={H: 8}), training("c", quota={H: 8})],
        gang("all", 1, 8, "a"),
    )
    assert binds(decide(given)) == {"all-0": "n1"}


def test_l_the_same_event_is_told_once():
    given = snapshot([node("n1", 8)], [training(quota={H: 1})], gang("big", 1, 4, "training"))
    first, memory = run_session(given, policy(), now=1.0)
    again, memory = run_session(given, policy(), now=2.0, memory=memory)
    assert ([event.reason for event in first.events], again.events) == (["InsufficientScalarQuota"], ())


def test_m_nobody_falls_for_a_queue_that_may_not_use_the_cards():
    given = snapshot(
        [node("n1", 4)],
        [training(), inference(quota={H: 2})],
        gang("job", 1, 4, "training", on=["n1"]),
        service("svc", 4, 1),
    )
    result = decide(given)
    assert evicted(result) == ["job"]
    assert len(result.pipelined) == 2
    full = snapshot(
        [node("n1", 4)],
        [training(), inference(quota={})],
        gang("job", 1, 4, "training", on=["n1"]),
        service("svc", 1, 1),
    )
    assert evicted(decide(full)) == []


def test_n_a_choice_that_was_taken_back_is_free_again():
    given = snapshot(
        [node("n1", 1, A), node("n2", 1, H)],
        [training(quota={A: 1, H: 1})],
        gang("big", 3, 1, "training", card=f"{A}|{H}", group={"created": 1.0, "priority": 9}),
        gang("small", 1, 1, "training", card=f"{A}|{H}", group={"created": 2.0}),
    )
    result = decide(given, policy("allocate"))
    assert (binds(result), used(result)) == ({"small-0": "n1"}, {A: 1000})


@pytest.mark.parametrize(("compat", "bound"), [(False, {"x-0": "n1"}), (True, {})])
def test_absent_cpu_and_memory(compat, bound):
    """No limit here, nothing at all upstream (contracts 3.4)."""
    given = snapshot([node("n1", 4)], [training()], gang("x", 1, 0, "training"))
    assert binds(decide(given, as_upstream() if compat else policy("enqueue allocate"))) == bound


def test_a_parent_means_nothing_to_it():
    given = snapshot(
        [node("n1", 4)],
        [training("top", quota={H: 1}), training("below", quota={H: 4}, parent="top")],
        gang("x", 1, 3, "below"),
        gang("y", 1, 1, "top"),
    )
    assert set(binds(decide(given))) == {"x-0", "y-0"}


@pytest.mark.parametrize("rules", [policy("enqueue allocate reclaim"), as_upstream(policy("enqueue allocate reclaim"))])
def test_jobs_whose_pods_are_not_made_yet_are_admitted(rules):
    """A cluster without a single pod has no kinds of tasks, but tables with room for some."""
    group = {"phase": GangPhase.PENDING, "waits_for_admission": True, "replicas": 2, "card_request": {H: 2000}}
    waiting, _ = gang("new", 2, 1, "training", group=group)
    result = decide(snapshot([node("n1", 8)], [training()], (waiting, [])), rules)
    assert phases(result) == {"new": GangPhase.INQUEUE}
