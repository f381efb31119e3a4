"""What is kept between sessions changes nothing: a builder fed with events, and one workspace, beside new ones."""

import random

import numpy as np
import pytest

from scheduler_core import SnapshotBuilder, Workspace, run_session
from scheduler_core.serde.kubernetes import builder as builders
from scheduler_core.serde.result import dump
from scheduler_core.state import spare_tables
from tests import builders as b
from tests.properties.drawn import STEP, Service, draw
from tests.reference.aftermath import carry_out

ROUNDS = 4
_TABLES = {
    "nodes": ("allocatable", "used", "releasing", "pipelined", "now", "future"),
    "cards": (
        "used", "releasing", "pipelined", "whole_now", "whole_future", "best_now", "best_future", "left_now",
        "left_future",
    ),
}  # fmt: skip


@pytest.mark.parametrize("seed", range(12))
def test_a_kept_builder_and_workspace_decide_as_new_ones(seed, monkeypatch):
    """However small the cluster, tables are repaired and gangs looked at as their objects come."""
    monkeypatch.setattr(spare_tables, "_REPAIR_SHARE", 0)
    monkeypatch.setattr(builders, "_GANGS", 1)
    compare(seed)


def compare(seed):
    """Some sessions of one cluster, in which pods and whole gangs come and go between them."""
    drawn, rng = draw(seed), random.Random(seed)
    objects, memory, now = drawn.objects, drawn.memory, drawn.now
    kept, workspace = SnapshotBuilder(), _Workspace()
    told = {}
    for _ in range(ROUNDS):
        told = tell(rng, kept, told, objects)
        snapshot = b.snapshot(objects)
        assert kept.build() == snapshot
        given = {"now": now, "memory": memory, "extenders": Service()}
        result, after = run_session(snapshot, drawn.policy, workspace=Workspace(), **given)
        again, also = run_session(kept.build(), drawn.policy, workspace=workspace, check=True, **given)
        assert dump(again) == dump(result)
        assert also == after
        objects = [item for item in carry_out(objects, result, now - b.now(0)) if keeps(rng, item)]
        memory, now = after, now + STEP


def tell(rng, kept, told, objects):
    """The events from one list of objects to the next, in any order."""
    listed = {(o["kind"], o["metadata"].get("namespace"), o["metadata"]["name"]): o for o in objects}
    events = [(key, listed.get(key)) for key in sorted({*told, *listed}, key=str) if told.get(key) != listed.get(key)]
    rng.shuffle(events)
    for (kind, namespace, name), item in events:
        if item is None:
            kept.delete(kind, namespace, name)
        else:
            kept.upsert(item)
    return listed


def keeps(rng, item):
    """Whether an object is there in the next round."""
    return item["kind"] not in ("Pod", "PodGroup") or rng.random() < 0.95


class _Workspace(Workspace):
    """Looks whether what a session is lent is what the workspace knows."""

    def lend(self):
        nodes, cards = super().lend()
        for table, lent in (("nodes", nodes), ("cards", cards)):
            for name in _TABLES[table]:
                np.testing.assert_array_equal(getattr(lent, name), getattr(getattr(self, table), name), name)
        return nodes, cards
