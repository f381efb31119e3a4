"""What a change writes into the cluster while a tide plan is open; no database."""

from __future__ import annotations

import datetime as dt
import json

from tidesched_web.changes.documents import canonical
from tidesched_web.changes.object_differences import object_differences
from tidesched_web.clusters.kubernetes import manifests

H = "NVIDIA-H200"
NOON = dt.datetime(2026, 3, 4, 12, 0, tzinfo=dt.UTC)
PLAN = "tide-plan/days"
LAYER = {
    "name": "day", "days": ["wed"], "start": "08:00", "end": "20:00",
    "quota": {"gives": {H: {"add": -3}}, "takes": {H: {"add": 3}}},
}  # fmt: skip


def documents(*, on: bool) -> dict[str, dict[str, object]]:
    """A tenant of ten cards whose two inference queues have all of them."""
    written = {
        "tenant/shop": {"name": "Shop", "quota": {"inference": {"card_quota": {H: 10}}}},
        "queue/gives": {"tenant": "shop", "service_type": "inference", "card_quota": {H: 6}},
        "queue/takes": {"tenant": "shop", "service_type": "inference", "card_quota": {H: 4}},
        PLAN: {"enabled": on, "layers": [LAYER]},
    }
    found = {}
    for key, document in written.items():
        found[key], faults = canonical(key, document)
        assert not faults
    return found


def figures(*, switched_on: bool, used: float) -> dict[str, tuple[int, int]]:
    """Queue → cards before and after the plan is switched."""
    found = object_differences(
        documents(on=not switched_on), documents(on=switched_on), [PLAN], NOON,
        in_use={"gives": {H: used}}, hardware={H: 100},
    )  # fmt: skip
    return {one.name: (cards(one.before), cards(one.after)) for one in found}


def cards(manifest: dict[str, dict[str, dict[str, str]]]) -> int:
    return int(json.loads(manifest["metadata"]["annotations"][manifests.CARD_QUOTA])[H])


def test_nothing_is_in_use_and_all_that_the_layer_says_is_written() -> None:
    assert figures(switched_on=True, used=0) == {"gives": (6, 3), "takes": (4, 7)}
    assert figures(switched_on=False, used=3) == {"gives": (3, 6), "takes": (7, 4)}


def test_what_inference_uses_stays_with_it_and_the_raise_of_another_queue_waits_as_long() -> None:
    assert figures(switched_on=True, used=4.5) == {"gives": (6, 5), "takes": (4, 5)}
    assert figures(switched_on=True, used=6) == {}
    assert figures(switched_on=False, used=5) == {"gives": (5, 6), "takes": (5, 4)}
