"""binpack: the score of packing, number by number (vectors of semantics 9), and its policy arguments."""

from __future__ import annotations

import pytest

from scheduler_core import parse_policy
from scheduler_core.model.errors import BadInput
from tests.core.open_session import own_scores
from tests.core.small_cluster import H, gang, node, snapshot, training


@pytest.mark.parametrize(
    ("used", "capacity", "asked", "weight", "scale", "expected"),
    [
        pytest.param((1000, 6), (4000, 8), (1000, 2), (1, 5), 1, 550 / 6, id="half the cpu and all cards"),
        pytest.param((1000, 6), (4000, 8), (1000, 3), (1, 5), 1, 0, id="over capacity is zero for the whole node"),
        pytest.param((1000, 8), (4000, 8), (1000, 0), (1, 5), 1, 50, id="what is not asked for does not count"),
        pytest.param((1000, 0), (4000, 0), (1000, 1), (1, 1), 1, 25, id="what the node lacks keeps its weight"),
        pytest.param((1000, 6), (4000, 8), (1000, 2), (0, 0), 1, 0, id="no weights"),
        pytest.param((1000, 6), (4000, 8), (1000, 2), (1, 0), 10, 500, id="one weight, ten times"),
        pytest.param((1000, 6), (4000, 8), (1000, 2), (1, 1), 0, 0, id="no weight of the whole"),
    ],
)
def test_scores_by_cpu_and_cards(used, capacity, asked, weight, scale, expected):
    nodes = [node("n1", capacity[1], cpu=capacity[0]), node("n2")]
    held = gang("held", 1, used[1], "training", on=["n1"], cpu=used[0], memory=0)
    given = snapshot(nodes, [training()], held, gang("x", 1, asked[1], "training", cpu=asked[0], memory=0))
    weights = {"binpack.cpu": weight[0], "binpack.resources": [H], "binpack.resources.<name>": {H: weight[1]}}
    assert own_scores(given, "x-0", "binpack", **weights, **{"binpack.weight": scale})["n1"] == expected


def conf(arguments):
    return f"actions: allocate\ntiers:\n- plugins:\n  - name: binpack\n    arguments: {arguments}\n"


def test_names_with_slashes_and_dots_have_weights():
    given = parse_policy(conf('{binpack.resources: "nvidia.com/gpu, x/y", binpack.resources.nvidia.com/gpu: 7}'))
    values = given.tiers[0][0].arguments
    assert values["binpack.resources"] == ["nvidia.com/gpu", "x/y"]
    assert values["binpack.resources.<name>"] == {"nvidia.com/gpu": 7}


@pytest.mark.parametrize("arguments", ["{binpack.cpu: -1}", "{binpack.resources.a: -1}", "{binpack.rsources: a}"])
def test_what_cannot_be_is_refused(arguments):
    with pytest.raises(BadInput):
        parse_policy(conf(arguments))


def test_upstream_takes_a_negative_weight_for_the_default():
    given = parse_policy("compatibility: volcano\n" + conf("{binpack.cpu: -1}"))
    assert given.tiers[0][0].arguments["binpack.cpu"] == 1
    assert given.warnings
