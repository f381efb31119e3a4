"""The medium demo: it has the numbers that its documentation promises, the same ones for the same seed."""

from collections import Counter

import pytest

from scheduler_core.model.pod import PodPhase
from scheduler_core.simulator import scenario
from scheduler_core.simulator.demo import HOUR, START
from scheduler_core.simulator.demo_tenancy import BUSINESS_LINES as DEMO_BUSINESS_LINES
from scheduler_core.simulator.demo_tenancy import QUEUES as DEMO_QUEUES
from scheduler_core.simulator.medium import MediumScenario, drawn, medium_world
from scheduler_core.simulator.medium_nodes import hall_cards
from scheduler_core.simulator.medium_tenancy import BUSINESS_LINES, TENANTS, queues
from tidesched_web.engine.demo import card_types, hardware


@pytest.fixture(scope="module")
def world():
    return medium_world(1)


def test_it_begins_with_the_promised_numbers(world):
    assert len(world.nodes) == 1000
    assert len(world.pods) == 10_000
    assert {pod.phase for pod in world.pods.values()} == {PodPhase.RUNNING}
    assert len(world.pod_groups) == len(world.workloads) > 2000
    assert len(hardware("M")) == 20
    assert {card.name for card in card_types("M")} == set(hardware("M"))
    assert len({queue.name for queue in (*DEMO_QUEUES, *queues())}) == 500
    assert world.t == START


@pytest.mark.parametrize("kind", ["inference", "training"])
def test_quotas_of_a_service_type_do_not_exceed_the_hardware(kind):
    granted = Counter()
    for queue in queues():
        if queue.service_type == kind:
            granted.update(queue.card_quota)
    assert set(granted) == set(hall_cards())
    assert {card: count for card, count in granted.items() if count > hall_cards()[card]} == {}


def test_every_queue_has_an_owner(world):
    projects = {(tenant.slug, project.slug) for tenant in TENANTS for project in tenant.projects}
    lines = {line.slug: line.tenant for line in BUSINESS_LINES}
    assert len(lines) == len(BUSINESS_LINES)
    assert not set(lines) & {line.slug for line in DEMO_BUSINESS_LINES}
    for queue in queues():
        owned = (queue.tenant, queue.project) in projects if queue.project else lines[queue.business_line]
        assert owned is True or owned == queue.tenant
    assert {state.workload.queue for state in world.workloads.values()} <= set(world.queues)


def test_what_runs_is_inside_of_its_queues_quota(world):
    used = Counter()
    for gang in drawn(1):
        used[gang.queue, gang.card] += gang.members * gang.milli
    quota = {queue.name: queue.card_quota for queue in queues()}
    assert {key: milli for key, milli in used.items() if milli > quota[key[0]].get(key[1], 0) * 1000} == {}


def test_the_seed_makes_the_world_and_a_stored_one_goes_on_as_it_would_have(world):
    assert medium_world(1).dump() == world.dump()
    assert list(drawn(2)) != list(drawn(1))
    one, other = type(world).load(world.dump()), type(world).load(world.dump())
    first = MediumScenario(one, seed=1)
    scenario.advance(one, first, START + HOUR)
    second = MediumScenario(other, seed=1)
    scenario.advance(other, second, START + HOUR / 2)
    other = type(world).load(other.dump())
    other.advance(START + HOUR / 2 + 1)
    scenario.advance(other, MediumScenario(other, seed=1), START + HOUR)
    assert other.dump() == one.dump()


def test_the_hall_moves_by_little_in_an_hour(world):
    moved = type(world).load(world.dump())
    before = moved.changes
    scenario.advance(moved, MediumScenario(moved, seed=1), START + 2 * HOUR)
    assert 100 < moved.changes - before < 3000
    assert 9_000 < len(moved.pods) < 12_000
