"""Claimants served in compiled code and one by one in Python get the same, to the last byte."""

from __future__ import annotations

import json
import os
import random

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from scheduler_core import Workspace, run_session
from scheduler_core.actions import reclaim
from scheduler_core.actions.support.claims import CompiledClaims, plain_claims
from scheduler_core.serde.result import dump
from tests import builders as b
from tests.properties.shrink import smallest
from tests.reference.aftermath import carry_out

SESSIONS = int(os.environ.get("RANDOM_SESSIONS", "60"))
CARDS = ("A100", "H200")

# Hypothesis would draw integers near the constants of whatever modules are loaded.
seeds = st.sampled_from(range(SESSIONS))
many = settings(max_examples=SESSIONS, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


def nothing(session):
    """What the compiled path says where it does not apply."""


def both_ways(objects, policy, now, memory=None):
    """Results and memories of the same session, compiled and not."""
    found = []
    for forms in (plain_claims, nothing):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(reclaim, "plain_claims", forms)
            result, after = run_session(
                b.snapshot(objects), policy, now=now, memory=memory, workspace=Workspace(), check=True
            )
        found.append((result, dump(result), after))
    return found


def differs(objects, policy, now, memory=None):
    (_, ours, after), (_, theirs, later) = both_ways(objects, policy, now, memory)
    return ours != theirs or after != later


class Room:
    """What is left of the nodes while training is laid out."""

    def __init__(self, rng, cpu, kinds, per):
        self.rng, self.cpu, self.kinds = rng, dict(cpu), kinds
        self.cards = {name: [1000] * per for name in kinds}

    def take(self, card, count, milli, cpu):
        """A node with room, or None."""
        least, times = milli or 1000, 1 if milli else count
        fitting = [
            name
            for name, kind in self.kinds.items()
            if kind == card and self.cpu[name] >= cpu and sum(free >= least for free in self.cards[name]) >= times
        ]
        if not fitting:
            return None
        name = self.rng.choice(fitting)
        self.cpu[name] -= cpu
        for place in [i for i, free in enumerate(self.cards[name]) if free >= least][:times]:
            self.cards[name][place] -= least
        return name


def claimed(rng):
    """A cluster full of training gangs of many shapes, and services that claim cards."""
    names = [f"n{i}" for i in range(rng.randint(2, 6))]
    kinds = {name: rng.choice(CARDS) for name in names}
    cpu, per = {name: rng.choice((12, 64)) for name in names}, rng.choice((2, 4, 8))
    objects = b.priority_classes() + [b.node(name, kinds[name], per, cpu=cpu[name]) for name in names]
    for i in range(2):
        plenty, some = dict.fromkeys(CARDS, 100), {card: rng.choice((1, 3, 8, 100)) for card in CARDS}
        objects.append(b.queue(f"t{i}", plenty, priority=rng.choice((0, 1, 5)), reclaimable=rng.random() < 0.92))
        back = {"reclaimable": rng.random() < 0.3, "cpu": rng.choice((None, None, 20))}
        objects.append(b.queue(f"i{i}", some, priority=rng.choice((10, 20)), **back))
    room = Room(rng, cpu, kinds, per)
    for number in range(rng.randint(3, 4 * len(names))):
        objects += running(rng, f"g{number}", room)
    for number in range(rng.randint(3, 14)):
        objects += service(rng, f"s{number}")
    options = {"overCommitFactor": 4.0, "cardUnlimitedCpuMemory": rng.random() < 0.7, "unknownReclaimer": "deny"}
    return objects, b.founding_policy(**options), b.now(10_000)


def running(rng, name, room):
    card, count, milli = rng.choice(CARDS), rng.choice((1, 1, 1, 2)), rng.choice((0, 0, 0, 0, 300, 500))
    cpu = rng.choice((1, 1, 3))
    nodes = [node for _ in range(rng.randint(1, 5)) if (node := room.take(card, count, milli, cpu)) is not None]
    if not nodes:
        return []
    made = b.training(
        name,
        rng.choice(("t0", "t1", "t0", "t1", "i0")),
        len(nodes),
        card,
        nodes=nodes,
        evicted=rng.choice(("AbortJob", "RestartJob", "", "")),
        min_member=rng.choice((len(nodes), max(1, len(nodes) - 1), 1)),
        priority=rng.choice(("pc-low", "pc-low", "pc-normal")),
        started=rng.randint(0, 9000),
        preemptable=rng.choice((None,) * 9 + ("false",)),
        cpu=cpu,
        **({"milli": milli} if milli else {"count": count}),
    )
    if rng.random() < 0.06:
        next(body for body in made if body["kind"] == "Pod")["spec"]["priorityClassName"] = "system-node-critical"
    return made


def service(rng, name):
    card = rng.choice((*CARDS, *CARDS, *CARDS, "A100|H200", None))
    milli, members = rng.choice((0, 0, 0, 0, 300, 600)), rng.randint(1, 4)
    cards = {"milli": milli} if milli else {"count": rng.choice((1, 1, 1, 2, 3))}
    return b.inference(
        name,
        rng.choice(("i0", "i1")),
        members,
        card,
        min_member=rng.choice((1, 1, members, max(1, members - 1))),
        phase="Inqueue",
        created=rng.randint(0, 3),
        priority=rng.choice(("pc-high", "pc-high", "pc-low")),
        cpu=rng.choice(("100m", "1", "2")),
        **(cards if card else {}),
    )


@many
@given(seeds)
@example(144384)  # claimants of two queues share what they know, and some victims fall before it is told
def test_both_paths_take_and_give_the_same(seed):
    objects, policy, now = claimed(random.Random(seed))
    if differs(objects, policy, now):
        objects = smallest(objects, lambda fewer: differs(fewer, policy, now))
        pytest.fail(json.dumps(objects, indent=1))


@many
@given(seeds)
def test_also_in_the_session_after(seed):
    objects, policy, now = claimed(random.Random(seed))
    (result, _, memory), _ = both_ways(objects, policy, now)
    assert not differs(carry_out(objects, result, 10_000), policy, now + 30, memory)


def test_the_compiled_path_serves_most_of_them(monkeypatch):
    """Otherwise the tests above compare Python with itself; each way out of the loop is taken too."""
    seen = dict.fromkeys(("_new_kind", "_weigh", "_vet", "by hand", "kept", "in vain"), 0)
    for name in ("_new_kind", "_weigh", "_vet"):
        before = getattr(CompiledClaims, name)
        monkeypatch.setattr(CompiledClaims, name, _counted(seen, name, before))
    serve = CompiledClaims.serve

    def watched(claims, waiting, by_hand, tell):
        serve(claims, waiting, _counted(seen, "by hand", by_hand), tell)
        rows = claims._story.claim[: claims._story.size[0], 1]
        seen["kept"] += int((rows == 1).sum())
        seen["in vain"] += int((rows == 0).sum())

    monkeypatch.setattr(CompiledClaims, "serve", watched)
    for seed in range(60):
        objects, policy, now = claimed(random.Random(seed))
        run_session(b.snapshot(objects), policy, now=now, workspace=Workspace(), check=True)
    assert all(seen.values()), seen
    assert seen["kept"] + seen["in vain"] > 2 * seen["by hand"], seen


def _counted(seen, name, call):
    def counted(*arguments):
        seen[name] += 1
        return call(*arguments)

    return counted
