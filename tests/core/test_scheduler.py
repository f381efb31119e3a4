"""A session is a function: the order of its input and what a workspace remembers change nothing."""

from __future__ import annotations

import os
import random
import subprocess
import sys

import msgspec
import pytest

from scheduler_core import Workspace, run_session
from tests.core.small_cluster import A, H, gang, inference, node, policy, service, snapshot, training


def mixed():
    """A cluster with something of everything."""
    return snapshot(
        [node("n1", 8), node("n2", 8), node("n3", 4, A), node("n4", 4, A, unschedulable=True)],
        [inference(quota={H: 12, A: 4}), training(quota={H: 16, A: 8}), training("other", quota={H: 4})],
        *(gang(f"job-{i}", 2, 2, "training", on=["n1", "n2"], started=float(i)) for i in range(4)),
        gang("big", 2, 4, "training"),
        gang("choice", 3, 1, "training", card=f"{A}|{H}"),
        gang("shares", 4, 0.4, "other"),
        service("svc", 3, 2),
        service("svc-a", 2, 1, card=A),
    )


def packed(decided):
    """Result and memory as bytes, every list read."""
    return msgspec.msgpack.encode(decided, enc_hook=tuple)


def encoded(given, **more):
    return packed(run_session(given, policy(), now=1000.0, check=True, **more))


@pytest.mark.parametrize("seed", range(5))
def test_slots_do_not_matter(seed):
    """A workspace that has seen the pods in another order and history decides the same."""
    given = mixed()
    workspace = Workspace()
    draw = random.Random(seed)
    for _ in range(3):
        some = tuple(pod for pod in given.pods if draw.random() < 0.5)
        run_session(msgspec.structs.replace(given, pods=some), policy(), now=900.0, workspace=workspace)
    assert encoded(given, workspace=workspace) == encoded(given)


def test_hash_seeds_do_not_matter():
    program = (
        "import sys; from tests.core.test_scheduler import encoded, mixed; sys.stdout.buffer.write(encoded(mixed()))"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("0", "1", "77")
    }
    assert len(outputs) == 1


def test_the_memory_is_a_value():
    given = mixed()
    first, memory = run_session(given, policy(), now=1000.0)
    stored = msgspec.msgpack.decode(msgspec.msgpack.encode(memory), type=type(memory))
    again = run_session(given, policy(), now=1010.0, memory=stored)
    assert packed(again) == packed(run_session(given, policy(), now=1010.0, memory=memory))
    assert first.reclaims


def test_timings_need_a_timer():
    ticks = iter(range(1000))
    assert not run_session(mixed(), policy(), now=1000.0)[0].timings_ms
    timed = run_session(mixed(), policy(), now=1000.0, timer=lambda: float(next(ticks)))[0].timings_ms
    assert set(timed) >= {"open", "enqueue", "allocate", "backfill", "reclaim"}


def test_an_empty_cluster_is_no_trouble():
    result, memory = run_session(snapshot([], []), policy(), now=0.0, check=True)
    assert result.binds == ()
    assert memory.reservations == ()
