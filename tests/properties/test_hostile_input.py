"""Whatever stands in a snapshot or a policy: a decision or one clear error, never an accident."""

from __future__ import annotations

import copy
import json
import os
import random

import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scheduler_core import run_session
from scheduler_core.model.errors import BadInput
from scheduler_core.serde.kubernetes import read_snapshot
from scheduler_core.serde.policy import parse_policy
from scheduler_core.serde.policy.founding import FOUNDING_POLICY
from scheduler_core.serde.result import dump
from tests import builders as b
from tests.properties.clusters import random_cluster

SESSIONS = int(os.environ.get("RANDOM_SESSIONS", "60"))
ODD = (
    None, True, [], {}, "", "x", "\x00", "-1", "1e400", "9" * 40, "1Ei", "NaN", "A|A|", "|", "{}", "[1]", '{"A": 1e9}',
    "2026-13-45", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", 0, -1, 0.5, 10**12, 2**63, -(2**63), 2**70, 1e300,
    [None], [{}], {"a": None}, 2**31 - 1, -(2**31),
)  # fmt: skip
always = settings(max_examples=2 * SESSIONS, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


def spoilt(value, rng, times):
    """The value with a few of its parts replaced or left out."""
    for _ in range(times):
        places = list(_places(value))
        if not places:
            break
        holder, key = rng.choice(places)
        if rng.random() < 0.15 and isinstance(holder, dict):
            del holder[key]
        else:
            # Mostly something of the same type, which gets further in.
            alike = [odd for odd in ODD if type(odd) is type(holder[key])] if rng.random() < 0.7 else []
            holder[key] = copy.deepcopy(rng.choice(alike or ODD))
    return value


def _places(value):
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield value, key
        yield from _places(inner)


def attempt(read, file):
    """What was read, or None after an error that says where and what."""
    try:
        return read()
    except BadInput as error:
        document = error.to_json()["error"]
    assert document["code"]
    assert document["message"]
    assert document["file"] == file
    assert json.dumps(document)
    return None


@always
@given(st.integers(min_value=0, max_value=2**32 - 1))
def test_snapshots(seed):
    rng = random.Random(seed)
    objects, options, now = random_cluster(rng)
    text = json.dumps(spoilt(b.listing(objects), rng, rng.randint(1, 4)))
    taken = attempt(lambda: read_snapshot(text, "spoilt.json"), "spoilt.json")
    if taken is not None:
        result, memory = run_session(taken, b.founding_policy(**options), now=now, check=True)
        assert dump(result)
        run_session(taken, b.founding_policy(**options), now=taken.latest, memory=memory, check=True)


@always
@given(st.integers(min_value=0, max_value=2**32 - 1))
def test_policies(seed):
    rng = random.Random(seed)
    text = yaml.safe_dump(spoilt(yaml.safe_load(FOUNDING_POLICY), rng, rng.randint(1, 3)), allow_unicode=True)
    policy = attempt(lambda: parse_policy(text, "spoilt.conf"), "spoilt.conf")
    if policy is not None:
        run_session(b.snapshot(b.node("n"), b.pod("p")), policy, now=0.0)


@always
@given(st.text(max_size=200) | st.binary(max_size=200))
def test_any_text(text):
    attempt(lambda: read_snapshot(text, "any"), "any")
    attempt(lambda: parse_policy(text, "any"), "any")
