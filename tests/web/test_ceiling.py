"""What the tree allows is what the alert allows: one rounding of hardware × ratio."""

from __future__ import annotations

import msgspec

from tests.builders import node, queue, snapshot
from tidesched_web.common.ceiling import ceiling
from tidesched_web.engine.tide import quota_beyond_hardware
from tidesched_web.quota import tree_rules

H200 = "NVIDIA-H200"


def test_the_ceiling_is_the_exact_share_of_the_hardware() -> None:
    pairs = [(have, percent) for have in range(400) for percent in range(100, 301)]
    assert [pair for pair in pairs if ceiling(pair[0], pair[1] / 100) != pair[0] * pair[1] // 100] == []


def test_a_quota_that_the_tree_allows_raises_no_alert() -> None:
    card = node("n", H200, 1)
    picture = snapshot([card, queue("q", {H200: 1}, service_type="inference")])
    (one,) = picture.nodes
    wrong = []
    for have in range(1, 400):
        cards = (msgspec.structs.replace(one.cards[0], count=have),)
        nodes = (msgspec.structs.replace(one, cards=cards),)
        for percent in range(100, 301):
            ratio = percent / 100
            tree = tree_rules.Tree({}, {H200: have}, {"inference": ratio})
            most = tree_rules.ceiling(tree, tree_rules.ROOT, "inference", H200)
            assert most is not None
            for cards_promised, expected in ((most, False), (most + 1, True)):
                row = msgspec.structs.replace(
                    picture.queues[0], card_quota={H200: cards_promised * 1000}, service_type="inference"
                )
                seen = msgspec.structs.replace(picture, nodes=nodes, queues=(row,))
                if bool(quota_beyond_hardware(seen, {"inference": ratio})) != expected:
                    wrong.append((have, percent, cards_promised))
    assert wrong == []
