"""The demo: its tree of quotas, its tide, and that it stays bounded and varied."""

from collections import Counter

import pytest

from scheduler_core.serde.policy import parse_policy
from scheduler_core.serde.policy.founding import FOUNDING_POLICY
from scheduler_core.simulator import demo
from scheduler_core.simulator.demo_nodes import demo_nodes
from scheduler_core.simulator.demo_tenancy import BUSINESS_LINES, QUEUES, TENANTS
from scheduler_core.simulator.demo_workloads import SERVICES, TRAINING
from scheduler_core.simulator.loop import SessionLoop
from scheduler_core.simulator.world import World

HOUR = 3600.0


def hardware():
    cards = Counter()
    for node in demo_nodes():
        for group in node.cards:
            cards[group.card] += group.count
    return cards


def test_the_cluster_is_as_large_and_as_mixed_as_it_should_be():
    boards = {node.labels["nvidia.com/gpu.product"] for node in demo_nodes()}
    assert (len(demo_nodes()), len(boards), len(TENANTS), len(QUEUES)) == (60, 4, 6, 20)
    assert any("/mig-" in card for card in hardware())
    assert any("/mps-" in card for card in hardware())


@pytest.mark.parametrize("service_type", ["inference", "training"])
def test_quotas_of_a_service_type_do_not_exceed_the_hardware(service_type):
    cards = hardware()
    granted = Counter()
    for queue in QUEUES:
        if queue.service_type == service_type:
            granted.update(queue.card_quota)
    assert {card: count for card, count in granted.items() if count > cards[card]} == {}


def test_every_queue_has_an_owner_and_every_workload_a_queue_with_quota():
    tenants = {tenant.slug: {project.slug for project in tenant.projects} for tenant in TENANTS}
    lines = {line.slug: line.tenant for line in BUSINESS_LINES}
    queues = {queue.name: queue for queue in QUEUES}
    for queue in QUEUES:
        if queue.service_type == "inference":
            assert queue.project in tenants[queue.tenant]
        else:
            assert lines[queue.business_line] == queue.tenant
    for kind in (*SERVICES, *TRAINING):
        assert set(kind.cards) <= set(queues[kind.queue].card_quota)
    assert {kind.queue for kind in (*SERVICES, *TRAINING)} == set(queues)


def test_services_ask_for_about_their_quota_at_the_height_of_the_tide():
    asked = Counter()
    for service in SERVICES:
        asked[service.queue] += service.peak * service.milli / 1000
    for queue in QUEUES:
        if queue.service_type == "inference":
            assert 0.4 <= asked[queue.name] / sum(queue.card_quota.values()) <= 1.1, queue.name


def test_the_tide_is_low_at_night_high_by_day_and_of_another_height_each_day():
    night, noon = demo.MIDNIGHT + 4 * HOUR, demo.MIDNIGHT + 11 * HOUR
    levels = [demo.tide_level(noon + day * demo.DAY, seed=1) for day in range(5)]
    assert demo.tide_level(night, seed=1) < 0.25 < 0.75 < min(levels)
    assert len(set(levels)) == 5
    assert demo.tide_level(noon, seed=1) != demo.tide_level(noon, seed=2)
    assert demo.lap_of(demo.START) == 1
    assert demo.lap_of(demo.MIDNIGHT + demo.DAY) == 2


class Watcher:
    """Keeps what the sessions said."""

    def __init__(self):
        self.reclaims, self.codes, self.firsts = 0, Counter(), []

    def decided(self, result):
        if result.reclaims and not self.firsts:
            self.firsts.append(result.now)
        self.reclaims += len(result.reclaims)
        self.codes.update({reason.code.value for reason in result.reasons})

    def stepped(self):
        pass


def run(seed, hours, world=None):
    world = world or demo.demo_world(seed)
    loop = SessionLoop(
        world, demo.DemoScenario(world, seed=seed), parse_policy(FOUNDING_POLICY), session_seconds=300.0, seed=seed
    )
    watcher = Watcher()
    loop.observe(watcher)
    for _ in range(round(hours * 12)):
        loop.step()
    return world, watcher


def test_a_lap_brings_reclaims_early_and_reasons_of_many_kinds_and_leaves_nothing_behind():
    world, watcher = run(1, 30)
    assert watcher.firsts[0] - demo.START < 2 * HOUR
    assert watcher.reclaims >= 20
    assert {"WaitingForQuota", "WaitingForCards", "Misconfigured", "ExceedsMaxQuota", "NoMatchingCard"} <= set(
        watcher.codes
    )
    assert len(world.workloads) < 250
    assert len(world.pods) < 900
    assert any("-lap2-" in key for key in world.workloads)


def test_another_seed_gives_another_history_and_the_same_one_the_same():
    first, again, other = (run(seed, 3)[0] for seed in (1, 1, 2))
    assert first.dump() == again.dump()
    assert set(first.workloads) != set(other.workloads)


def test_a_stored_demo_goes_on():
    world, _ = run(1, 2)
    copy = World.load(world.dump())
    assert demo.DemoScenario(copy, seed=1).next_time >= copy.t
    run(1, 2, world=copy)
    assert copy.t == world.t + 2 * HOUR
