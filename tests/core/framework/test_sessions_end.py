"""A session that is over goes at once, tables and all: a long run must not wait for the collector of cycles."""

from __future__ import annotations

import gc
import random
import weakref

import pytest

from scheduler_core import run_session
from scheduler_core.framework.session import Session
from scheduler_core.serde.policy import parse_policy
from tests import builders as b
from tests.properties.clusters import random_cluster

MANY = """
actions: "enqueue, elect, allocate, reserve, backfill, preempt, reclaim, shuffle"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}, {name: pdb}, {name: cdp}, {name: reservation}]
- plugins:
  - {name: predicates}
  - {name: nodeorder}
  - {name: binpack}
  - {name: drf}
  - {name: overcommit}
  - {name: resourcequota}
  - {name: sla}
  - {name: task-topology}
  - {name: capacity-card}
"""
GANGWISE = """
actions: "enqueue, allocate, gangpreempt, gangreclaim"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: predicates}, {name: capacity}, {name: requested-to-capacity-ratio}]
"""
POD_BY_POD = """
actions: "enqueue, allocate"
tiers:
- plugins: [{name: coscheduling}, {name: predicates}, {name: nodeorder}, {name: default-preemption}]
"""


@pytest.mark.parametrize("text", [None, MANY, GANGWISE, POD_BY_POD], ids=["founding", "many", "gangwise", "pod by pod"])
def test_no_session_outlives_its_result(text, monkeypatch):
    made = []
    start = Session.__init__

    def noted(self, *args, **options):
        start(self, *args, **options)
        made.append(weakref.ref(self))

    def sessions():
        for seed in range(12):
            objects, options, now = random_cluster(random.Random(seed))
            policy = b.founding_policy(**options) if text is None else parse_policy(text)
            result, _ = run_session(b.snapshot(objects), policy, now=now)
            assert len(result.podgroups) == len(list(result.podgroups))
            del result

    # The compiler leaves cycles behind, with the session that asked for it among them.
    sessions()
    monkeypatch.setattr(Session, "__init__", noted)
    gc.disable()
    try:
        sessions()
        assert [number for number, session in enumerate(made) if session() is not None] == []
    finally:
        gc.enable()
