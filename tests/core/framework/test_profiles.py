"""Several profiles: each decides for the pods of its own scheduler, over one cluster."""

from __future__ import annotations

import pytest

from scheduler_core import run_session
from scheduler_core.model.errors import BadInput
from scheduler_core.serde.policy import parse_policy
from tests import builders as b

TWO = """
actions: "enqueue, allocate"
profiles:
- schedulerName: packed
  tiers:
  - plugins: [{name: priority}, {name: gang}, {name: predicates}, {name: binpack}]
- schedulerName: spread
  tiers:
  - plugins: [{name: priority-sort}, {name: predicates}, {name: nodeorder}]
"""


def gang(name, scheduler, size=1, cpu=1, **fields):
    priority = fields.pop("priority", "pc-normal")
    pods = [b.pod(f"{name}-{i}", name, cpu=cpu, priority=priority, scheduler=scheduler, **fields) for i in range(size)]
    return [b.pod_group(name, "q", size, priority=priority), *pods]


def decide(text, *objects, schedulers=("packed", "spread", "volcano"), at=100, memory=None):
    taken = b.snapshot(b.priority_classes(), b.queue("q"), *objects, schedulers=schedulers)
    return run_session(taken, parse_policy(text), now=b.now(at), memory=memory, check=True)


def binds(result):
    return {bind.pod.removeprefix("default/"): bind.node for bind in result.binds}


def test_each_pod_is_placed_by_the_profile_of_its_scheduler():
    nodes = [b.node("n1", cpu=8), b.node("n2", cpu=8)]
    runs = b.pod("there", "there", cpu=2, node="n1", scheduler="packed")
    there = [b.pod_group("there", "q", 1, phase="Running"), runs]
    result, _ = decide(TWO, *nodes, *there, *gang("tight", "packed"), *gang("loose", "spread"))
    assert binds(result) == {"tight-0": "n1", "loose-0": "n2"}
    assert {outcome.name: outcome.phase.value for outcome in result.podgroups} == {
        "default/loose": "Running",
        "default/there": "Running",
        "default/tight": "Running",
    }


def test_what_one_profile_takes_the_next_one_does_not_have():
    result, _ = decide(TWO, b.node("n1", cpu=4), *gang("first", "packed", cpu=4), *gang("second", "spread", cpu=4))
    assert binds(result) == {"first-0": "n1"}
    assert {reason.podgroup for reason in result.reasons} == {"default/second"}


def test_a_pod_of_no_profile_waits_unless_there_are_tiers_for_it():
    result, _ = decide(TWO, b.node("n1"), *gang("other", "volcano"))
    assert binds(result) == {}
    assert [(reason.podgroup, reason.code.value) for reason in result.reasons] == [("default/other", "Misconfigured")]
    assert [outcome.name for outcome in result.podgroups] == ["default/other"]
    with_default = TWO + "tiers:\n- plugins: [{name: gang}, {name: predicates}]\n"
    assert binds(decide(with_default, b.node("n1"), *gang("other", "volcano"))[0]) == {"other-0": "n1"}


def test_promises_and_places_in_the_queue_outlive_the_session_for_all():
    waits = TWO.replace("priority-sort", "coscheduling")
    objects = [b.node("n1", cpu=2), *gang("group", "spread", size=3), *gang("big", "packed", cpu=8)]
    _, memory = decide(waits, *objects)
    assert len(memory.reservations) == 2
    objects[0] = b.node("n1", cpu=3)
    result, _ = decide(waits, *objects, at=120, memory=memory)
    assert len(binds(result)) == 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (TWO.replace("spread", "packed"), "two profiles"),
        (TWO.replace("schedulerName: spread", "name: spread"), "unknown key 'name'"),
        (TWO.replace("- schedulerName: spread\n  tiers", "- tiers"), "no schedulerName"),
        (TWO.replace("{name: nodeorder}", "{name: coscheduling}"), "one sorter"),
    ],
)
def test_a_profile_is_checked_like_the_rest(text, message):
    with pytest.raises(BadInput, match=message):
        parse_policy(text)


def test_the_extender_of_a_profile_is_asked():
    class Service:
        def post(self, url, body, timeout):
            return b'{"refused": {"n1": "too warm"}}'

    asks = (
        "{name: extender, arguments: {extender.urlPrefix: 'http://extender.test', extender.predicateVerb: predicate}}"
    )
    text = TWO.replace(
        "plugins: [{name: priority}, {name: gang}", f"plugins: [{asks}, {{name: priority}}, {{name: gang}}"
    )
    given = b.snapshot(
        b.queue("q"), b.node("n1"), b.node("n2"), *gang("x", "packed", priority=""), schedulers=("packed",)
    )
    result, _ = run_session(given, parse_policy(text), now=b.now(100), extenders=Service())
    assert binds(result) == {"x-0": "n2"}
