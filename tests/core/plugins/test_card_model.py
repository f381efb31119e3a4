"""card-model: which nodes a wish leaves, and slices of rare cards."""

from __future__ import annotations

import pytest

from scheduler_core import PluginOption, Policy
from tests.core.open_session import own_scores
from tests.core.small_cluster import binds, decide, gang, node, snapshot, training

H, T = "H200", "T4"


def policy(**arguments):
    plugins = [PluginOption(name="gang"), PluginOption(name="card-model", arguments=arguments)]
    return Policy(actions=("allocate",), tiers=(tuple(plugins),))


def where(wish, mode=None, *, rare=(), nodes=None, **pod):
    notes = {} if wish is None else {"tidesched.io/card-model": wish}
    if mode:
        notes["tidesched.io/card-model-mode"] = mode
    nodes = nodes or [node("n1", 4, card=T), node("n2", 4, card=H)]
    given = snapshot(nodes, [training()], gang("x", 1, pod.pop("cards", 0), "training", annotations=notes, **pod))
    return binds(decide(given, policy(rareCards=list(rare)))).get("x-0")


@pytest.mark.parametrize(
    ("wish", "mode", "rare", "expected"),
    [
        (None, None, (), "n1"),
        (None, None, (T,), "n2"),
        (None, None, (T, H), None),
        (H, None, (), "n2"),
        (H, "required", (H,), "n2"),
        (H, "preferred", (), "n2"),
        (f"{H}|{T}", "preferred", (), "n2"),
        (f"{T} | {H}", "preferred", (), "n1"),
        (f"A100|{H}", "required", (), "n2"),
        ("A100", "required", (), None),
        ("A100", "preferred", (), "n1"),
        (H, "preferred", (T,), "n2"),
        (T, "required", (T, H), "n1"),
    ],
)
def test_where_a_wish_leads(wish, mode, rare, expected):
    assert where(wish, mode, rare=rare) == expected


def test_naming_the_card_in_the_request_is_naming_it():
    assert where(None, rare=(H,), cards=1, card=H) == "n2"


def test_a_slice_belongs_to_its_model():
    nodes = [node("n1", 4, card=T), node("n2", 4, card=f"{H}/mig-1g.18gb-mixed")]
    assert where(None, rare=(H,), nodes=nodes) == "n1"
    assert where(H, rare=(H,), nodes=nodes) == "n2"
    assert where(None, rare=(H,), nodes=nodes, cards=1, card=f"{H}/mig-1g.18gb-mixed") == "n2"


def test_how_much_a_preferred_model_weighs():
    wish = {"tidesched.io/card-model": f"{H}|{T}", "tidesched.io/card-model-mode": "preferred"}
    nodes = [node("n1", 4, card=T), node("n2", 4, card=H)]
    given = snapshot(nodes, [training()], gang("x", 1, 0, "training", annotations=wish))
    assert own_scores(given, "x-0", "card-model") == {"n1": 50.0, "n2": 100.0}
    assert own_scores(given, "x-0", "card-model", weight=3) == {"n1": 150.0, "n2": 300.0}
