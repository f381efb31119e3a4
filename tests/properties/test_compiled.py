"""The compiled functions decide as the interpreter does, and as they do when they come from the disk."""

from __future__ import annotations

import hashlib
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from scheduler_core import run_session
from scheduler_core.serde.result import dump
from tests import builders as b
from tests.properties.clusters import crowd, random_cluster
from tests.properties.test_sessions import digest_of_many
from tests.reference.aftermath import carry_out

STEP = 30


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
from tests.properties.test_compiled import decisions

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
