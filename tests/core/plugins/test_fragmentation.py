"""fragmentation: the measure by hand, the choice of node and card, and the openb trace for one seed."""

from __future__ import annotations

import pytest

from bench import openb
from scheduler_core import PluginOption, Policy
from scheduler_core.framework.kernels import tables
from scheduler_core.framework.kernels.fragments import bring_up
from scheduler_core.model.cards import NodeCards
from scheduler_core.model.node import Node
from scheduler_core.plugins.fragmentation import Fragmentation
from tests.core.open_session import task_of
from tests.core.plugins.opening import opened
from tests.core.small_cluster import A, H, decide, gang, node, snapshot, training


def opened_on(left, tasks, *waiting, **room):
    """The plugin on one node whose cards have so much left; ``tasks``: cards of the usual ones, equally common."""
    usual = [gang(f"usual{i}", 8, cards, "training", memory=1000) for i, cards in enumerate(tasks)]
    used = [(i, 1 - free / 1000) for i, free in enumerate(left) if free < 1000]
    idle = {"on": ["n1"], "cpu": 0, "memory": 0}
    held = [gang(f"held{i}", 1, part, "training", card_indices=(i,), **idle) for i, part in used]
    given = snapshot([node("n1", len(left), **room)], [training()], *usual, *held, *waiting)
    return opened(Fragmentation, given, popularity=60)


def fragments(plugin):
    """Of the only node, milli-cards."""
    session, form = plugin.kept, plugin.compiled_form("node_order")
    counted = tables.score_columns(session, [form], [], []).fragments
    bring_up(tables.node_columns(session), tables.card_columns(session), counted, tables.new_log(0))
    return counted.before[0]


@pytest.mark.parametrize(
    ("left", "tasks", "expected"),
    [
        ((1000, 1000), [1], 0),
        ((1000, 400), [1], 400),
        ((1000, 400), [2], 1400),
        ((1000, 400), [0.5], 400),
        ((1000, 600), [0.5], 0),
        ((1000, 600), [0], 1600),
        ((1000, 400), [1, 2], 900),
        ((0, 0), [1], 0),
    ],
)
def test_what_no_task_of_the_mix_can_use(left, tasks, expected):
    assert fragments(opened_on(left, tasks)) == expected


@pytest.mark.parametrize("short", [{"cpu": 999}, {"memory": 999}])
def test_where_a_usual_task_lacks_cpu_or_memory_everything_is_wasted(short):
    assert fragments(opened_on((1000, 600), [0.5], **short)) == 1600


def score(left, cards):
    plugin = opened_on(left, [1], gang("x", 1, cards, "training", memory=1000))
    cls = plugin.session.cluster.class_of(task_of(plugin.session, "x-0"))
    return int(plugin.node_order(cls, slice(None))[0])


def test_fifty_where_nothing_changes_and_more_where_fragments_go():
    assert score((1000,), 1) == 50
    assert score((1000, 400), 0.4) == 59  # 0.4 of a card less: 100 / (1 + e^-0.4)
    assert score((1000,), 0.4) == 35  # 0.6 of a card more: 100 / (1 + e^0.6)
    assert score((300,), 0.4) == 0


def test_two_classes_with_the_same_cpu_and_memory_have_scores_of_their_own():
    one, part = gang("one", 1, 1, "training"), gang("part", 1, 0.4, "training")
    plugin = opened_on((1000, 400), [1], one, part)
    classes = [plugin.kept.cluster.class_of(task_of(plugin.kept, f"ns/{name}-0")) for name in ("one", "part")]
    assert [int(plugin.node_order(cls, slice(None))[0]) for cls in classes] == [50, 59]


POLICY = Policy(actions=("allocate",), tiers=((PluginOption(name="gang"), PluginOption(name="fragmentation")),))


def chosen(nodes, *gangs):
    result = decide(snapshot(nodes, [training()], *gangs), POLICY)
    return {bind.pod: (bind.node, bind.card_indices) for bind in result.binds}


def test_a_share_goes_where_it_leaves_the_fewest_fragments():
    """The usual task takes a whole card, so the half-used card is lost already and the new share goes there."""
    usual = [gang(f"usual{i}", 1, 1, "training", on=["n3"]) for i in range(6)]
    half = gang("half", 1, 0.5, "training", on=["n2"])
    found = chosen([node("n1", 2), node("n2", 2), node("n3", 8)], *usual, half, gang("x", 1, 0.5, "training"))
    assert found == {"ns/x-0": ("n2", (0,))}


def test_a_card_of_the_node_is_chosen_for_what_stays_useful():
    """Best fit would take the card with 0.7 left; 0.2 there serves no task, 0.4 beside serves the usual 0.4."""
    usual = [gang(f"usual{i}", 1, 0.4, "training", on=["n2"]) for i in range(8)]
    held = [
        gang("a", 1, 0.3, "training", on=["n1"], card_indices=(0,)),
        gang("b", 1, 0.1, "training", on=["n1"], card_indices=(1,)),
    ]
    found = chosen([node("n1", 2), node("n2", 8, cpu=8_000)], *usual, *held, gang("x", 1, 0.5, "training"))
    assert found == {"ns/x-0": ("n1", (1,))}


def test_a_card_type_that_the_usual_task_does_not_take_is_wasted():
    cards = tuple(NodeCards(card, "nvidia.com/gpu", 1) for card in (A, H))
    mixed = Node(name="n1", cpu_milli=64_000, memory_mib=64_000, cards=cards)
    assert fragments(opened(Fragmentation, snapshot([mixed], [training()], gang("usual", 1, 1, "training")))) == 1000


def test_the_plugin_knows_the_card_of_a_snapshot():
    assert chosen([node("n1", 1, card=H)], gang("x", 1, 1, "training")) == {"ns/x-0": ("n1", (0,))}


@pytest.mark.parametrize("policy", ["BestFit", "FGD"])
def test_openb_for_one_seed(policy):
    if not (openb.NODES.exists() and openb.PODS.exists()):
        pytest.skip(f"the openb trace is not in {openb.DATA}; TIDESCHED_DATA names the folder of the shared data")
    found = openb.run(openb.read_nodes(openb.NODES), openb.read_pods(openb.PODS), policy, 42)
    # One seed is not a mean: twice what a mean may be away.
    for point, published in zip(("95", "100", "130"), openb.PUBLISHED[policy], strict=False):
        assert abs(found[point] - published) <= 2 * openb.tolerance(policy)
