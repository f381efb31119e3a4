"""The dry run of enqueue: what has room now, the same as in the plain loops of the naive scheduler."""

from __future__ import annotations

import random

import msgspec
import numpy as np
import pytest

from scheduler_core.actions.support.startable import Startable
from scheduler_core.model.resources import Amount
from tests import builders as b
from tests.core.open_session import opened
from tests.core.small_cluster import A, H, gang, inference, node, service, snapshot, training
from tests.properties.clusters import random_cluster
from tests.reference.policy import install, options_of
from tests.reference.startable import DryRun
from tests.reference.world import open_world


def takes(given):
    """Which gangs find room, one after the other by name."""
    session = opened(given)
    dry = Startable(session)
    return [name.removeprefix("ns/") for g, name in enumerate(session.gangs.names) if dry.take(g)]


def test_what_one_takes_the_next_does_not_find():
    gangs = [gang(name, 2, 2, "training") for name in ("a", "b", "c")]
    assert takes(snapshot([node("n1", 4), node("n2", 5)], [training()], *gangs)) == ["a", "b"]


def test_cards_of_two_nodes_do_not_make_one_place():
    assert takes(snapshot([node("n1", 2), node("n2", 2)], [training()], gang("g", 1, 3, "training"))) == []


def test_shares_fill_cards_one_by_one():
    """0.6 fits each of two cards once; 0.4 then fits twice, in what is left of them."""
    gangs = [
        gang(name, 1, each, "training") for name, each in zip("abcdef", (0.6, 0.6, 0.6, 0.4, 0.4, 0.4), strict=True)
    ]
    assert takes(snapshot([node("n1", 2)], [training()], *gangs)) == ["a", "b", "d", "e"]


def test_one_that_finds_no_room_takes_nothing():
    big, small = gang("a", 3, 2, "training"), gang("b", 2, 2, "training")
    assert takes(snapshot([node("n1", 4)], [training()], big, small)) == ["b"]


def test_any_card_of_a_choice_will_do():
    mixed = gang("g", 3, 1, "training", card=f"{A}|{H}")
    assert takes(snapshot([node("n1", 1, A), node("n2", 2)], [training(quota={A: 9, H: 9})], mixed)) == ["g"]


def test_inference_finds_room_by_taking_back_and_leaves_none_of_it_to_others():
    held = gang("held", 1, 4, "training", on=["n1"])
    gangs = [gang("a", 1, 4, "training"), service("b", 1, 3), service("c", 1, 1), service("d", 1, 1)]
    assert takes(snapshot([node("n1", 4)], [training(), inference()], held, *gangs)) == ["b", "c", "held"]


@pytest.mark.parametrize(
    ("cards", "pods", "room"),
    [
        ({H: 8000}, 2, True),  # four each
        ({H: 10_000}, 2, False),  # five each
        ({H: 9000}, 2, False),  # four and a half are five
        ({H: 1000}, 9, True),  # one of them alone
        ({H: 4500}, 9, True),  # half a card each
        ({A: 1000}, 1, False),
        ({}, 2, True),
    ],
)
def test_a_job_without_pods_is_cut_into_equal_parts(cards, pods, room):
    group, _ = gang("g", pods, 1, "training")
    group = msgspec.structs.replace(group, min_resources=Amount(1000, 1024), card_request=cards)
    assert takes(snapshot([node("n1", 4), node("n2", 4)], [training()], (group, []))) == (["g"] if room else [])


@pytest.mark.parametrize("seed", range(60))
def test_the_plain_loops_come_to_the_same(seed):
    objects, options, now = random_cluster(random.Random(seed))
    given, rules = b.snapshot(objects), b.founding_policy(**options)
    session = opened(given, rules, now=now)
    world = install(open_world(given, options_of(None, options), now, None))
    ours, theirs = Startable(session), DryRun(world)
    names = session.gangs.names
    usable = [g for g in range(len(names)) if session.schedulable(g)]
    assert ours.which(np.array(usable, dtype=np.int32)).tolist() == [theirs.could(names[g]) for g in usable]
    assert [ours.take(g) for g in usable] == [theirs.take(names[g]) for g in usable]
