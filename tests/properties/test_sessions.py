"""Random sessions: the engine and the naive scheduler decide the same, and what must always hold does hold."""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import subprocess
import sys
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scheduler_core import run_session
from scheduler_core.actions import ACTIONS
from scheduler_core.model.resources import parse_cpu_milli, parse_memory_mib
from scheduler_core.plugins import PLUGINS
from scheduler_core.serde.result import dump
from tests import builders as b
from tests.properties.clusters import random_cluster
from tests.properties.drawn import STEP, Coverage, compared, decided, decided_by_engine, draw, mismatch
from tests.properties.shrink import smallest
from tests.reference.aftermath import carry_out
from tests.reference.invariants import broken
from tests.reference.session import FOUNDING, decide

SESSIONS = int(os.environ.get("RANDOM_SESSIONS", "60"))
ROUNDS = 6

# Hypothesis would draw integers near the constants of whatever modules are loaded.
seeds = st.sampled_from(range(SESSIONS))
many = settings(max_examples=SESSIONS, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
some = settings(
    max_examples=max(10, SESSIONS // 5), deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)


def cluster(seed):
    return random_cluster(random.Random(seed))


def session(objects, options, now, memory=None):
    return run_session(b.snapshot(objects), b.founding_policy(**options), now=now, memory=memory, check=True)


def difference(objects, options, now, memory=None):
    """What the two decide differently, or None."""
    taken = b.snapshot(objects)
    ours, _ = session(objects, options, now, memory)
    theirs = decide(taken, now=now, options=options, memory=memory)
    return mismatch(ours, theirs)


def told(objects, given, found):
    return f"{found}\ngiven {given}\n{json.dumps(objects, indent=1)}"


class TestAgainstTheNaiveScheduler:
    @many
    @given(seeds)
    def test_both_decide_the_same(self, seed):
        objects, options, now = cluster(seed)
        if difference(objects, options, now):
            objects = smallest(objects, lambda fewer: difference(fewer, options, now) is not None)
            pytest.fail(told(objects, options, difference(objects, options, now)))

    @some
    @given(st.randoms(use_true_random=False))
    def test_also_for_the_odd_clusters_that_shrinking_likes(self, rng):
        objects, options, now = random_cluster(rng)
        assert difference(objects, options, now) is None

    @some
    @given(seeds)
    def test_also_with_what_the_session_before_left(self, seed):
        objects, options, now = random_cluster(random.Random(seed), flood=True)
        result, memory = session(objects, options, now)
        after = carry_out(objects, result, 10_000)
        assert difference(after, options, now + STEP, memory) is None


class TestPolicies:
    seen = Coverage()

    @many
    @given(seeds)
    def test_other_policies_decide_like_the_naive_scheduler_too(self, seed):
        drawn = draw(seed)
        result, found = compared(drawn)
        self.seen.note(drawn, result)
        if found:

            def differs(fewer):
                return compared(drawn, fewer)[1]

            objects = smallest(drawn.objects, differs)
            pytest.fail(f"seed {seed}\n{drawn.policy.source}\n{told(objects, drawn.memory, differs(objects))}")

    def test_what_they_held(self, capsys):
        """Each action and plugin, reclaims that commit and reclaims that do not; fewer would prove nothing."""
        seen = self.seen
        if seen.sessions < SESSIONS:
            seen = Coverage()
            for seed in range(200):
                drawn = draw(seed)
                seen.note(drawn, decided_by_engine(drawn, drawn.objects)[0])
        with capsys.disabled():
            print(f"\n{seen.told()}")
        assert seen.missing(set(ACTIONS), set(PLUGINS)) == []
        assert seen.held["reclaims that commit"] >= seen.sessions // 4
        assert seen.held["reclaims refused or out of reach"] >= seen.sessions // 5
        assert seen.held["binds"] >= seen.sessions // 4


class TestInvariants:
    @many
    @given(seeds)
    def test_after_every_session(self, seed):
        objects, options, now = cluster(seed)

        def fails(fewer):
            result, _ = session(fewer, options, now)
            return broken(b.snapshot(fewer), result, {**FOUNDING, **options}, now)

        found = fails(objects)
        if found:
            objects = smallest(objects, fails)
            pytest.fail(told(objects, options, fails(objects)))

    @some
    @given(seeds)
    def test_a_cluster_comes_to_rest_and_nobody_falls_twice(self, seed):
        objects, options, now = random_cluster(random.Random(seed), flood=True)
        memory, fallen = None, Counter()
        for number in range(ROUNDS + 3):
            result, memory = session(objects, options, now + number * STEP, memory)
            assert broken(b.snapshot(objects), result, {**FOUNDING, **options}, now) == []
            fallen.update({eviction.gang for eviction in result.evictions})
            quiet = not result.binds and not result.evictions
            objects = carry_out(objects, result, 10_000 + number * STEP)
            if number >= ROUNDS:
                assert quiet, f"round {number}: {result.binds} {result.evictions}"
        assert all(times == 1 for times in fallen.values()), fallen


class TestMetamorphic:
    @some
    @given(seeds)
    def test_the_order_of_the_input_does_not_matter(self, seed):
        objects, options, now = cluster(seed)
        shuffled = objects[:]
        random.Random(seed + 1).shuffle(shuffled)
        assert dump(session(objects, options, now)[0]) == dump(session(shuffled, options, now)[0])

    @some
    @given(seeds)
    def test_names_in_the_same_order_decide_the_same(self, seed):
        objects, options, now = cluster(seed)
        text = json.dumps(objects)
        # Every name begins with a letter of its kind and a digit: another letter of the same order renames them all.
        renamed = json.loads(
            re.sub(r'"(uid-)?(default-)?([gnq])(\d)', lambda m: f'"{m[1] or ""}{m[2] or ""}{m[3]}x{m[4]}', text)
        )
        ours = dump(session(objects, options, now)[0]).decode()
        theirs = dump(session(renamed, options, now)[0]).decode()
        assert re.sub(r"\b([gnq])x(\d)", r"\1\2", theirs) == ours

    @some
    @given(seeds)
    def test_a_day_later_everything_is_the_same(self, seed):
        objects, options, now = cluster(seed)
        pattern = r"2026-01-\d\dT\d\d:\d\d:\d\dZ"
        day = timedelta(days=1)

        def shifted(text):
            return re.sub(pattern, lambda m: (datetime.fromisoformat(m[0]) + day).strftime("%Y-%m-%dT%H:%M:%SZ"), text)

        later = json.loads(shifted(json.dumps(objects)))
        # Since when something is promised is a time of the result.
        ours = json.loads(dump(session(objects, options, now)[0]))
        ours["reasons"] = json.loads(shifted(json.dumps(ours["reasons"])))
        theirs = json.loads(dump(session(later, options, now + day.total_seconds())[0]))
        assert ours.pop("now") != theirs.pop("now")
        assert ours == theirs

    @some
    @given(seeds)
    def test_other_units_for_the_same_amounts_give_the_same_bytes(self, seed):
        objects, options, now = cluster(seed)
        other = with_amounts(objects, lambda milli: f"{milli}m", lambda mib: f"{mib * 1024}Ki")
        assert dump(session(objects, options, now)[0]) == dump(session(other, options, now)[0])

    @some
    @given(seeds)
    def test_three_times_as_much_of_cpu_and_memory_everywhere_decides_the_same(self, seed):
        objects, options, now = cluster(seed)
        larger = with_amounts(objects, lambda milli: f"{3 * milli}m", lambda mib: f"{3 * mib}Mi")
        assert decided(session(objects, options, now)[0]) == decided(session(larger, options, now)[0])

    def test_another_hash_seed_gives_the_same_bytes(self):
        digests = {seed: _digest_elsewhere(seed) for seed in ("0", "1", "4711")}
        assert len(set(digests.values())) == 1, digests
        assert digests["0"] == digest_of_many()


def with_amounts(value, cpu, memory):
    """A copy in which every amount of cpu and memory is written as ``cpu(milli)`` and ``memory(mib)`` say."""
    if isinstance(value, list):
        return [with_amounts(item, cpu, memory) for item in value]
    if not isinstance(value, dict):
        return value
    written = {}
    for key, item in value.items():
        if key == "cpu" and isinstance(item, int | float | str):
            written[key] = cpu(parse_cpu_milli(item))
        elif key == "memory" and isinstance(item, int | str):
            written[key] = memory(parse_memory_mib(item))
        else:
            written[key] = with_amounts(item, cpu, memory)
    return written


def digest_of_many(count=25):
    """One hash over the results of several clusters."""
    total = hashlib.sha256()
    for seed in range(count):
        result, _ = session(*cluster(seed))
        total.update(dump(result))
    return total.hexdigest()


def _digest_elsewhere(hash_seed):
    code = "from tests.properties.test_sessions import digest_of_many; print(digest_of_many())"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(Path.cwd())},
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_random_clusters_are_worth_their_time(capsys):
    """How many sessions hold what is to be tested; too few would prove nothing."""
    seen = Counter()
    count = 200
    for seed in range(count):
        result, _ = session(*cluster(seed))
        claimants = {group.name for group in result.podgroups if group.service_type == "inference"}
        short = [r.podgroup for r in result.reasons if r.code.value in ("ReclaimForbidden", "WaitingForCards")]
        seen["binds"] += bool(result.binds)
        seen["reclaims that commit"] += bool(result.reclaims)
        seen["reclaims of several gangs"] += any(len(r.victims) > 1 for r in result.reclaims)
        seen["reclaims refused or out of reach"] += not claimants.isdisjoint(short)
        taken = {p.key: p.card for p in b.snapshot(cluster(seed)[0]).pods}
        seen["shares of a card"] += any(taken[x.pod] is not None and taken[x.pod].is_share for x in result.binds)
        seen["slices or MPS"] += any("/" in bind.card for bind in result.binds)
        seen["gangs that wait"] += bool(result.reasons)
        for reason in result.reasons:
            seen[f"reason {reason.code.value}"] += 1
    with capsys.disabled():
        print(f"\nof {count} random sessions: " + ", ".join(f"{what} {n}" for what, n in sorted(seen.items())))
    assert seen["reclaims that commit"] >= count * 3 // 10
    assert seen["reclaims refused or out of reach"] >= count // 5
    assert seen["binds"] >= count // 4
    assert seen["gangs that wait"] >= count // 4
