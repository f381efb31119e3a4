"""What is compiled ahead is all that a session of the founding policy compiles."""

from __future__ import annotations

from scheduler_core.cli import warm
from scheduler_core.scheduler import run_session
from scheduler_core.serde.policy import parse_policy
from scheduler_core.serde.policy.founding import FOUNDING_POLICY


def test_the_session_admits_places_and_takes_back():
    result, _ = run_session(warm._snapshot(), parse_policy(FOUNDING_POLICY), now=100.0, check=True)
    assert [bind.pod for bind in result.binds] == ["warm/a-w-0", "warm/f-w-0"]
    assert [eviction.pod for eviction in result.evictions] == ["warm/c-w-0"]
    assert [place.pod for place in result.pipelined] == ["warm/b-w-0"]
