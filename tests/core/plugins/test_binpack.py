"""binpack: the score of packing, number by number (vectors of semantics 9), and its policy arguments."""

from __future__ import annotations

import numpy as np
import pytest

from scheduler_core import parse_policy
from scheduler_core.algorithms.binpack import packed
from scheduler_core.model.errors import BadInput


def score(used, capacity, request, weight, scale=1.0):
    columns = [np.array(values, dtype=np.int64).reshape(-1, 1) for values in (used, capacity)]
    return packed(*columns, np.array(request, dtype=np.int64), np.array(weight, dtype=np.float64), scale)[0]


def test_half_the_cpu_and_all_cards():
    assert score([1000, 6000], [4000, 8000], [1000, 2000], [1, 5]) == pytest.approx(91.67, abs=0.005)


def test_over_capacity_is_zero_for_the_whole_node():
    assert score([1000, 6000], [4000, 8000], [1000, 3000], [1, 5]) == 0


def test_what_is_not_asked_for_does_not_count():
    assert score([1000, 8000], [4000, 8000], [1000, 0], [1, 5]) == 50


def test_a_resource_that_the_node_lacks_keeps_its_weight():
    assert score([1000, 0], [4000, 0], [1000, 1000], [1, 1]) == 25


@pytest.mark.parametrize(("weight", "scale", "expected"), [([0, 0], 1.0, 0), ([1, 0], 10.0, 500), ([1, 1], 0.0, 0)])
def test_weights(weight, scale, expected):
    assert score([1000, 6000], [4000, 8000], [1000, 2000], weight, scale) == expected


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
