"""Which forecasts a written change leaves without a judgement."""

from __future__ import annotations

import pytest

from tidesched_web.changes.reach import reach_of

H200, L40S = "NVIDIA-H200", "NVIDIA-L40S"
QUEUE = {"service_type": "training", "weight": 1, "card_quota": {H200: 8, L40S: 4}}
# What stands above the queue that is followed, and its cards.
FOLLOWED = {
    "queue": "chat",
    "ceilings": {"tenant/acme", "business-line/acme/research", "queue/parent"},
    "cards": [H200],
}


@pytest.mark.parametrize(
    ("edits", "touches"),
    [
        ({"queue/chat": {"weight": 2}}, True),
        ({"queue/other": {"card_quota": {H200: 7}}}, True),
        ({"queue/other": {"card_quota": {L40S: 3}}}, False),
        ({"queue/other": {"weight": 2}}, True),
        ({"queue/other": None}, True),
        ({"queue/parent": {"card_quota": {L40S: 3}}}, True),
        ({"queue/new": {"service_type": "training", "card_quota": {H200: 1}}}, True),
        ({"queue/new": {"service_type": "training", "card_quota": {L40S: 1}}}, False),
        ({"tenant/acme": {"quota": {"training": {"cpu_milli": 1000}}}}, True),
        ({"tenant/zeta": {"quota": {"training": {"cpu_milli": 1000}}}}, False),
        ({"business-line/acme/research": {"name": "R"}}, True),
        ({"rules/cluster": {"overcommit_training_percent": 120}}, True),
        ({f"card-type/{H200}": {"aliases": []}}, True),
        ({f"card-type/{L40S}": {"aliases": []}}, False),
        ({"grant/ns/chat": {}}, True),
        ({"grant/ns/other": {}}, False),
        ({"tide-plan/night": {"layers": [{"quota": {"chat": {L40S: 1}}}]}}, True),
        ({"tide-plan/night": {"layers": [{"quota": {"other": {H200: 1}}}]}}, True),
        ({"tide-plan/night": {"layers": [{"quota": {"other": {L40S: 1}}}]}}, False),
        ({"tide-plan/night": None}, False),
        ({"priority-class/pc-new": {"value": 5}}, False),
    ],
)
def test_what_a_change_reaches(edits: dict, touches: bool) -> None:
    base = {"queue/other": QUEUE, "queue/parent": QUEUE, "queue/chat": QUEUE}
    assert reach_of(edits, base).touches(**FOLLOWED) is touches
