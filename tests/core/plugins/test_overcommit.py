"""overcommit: the vectors of volcano-semantics 9, and what may be taken back."""

from __future__ import annotations

import pytest

from scheduler_core import BadInput
from scheduler_core.framework.combine import Ballot
from scheduler_core.model.podgroup import GangPhase
from scheduler_core.model.reason import ReasonCode
from scheduler_core.plugins.overcommit import Overcommit
from scheduler_core.plugins.proportion import Proportion
from scheduler_core.serde.policy import parse_policy
from tests.core.plugins.opening import cores, opened, plain_queue, waiting_job
from tests.core.small_cluster import gang, node, snapshot


def pods(name, queue, count, *, running=0, cpu=1, **more):
    return gang(name, count, 0, queue, on=["n1"] * running, least=1, cpu=cpu * 1000, memory=0, **more)


def plugin_of(*gangs, total=10, queues=None, **more):
    return opened(
        Overcommit, snapshot([cores("n1", total)], queues or [plain_queue("q"), plain_queue("r")], *gangs), **more
    )


def vote(plugin, name="new"):
    gang_ = plugin.session.gangs.names.index(f"ns/{name}")
    return plugin.job_enqueueable(gang_, plugin.session.minimum(gang_))


@pytest.mark.parametrize(("minimum", "permitted"), [(3, True), (4, False)])
def test_ten_cores_by_a_factor_of_one_point_two(minimum, permitted):
    """8 used, 1 promised: 12 - 8 = 4, and 1 + 3 fits while 1 + 4 does not."""
    plugin = plugin_of(pods("runs", "q", 8, running=8), (waiting_job("new", "q", minimum), []))
    plugin.session.ledger.inqueue[0, 0] = 1000
    answer = vote(plugin)
    assert (answer is Ballot.PERMIT) is permitted
    if not permitted:
        assert (answer.code, answer.limit, answer.allocated, answer.inqueue, answer.short) == (
            ReasonCode.OVER_COMMITTED,
            12000,
            8000,
            1000,
            1000,
        )


def test_the_factor_is_exact():
    plugin = plugin_of((waiting_job("new", "q", 11), []), **{"overcommit-factor": 1.1})
    assert vote(plugin) is Ballot.PERMIT


def test_only_what_is_asked_for_counts():
    group = waiting_job("new", "q", 0)
    plugin = plugin_of(pods("runs", "q", 30, running=30), (group, []))
    assert vote(plugin) is Ballot.PERMIT


def test_cards_of_all_types_together_and_unknown_ones_not_at_all():
    given = [node("n1", 4)]
    for scalars, permitted in (({"nvidia.com/gpu": 4}, True), ({"nvidia.com/gpu": 5}, False)):
        group = waiting_job("new", "q", 0, scalars=scalars)
        plugin = opened(Overcommit, snapshot(given, [plain_queue("q")], (group, [])))
        assert (vote(plugin) is Ballot.PERMIT) is permitted
    group = waiting_job("new", "q", 0, card_request={"NVIDIA-B300": 1000})
    plugin = opened(Overcommit, snapshot(given, [plain_queue("q")], (group, [])))
    assert vote(plugin).resource == "NVIDIA-B300"


@pytest.mark.parametrize(("compat", "permitted"), [(False, False), (True, True)])
def test_a_gang_without_minimum_resources(compat, permitted):
    plugin = plugin_of(pods("new", "q", 1, cpu=13), compat=compat)
    assert (vote(plugin) is Ballot.PERMIT) is permitted


class TestTakingBack:
    """Pitfall 1: a full cluster must not keep a gang from being looked at that is entitled to what others use."""

    def vote(self, actions, *, entitled=True, reclaimable=True, compat=False):
        queues = [plain_queue("q"), plain_queue("r", reclaimable=reclaimable)]
        mine = 0 if entitled else 6
        gangs = [
            pods("old", "r", 12 - mine, running=12 - mine),
            pods("mine", "q", max(1, mine), running=mine, phase=GangPhase.RUNNING),
            pods("new", "q", 2, cpu=2),
        ]
        plugin = plugin_of(*gangs, total=10, queues=queues, actions=actions, compat=compat, beside=(Proportion({}),))
        return vote(plugin)

    def test_with_reclaim_what_others_use_beyond_their_part_is_within_reach(self):
        assert self.vote("enqueue allocate") is not Ballot.PERMIT
        assert self.vote("enqueue allocate reclaim") is Ballot.PERMIT

    def test_not_where_the_queue_has_its_part_already(self):
        assert self.vote("enqueue allocate reclaim", entitled=False) is not Ballot.PERMIT

    def test_not_from_queues_that_give_nothing_back(self):
        assert self.vote("enqueue allocate reclaim", reclaimable=False) is not Ballot.PERMIT


TEXT = 'actions: "enqueue"\ntiers:\n- plugins:\n  - {name: overcommit, arguments: {overcommit-factor: 0.9}}\n'


def test_a_factor_below_one_is_an_error_and_upstream_falls_back():
    with pytest.raises(BadInput) as caught:
        parse_policy(TEXT)
    assert (caught.value.code, caught.value.line) == ("bad_argument", 4)
    policy = parse_policy("compatibility: volcano\n" + TEXT)
    assert policy.tiers[0][0].arguments["overcommit-factor"] == 1.2
    assert len(policy.warnings) == 1
