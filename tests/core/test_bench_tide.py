"""The day of tide that A13 lives through: a flood within the quota, and more training than room."""

from __future__ import annotations

import random

import pytest

from bench import tide

DAY = 24 * 3600.0


def test_services_never_ask_for_more_than_their_quota():
    made = tide.services(DAY, random.Random(1))
    changes = []
    for at, service in made:
        cards = service.template.card_milli // 1000 * service.replicas
        changes += [(at, 1, cards), (at + service.duration, 0, -cards)]
    held = top = 0
    for _, _, cards in sorted(changes):
        held += cards
        top = max(top, held)
    assert tide.FLOOD * 0.7 <= top <= tide.FLOOD


def test_the_same_seed_is_the_same_day():
    first, second = ((tide.services(DAY, rng), tide.jobs(DAY, rng)) for rng in (random.Random(7), random.Random(7)))
    assert first == second


def test_training_asks_for_more_than_there_is():
    work = sum(
        job.template.card_milli / 1000 * job.replicas * job.duration for _, job in tide.jobs(DAY, random.Random(1))
    )
    assert work > tide.CARDS * DAY


@pytest.mark.parametrize("policy", tide.POLICIES.values(), ids=tide.POLICIES)
def test_a_short_day_is_lived_under_both_policies(policy):
    report = tide.live(policy, hours=0.05)
    assert (report.sessions, report.quota_violations) == (9, 0)
    assert report.binds > 0
