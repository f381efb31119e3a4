"""A place in the queue belongs to the Job that waited for it, not to the next one of its name."""

from __future__ import annotations

import msgspec
import pytest

from scheduler_core import Memory, run_session
from tests import builders as b


@pytest.mark.parametrize(("created", "since"), [(5, 5), (10, 10), (50, 50)])
def test_a_recreated_job_does_not_inherit_the_place_of_the_old_one(created, since):
    wants = b.pod("worker", "", card="A", count=8)
    template = {"metadata": {"annotations": wants["metadata"]["annotations"]}, "spec": wants["spec"]}
    objects = [
        *b.priority_classes(),
        b.queue("qt", {"A": 8}, **b.TRAINING),
        b.node("n1", "A", 4),
        b.job("held", "qt", 1, evicted="RestartJob", created=created, template=template),
    ]
    memory = Memory(submitted={"default/Job/held": b.now(10)})
    result, after = run_session(b.snapshot(objects), b.founding_policy(), now=b.now(100), memory=memory)
    (gang,) = result.podgroups
    assert gang.waiting_since == b.now(since)
    assert after.submitted == ({"default/Job/held": b.now(10)} if created <= 10 else {})
    # Only the one place is forgotten.
    others = msgspec.structs.replace(memory, submitted={**memory.submitted, "default/Job/gone": b.now(1)})
    _, after = run_session(b.snapshot(objects), b.founding_policy(), now=b.now(100), memory=others)
    assert after.submitted["default/Job/gone"] == b.now(1)
