"""The golden stories as data: their cases, the objects of a case, and the parts of a result that they speak of."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from scheduler_core.serde.policy import parse_policy
from tests import builders as b

KINDS = {
    "queue": {"inference": b.INFERENCE, "training": b.TRAINING, "": {}},
}


def cases():
    for file in sorted(Path(__file__).parent.glob("*.yaml")):
        for name, case in yaml.load(file.read_text(), yaml.CSafeLoader)["cases"].items():
            yield pytest.param(case, id=f"{file.stem}: {name}")


def built(entry):
    """One entry of ``cluster``: ``{node: {...}}`` calls a builder, anything with a ``kind`` is an object as it is."""
    if "kind" in entry:
        return [entry]
    ((what, given),) = entry.items()
    given = dict(given)
    if what == "queue":
        given = {**KINDS["queue"][given.pop("for", "")], **given}
    made = getattr(b, what)(**given)
    return [made] if isinstance(made, dict) else made


def told(result):
    """The parts of a result that a story speaks of; namespaces other than ``default`` are kept."""

    def short(name):
        return name.removeprefix("default/")

    return {
        "binds": {short(bind.pod): bind.node for bind in result.binds},
        "cards": {short(bind.pod): f"{bind.card} {list(bind.card_indices)}" for bind in result.binds if bind.card},
        "evictions": [short(eviction.pod) for eviction in result.evictions],
        "pipelined": {short(bind.pod): bind.node for bind in result.pipelined},
        "reasons": {short(reason.podgroup): reason.code.value for reason in result.reasons},
        "phases": {short(gang.name): gang.phase.value for gang in result.podgroups},
        "events": {short(event.name).removesuffix("-0"): event.reason for event in result.events},
        "refused": {short(no.gang): no.rule for reclaim in result.reclaims for no in reclaim.refused},
        "deserved": {
            queue.name: {card: milli / 1000 for card, milli in queue.deserved.cards.items()} for queue in result.queues
        },
        "findings": {finding.object: finding.path for finding in result.findings},
        "roles": {short(eviction.pod): eviction.role.value for eviction in result.evictions},
        "numbers": {
            short(reason.podgroup): {
                name: getattr(reason.numbers, name)
                for name in ("resource", "requested", "limit", "allocated", "free", "short")
                if getattr(reason.numbers, name) is not None
            }
            for reason in result.reasons
        },
    }


HAPPENS = {"arrive", "finish", "deleted"}


def policy_of(case):
    """The policy of a case: its own, or the founding one with its options."""
    return parse_policy(case["policy"]) if "policy" in case else b.founding_policy(**case.get("options", {}))


def objects_of(case):
    """The cluster of a case."""
    objects = [*b.priority_classes()] if case.get("classes", True) else []
    for entry in case["cluster"]:
        objects += built(entry)
    return objects


def happened(objects, before):
    """The cluster after what went on between two rounds."""
    gone, done = set(before.get("deleted", [])), set(before.get("finish", []))
    kept = [body for body in objects if body["metadata"]["name"] not in gone]
    for body in kept:
        if body["kind"] == "Pod" and body["metadata"]["name"] in done:
            body["status"] = {**body["status"], "phase": "Succeeded"}
    return [*kept, *(body for entry in before.get("arrive", []) for body in built(entry))]
