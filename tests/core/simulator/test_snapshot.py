"""Snapshots of a world are the same whether they are repaired or made anew."""

import random

from scheduler_core.simulator.demo import DemoScenario, demo_world
from scheduler_core.simulator.errors import WorldError
from scheduler_core.simulator.scenario import advance
from scheduler_core.simulator.snapshot import SnapshotView


def test_a_view_that_followed_the_world_equals_a_new_one():
    rng = random.Random(4)
    world = demo_world(5)
    view, scenario = SnapshotView(world), DemoScenario(world, seed=5)
    for _ in range(25):
        advance(world, scenario, world.t + 150)
        for key in rng.sample(sorted(world.pods), 20):
            try:
                world.bind(key, rng.choice(sorted(world.nodes)))
            except WorldError:
                world.evict(key)
        assert view.take() == SnapshotView(world).take()


def test_what_did_not_change_is_the_very_same_tuple():
    world = demo_world(5)
    view, scenario = SnapshotView(world), DemoScenario(world, seed=5)
    advance(world, scenario, world.t)
    first = view.take()
    assert view.take().pods is first.pods
    world.evict(next(iter(world.pods)))
    second = view.take()
    assert second.pods is not first.pods
    assert (second.nodes is first.nodes, second.queues is first.queues) == (True, True)
