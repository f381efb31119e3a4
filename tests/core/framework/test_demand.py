"""What is left of a demand when part of it is taken care of."""

from __future__ import annotations

from scheduler_core.framework.demand import Demand

A, H, V = 0, 1, 2


def test_amounts_do_not_go_below_nothing():
    assert Demand(1000, 512).less(Demand(400, 1024)) == Demand(600, 0)


def test_a_choice_counts_against_the_same_choice():
    asked = Demand(cards={(A, H): 4000, (A,): 1000})
    assert asked.less(Demand(cards={(A, H): 1000, (H,): 1000})).cards == {(A, H): 3000, (A,): 1000}


def test_cards_that_nobody_names_are_any_of_their_choice():
    asked = Demand(unnamed={(A, H): 4000})
    held = Demand(cards={(A,): 1000, (V,): 1000}, unnamed={(A, H): 1000})
    assert asked.less(held).unnamed == {(A, H): 2000}
