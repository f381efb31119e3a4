"""Groups of nodes that are large enough once they are empty."""

from __future__ import annotations

from scheduler_core.algorithms.node_group import Emptied, Need, choose_group, served

CPU, CARD, OTHER = 0, 0, 1


def need(count, *, cpu=0, cards=(), whole=0, share=0):
    return Need(((CPU, cpu),) if cpu else (), cards, whole, share, count)


def node(name, *, cpu=0, cards=None, admits=(True,)):
    return Emptied(name, (cpu,), cards or {}, admits)


def test_a_node_serves_what_its_scarcest_resource_allows():
    assert served(node("n", cpu=10, cards={CARD: 4}), [need(9, cpu=3, cards=(CARD,), whole=1)], [9]) == [3]
    assert served(node("n", cpu=99, cards={CARD: 4}), [need(9, cpu=3, cards=(CARD,), whole=2)], [9]) == [2]


def test_needs_share_a_node_the_first_one_first():
    needs = [need(1, cpu=6), need(4, cpu=2)]
    assert served(node("n", cpu=10, admits=(True, True)), needs, [1, 4]) == [1, 2]


def test_a_need_that_may_not_be_there_gets_nothing():
    assert served(node("n", cpu=10, admits=(False, True)), [need(1, cpu=1), need(1, cpu=1)], [1, 1]) == [0, 1]


def test_either_card_will_do_and_shares_take_whole_cards_away_from_the_next():
    either = need(5, cards=(CARD, OTHER), whole=1)
    assert served(node("n", cards={CARD: 2, OTHER: 1}), [either], [5]) == [3]
    needs = [need(3, cards=(CARD,), share=400), need(2, cards=(CARD,), whole=1)]
    assert served(node("n", cards={CARD: 3}, admits=(True, True)), needs, [3, 2]) == [3, 1]


def test_the_first_nodes_that_are_enough():
    nodes = [node("a", cpu=4), node("b", cpu=1), node("c", cpu=4), node("d", cpu=4)]
    assert choose_group(nodes, [need(2, cpu=4)]) == ["a", "c"]
    assert choose_group(nodes, [need(4, cpu=4)]) is None
    assert choose_group(nodes, []) == []
