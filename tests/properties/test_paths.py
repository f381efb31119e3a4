"""The compiled loops and Python gang by gang decide the same, to the last byte."""

from __future__ import annotations

import hashlib
import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scheduler_core import Workspace, run_session
from scheduler_core.actions import allocate, enqueue
from scheduler_core.actions.support import turns
from scheduler_core.actions.support.votes import Electorate, electorate_of
from scheduler_core.serde.result import dump
from tests import builders as b
from tests.properties.clusters import random_cluster
from tests.properties.shrink import smallest
from tests.properties.test_sessions import digest_of_many
from tests.reference.aftermath import carry_out

SESSIONS = int(os.environ.get("RANDOM_SESSIONS", "60"))
STEP = 30

# Hypothesis would draw integers near the constants of whatever modules are loaded.
seeds = st.sampled_from(range(SESSIONS))
many = settings(max_examples=SESSIONS, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


def nothing(session):
    """What the compiled paths say where they do not apply."""


def both_ways(objects, policy, now, memory=None):
    """Results and memories of the same session, compiled and not."""
    found = []
    for forms, votes in ((turns.plain_policy, electorate_of), (nothing, nothing)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(allocate, "plain_policy", forms)
            patch.setattr(enqueue, "electorate_of", votes)
            result, after = run_session(
                b.snapshot(objects), policy, now=now, memory=memory, workspace=Workspace(), check=True
            )
        found.append((result, dump(result), after))
    return found


def differs(objects, policy, now, memory=None):
    (_, ours, after), (_, theirs, later) = both_ways(objects, policy, now, memory)
    return ours != theirs or after != later


def crowd(rng, objects):
    """More gangs of the kinds that are there already, so that queues take turns and room runs out; more that leave."""
    for thing in objects:
        if thing["kind"] == "Pod" and thing["spec"].get("nodeName") and rng.random() < 0.1:
            thing["metadata"].setdefault("deletionTimestamp", b.at(9_990))
    count = rng.randint(0, 12)
    nodes = sorted(o["metadata"]["name"] for o in objects if o["kind"] == "Node")
    queues = sorted(o["metadata"]["name"] for o in objects if o["kind"] == "Queue")
    cards = ("A100", "H200", "A100|H200", "H200|A100")
    for number in range(count if nodes else 0):
        name, members = f"x{number}", rng.randint(1, 5)
        least = rng.randint(1, members)
        request = {"cpu": rng.choice((0, "1", "3")), "memory": rng.choice((0, "1Gi"))}
        kind = rng.choice(("card", "share", "none"))
        if kind == "card":
            request |= {"card": rng.choice(cards), "count": rng.choice((1, 1, 2))}
        elif kind == "share":
            request |= {"card": rng.choice(cards), "milli": rng.choice((300, 500, 600))}
        elif not request["cpu"] and not request["memory"]:
            request["cpu"] = "2"
        born = rng.randint(0, 3)
        objects.append(b.pod_group(name, rng.choice(queues), least, created=born))
        for member in range(members):
            mixed = {"cpu": "500m"} if rng.random() < 0.1 else {}
            pod_name = f"{name}-w-{member}" if rng.random() < 0.8 else f"{name}-{rng.choice('zyx')}{member}"
            objects.append(b.pod(pod_name, name, created=born + rng.randint(0, 1), **{**request, **mixed}))
    return objects


@many
@given(seeds)
def test_both_paths_decide_the_same(seed):
    rng = random.Random(seed)
    objects, options, now = random_cluster(rng)
    policy = b.founding_policy(**options)
    objects = crowd(rng, objects)
    if differs(objects, policy, now):
        objects = smallest(objects, lambda fewer: differs(fewer, policy, now))
        pytest.fail(f"options {options}\n{json.dumps(objects, indent=1)}")


@many
@given(seeds)
def test_also_with_what_the_session_before_left(seed):
    rng = random.Random(seed)
    objects, options, now = random_cluster(rng, flood=True)
    policy = b.founding_policy(**options)
    (result, _, memory), _ = both_ways(objects, policy, now)
    after = crowd(rng, carry_out(objects, result, 10_000))
    assert not differs(after, policy, now + STEP, memory)


def test_votes_are_compiled_for_most_of_them():
    """Otherwise the tests above compare Python with itself."""
    seen = {"voted": 0, "refused": 0, "again": 0}
    vote = Electorate.vote

    def watched(electorate, startable=None):
        votes = vote(electorate, startable)
        seen["voted"] += len(votes.order)
        seen["refused"] += int(votes.refused.sum())
        seen["again"] += startable is not None
        return votes

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Electorate, "vote", watched)
        for seed in range(60):
            rng = random.Random(seed)
            objects, options, now = random_cluster(rng)
            run_session(b.snapshot(crowd(rng, objects)), b.founding_policy(**options), now=now, check=True)
    assert seen["refused"] > 60, seen
    assert seen["voted"] > 2 * seen["refused"], seen
    assert seen["again"] > 0, seen


def test_the_loop_places_most_of_them():
    """Otherwise the two tests above compare Python with itself."""
    seen = {"placed by the loop": 0, "promised by the loop": 0, "left to Python": 0}

    class Watched(turns.CompiledTurns):
        def run(self, waiting, place):
            def counted(gang):
                seen["left to Python"] += 1
                return place(gang)

            super().run(waiting, counted)
            seen["placed by the loop"] += int(self._turns.kept.sum())
            seen["promised by the loop"] += int((self._session.gangs.counts[1][self._turns.kept] > 0).sum())

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(allocate, "CompiledTurns", Watched)
        for seed in range(100):
            rng = random.Random(seed)
            objects, options, now = random_cluster(rng)
            run_session(b.snapshot(crowd(rng, objects)), b.founding_policy(**options), now=now, check=True)
    assert seen["placed by the loop"] > 60, seen
    assert seen["promised by the loop"] > 3, seen
    assert seen["left to Python"] > 10, seen


def decisions(count=20):
    """Of so many drawn sessions with a crowd, each followed by one with what it left: results and memories, hashed."""
    for seed in range(count):
        rng = random.Random(seed)
        objects, options, now = random_cluster(rng, flood=seed % 2 == 1)
        policy = b.founding_policy(**options)
        memory = None
        for _round in range(2):
            objects = crowd(rng, objects)
            result, memory = run_session(b.snapshot(objects), policy, now=now, memory=memory, check=True)
            yield hashlib.sha256(dump(result) + repr(memory).encode()).hexdigest()
            objects, now = carry_out(objects, result, now), now + STEP


def elsewhere(code, **environment):
    variables = {**os.environ, "PYTHONPATH": str(Path.cwd()), **environment}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=variables, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_without_the_compiler_the_decisions_are_the_same():
    code = """
from scheduler_core.algorithms.compiled import compilable
from tests.properties.test_paths import decisions

print(*decisions(), sep="\\n")
assert compilable() == 0
"""
    assert elsewhere(code, NUMBA_DISABLE_JIT="1").splitlines() == list(decisions())


@pytest.mark.timeout(900)
@pytest.mark.proof
def test_an_empty_and_a_warm_kernel_cache_give_the_same_bytes(tmp_path):
    def compiled_there():
        code = "from tests.properties.test_sessions import digest_of_many; print(digest_of_many(5))"
        return elsewhere(code, NUMBA_CACHE_DIR=str(tmp_path))

    empty = compiled_there()
    kept = sorted(path.name for path in tmp_path.iterdir())
    assert any(name.startswith("framework.kernels.turns-") for name in kept)
    assert compiled_there() == empty == digest_of_many(5)
    assert sorted(path.name for path in tmp_path.iterdir()) == kept
