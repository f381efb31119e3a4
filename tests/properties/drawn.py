"""One random session: cluster, policy, what the session before left; for the engine and for the naive scheduler."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

from scheduler_core import Memory, Policy, run_session
from scheduler_core.model.decision import Result
from scheduler_core.serde.policy import parse_policy
from tests import builders as b
from tests.properties.clusters import random_cluster
from tests.properties.extras import with_extras
from tests.properties.policies import random_policy
from tests.reference.aftermath import carry_out
from tests.reference.plugins.extender import answers
from tests.reference.session import decide

STEP = 30


class Drawn(NamedTuple):
    """What a session is given."""

    objects: list[b.Object]
    policy: Policy
    now: float
    memory: Memory | None
    # What the naive scheduler saw in the session before.
    before: Any = None


def draw(seed: int) -> Drawn:
    """The session of a seed; now and then the second one of a cluster."""
    rng = random.Random(seed)
    objects, options, now = random_cluster(rng)
    objects = with_extras(rng, objects)
    drawn = Drawn(objects, parse_policy(random_policy(rng, options)), now, None)
    if rng.random() < 0.2:
        result, memory = decided_by_engine(drawn, drawn.objects)
        seen = decide(b.snapshot(objects), now=now, policy=drawn.policy)["seen"] if memory.queue else None
        after = carry_out(objects, result, now - b.now(0))
        drawn = Drawn(after, drawn.policy, now + STEP, memory, seen)
    return drawn


class Service:
    """The service that the plugin ``extender`` asks, in this process; it says what the naive extender says."""

    def post(self, url: str, body: bytes, timeout: float) -> bytes:
        """Answer one question."""
        asked = json.loads(body)
        verb = url.rpartition("/")[2]
        return json.dumps(self._answer(verb, asked, answers(verb))).encode()

    def _answer(self, verb: str, asked: dict[str, Any], say: Callable[..., Any]) -> dict[str, Any]:
        if verb == "predicate":
            return {"refused": {node: "no" for node in asked["nodes"] if say(asked["task"]["name"], node)}}
        if verb == "prioritize":
            return {"scores": {node: say(asked["task"]["name"], node) for node in asked["nodes"]}}
        if verb in ("preemptable", "reclaimable"):
            names = [task["name"] for task in asked["evictees"]]
            return {"status": 1, "victims": [name for name in names if say(asked["evictor"]["name"], name)]}
        if verb == "queueOverused":
            return {"overused": say(asked["queue"]["name"])}
        return {"status": say(asked["job"]["name"])}


def decided_by_engine(drawn: Drawn, objects: list[b.Object]) -> tuple[Result, Memory]:
    """The engine's result; it checks its own tables too."""
    return run_session(
        b.snapshot(objects), drawn.policy, now=drawn.now, memory=drawn.memory, extenders=Service(), check=True
    )


def decided(result: Result) -> dict[str, Any]:
    """The engine's decisions in the form of the naive scheduler's."""
    return {
        "binds": {p.pod: (p.node, p.card, p.card_indices) for p in result.binds},
        "pipelined": {p.pod: (p.node, p.card, p.card_indices) for p in result.pipelined},
        "evictions": sorted((e.pod, e.reclaimer) for e in result.evictions),
        "reclaims": sorted((r.reclaimer, tuple(v.gang for v in r.victims)) for r in result.reclaims),
        "phases": {g.name: g.phase.value for g in result.podgroups},
    }


def mismatch(result: Result, theirs: dict[str, Any]) -> dict[str, Any] | None:
    """Parts of the decision that are not the naive scheduler's, or None."""
    mine = decided(result)
    return {key: (mine[key], theirs[key]) for key in mine if mine[key] != theirs[key]} or None


def compared(drawn: Drawn, objects: list[b.Object] | None = None) -> tuple[Result, dict[str, Any] | None]:
    """The engine's result, and what the naive scheduler decides otherwise."""
    objects = drawn.objects if objects is None else objects
    result, memory = decided_by_engine(drawn, objects)
    theirs = decide(b.snapshot(objects), now=drawn.now, policy=drawn.policy, memory=drawn.memory, before=drawn.before)
    found = mismatch(result, theirs) or {}
    if theirs["queue"] is not None:
        queue = {e.pod: (e.where.value, e.attempts, e.tried, e.nominated) for e in memory.queue}
        queue |= dict.fromkeys(theirs["queue"].keys() - queue.keys())
        if queue != theirs["queue"]:
            found["queue"] = (queue, theirs["queue"])
    elected = (memory.election.gang, memory.election.nodes) if memory.election else None
    if elected != theirs["election"]:
        found["election"] = (elected, theirs["election"])
    return result, found or None


class Coverage:
    """What random sessions held, counted."""

    def __init__(self) -> None:
        self.sessions = 0
        self.held: Counter[str] = Counter()
        self.actions: Counter[str] = Counter()
        self.plugins: Counter[str] = Counter()

    def note(self, drawn: Drawn, result: Result) -> None:
        """Count one session."""
        self.sessions += 1
        self.actions.update(drawn.policy.actions)
        self.plugins.update({option.name for tier in drawn.policy.tiers for option in tier})
        back = [reclaim for reclaim in result.reclaims if reclaim.action in ("reclaim", "gangreclaim")]
        refused = any(reason.code.value in ("ReclaimForbidden", "WaitingForCards") for reason in result.reasons)
        self.held["binds"] += bool(result.binds)
        self.held["reclaims that commit"] += bool(back)
        self.held["reclaims refused or out of reach"] += refused and not back
        self.held["reclaims of several gangs"] += any(len(reclaim.victims) > 1 for reclaim in back)
        self.held["gangs that wait"] += bool(result.reasons)
        self.held["with what the session before left"] += drawn.memory is not None
        for action in sorted({reclaim.action for reclaim in result.reclaims}):
            self.held[f"evictions by {action}"] += 1

    def missing(self, actions: set[str], plugins: set[str]) -> list[str]:
        """Names that no session had."""
        return sorted((actions - self.actions.keys()) | (plugins - self.plugins.keys()))

    def told(self) -> str:
        """A table in words."""
        rows = (("held", self.held), ("actions", self.actions), ("plugins", self.plugins))
        return f"of {self.sessions} random sessions\n" + "\n".join(
            f"  {title}: " + ", ".join(f"{what} {n}" for what, n in sorted(counted.items())) for title, counted in rows
        )
