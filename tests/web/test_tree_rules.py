"""The sum rules against a naive oracle, and that they are monotone: lowering always works."""

import dataclasses

from hypothesis import given, settings
from hypothesis import strategies as st

from tidesched_web.quota.tree_rules import ROOT, Holder, Tree, breaches, worsened

CARDS, KINDS = ("H200", "A100"), ("inference", "training")
COUNTS = st.dictionaries(st.sampled_from(CARDS), st.integers(0, 12))
LIMITS = st.dictionaries(st.sampled_from(KINDS), COUNTS)
COMPUTE = st.dictionaries(st.sampled_from(KINDS), st.dictionaries(st.just("cpu"), st.integers(0, 12)))


@st.composite
def trees(draw):
    holders = {}
    for tenant in range(draw(st.integers(1, 2))):
        key = f"tenant:{tenant}"
        holders[key] = Holder(key, key, ROOT, draw(LIMITS), draw(COMPUTE))
        for project in range(draw(st.integers(0, 2))):
            below = f"project:{tenant}{project}"
            holders[below] = Holder(below, below, key, draw(LIMITS), draw(COMPUTE))
    for queue in range(draw(st.integers(1, 5))):
        key, kind = f"queue:{queue}", draw(st.sampled_from(KINDS))
        parent = draw(st.sampled_from([ROOT, *(name for name in holders if not name.startswith("queue"))]))
        figures = draw(COMPUTE).get(kind, {})
        holders[key] = Holder(key, key, parent, {kind: draw(COUNTS)}, {kind: figures} if figures else {})
    hardware = draw(st.dictionaries(st.sampled_from((*CARDS, "cpu")), st.integers(0, 30)))
    ratios = {kind: draw(st.sampled_from((1.0, 1.1, 2.0))) for kind in KINDS}
    return Tree(holders, hardware, ratios)


def claim(tree, key, kind, resource):
    """What a holder asks of its parent, said as naively as the rule reads."""
    holder = tree.holders[key]
    if resource == "cpu":
        limit = holder.compute.get(kind, {}).get("cpu")
    elif kind in holder.cards:
        limit = holder.cards[kind].get(resource, 0)
    else:
        limit = None
    return children_claim(tree, key, kind, resource) if limit is None else limit


def children_claim(tree, key, kind, resource):
    return sum(claim(tree, child, kind, resource) for child, holder in tree.holders.items() if holder.parent == key)


def oracle(tree):
    found = {}
    for kind in KINDS:
        for resource in (*CARDS, "cpu"):
            for key in (ROOT, *tree.holders):
                total = children_claim(tree, key, kind, resource)
                if key == ROOT:
                    have = tree.hardware.get(resource)
                    limit = None if have is None else int(round(have * tree.ratios[kind], 6))
                else:
                    limit = tree.holders[key].limit(kind, resource)
                if limit is not None and total > limit:
                    found[key, kind, resource] = (total, limit)
    return found


@given(trees())
def test_breaches_are_those_of_the_oracle(tree):
    assert {key: (found.requested, found.limit) for key, found in breaches(tree).items()} == oracle(tree)


@given(trees(), st.data())
def test_lowering_a_queue_is_always_allowed_and_a_tree_may_stay_as_it_is(tree, data):
    assert worsened(tree, tree) == []
    key = data.draw(st.sampled_from([name for name in tree.holders if name.startswith("queue")]))
    queue = tree.holders[key]
    less = {
        kind: {card: data.draw(st.integers(0, n)) for card, n in cards.items()} for kind, cards in queue.cards.items()
    }
    lowered = dataclasses.replace(tree, holders={**tree.holders, key: dataclasses.replace(queue, cards=less)})
    assert worsened(tree, lowered) == []


@given(trees(), trees())
@settings(max_examples=50)
def test_an_edit_that_is_allowed_enlarges_no_breach(before, after):
    after = dataclasses.replace(after, hardware=before.hardware, ratios=before.ratios)
    refused = {(breach.holder, breach.service_type, breach.resource) for breach in worsened(before, after)}
    old, new = oracle(before), oracle(after)
    for key, (total, limit) in new.items():
        was = old.get(key, (0, 0))
        assert (key in refused) == (total - limit > max(0, was[0] - was[1]))
