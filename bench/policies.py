"""A15, A16: what one more plugin, or another policy, costs beside the founding policy; the sessions of A1.

A factor is the least time of a policy over the least time of the founding one, taken in turns; A15-pod is the time of a
session by the number of its pods.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from bench.checks import check
from bench.sessions import session_seconds
from bench.snapshots import BORN, GANG, Size, waiting
from scheduler_core import Workspace, parse_policy, run_session
from scheduler_core.model.decision import Bind
from scheduler_core.model.errors import BadInput
from scheduler_core.model.policy import Policy
from scheduler_core.model.snapshot import Snapshot
from scheduler_core.plugins import PLUGINS
from scheduler_core.serde.policy.founding import FOUNDING_POLICY

ROUNDS = 3
# Pods one by one: with each of these plugins the ones that sort and that preempt.
POD_BY_POD = {
    "priority-sort": ["priority-sort"],
    "coscheduling": ["coscheduling"],
    "default-preemption": ["priority-sort", "default-preemption"],
}
# And what asks services outside, whose time is not ours.
_OTHERS = {*POD_BY_POD, "extender"}
# Arguments without which a plugin has nothing to do.
_ARGUMENTS: dict[str, dict[str, Any]] = {
    "card-model": {"rareCards": ["NVIDIA-H200"]},
    "deviceshare": {"deviceshare.VGPUEnable": True},
    "nodegroup": {"strict": False},
    "sla": {"sla-waiting-time": "2h"},
    "tdm": {"tdm.revocable-zone.day": "02:00-20:00"},
}
VOLCANO = {
    "volcano": [
        ["priority", "gang", "conformance"],
        ["overcommit", "drf", "predicates", "proportion", "nodeorder", "binpack"],
    ],
    "capacity": [["priority", "gang", "conformance"], ["predicates", "capacity", "nodeorder", "binpack"]],
}


def each_plugin(size: Size) -> Callable[[], Callable[[], float]]:
    """The largest factor of any built-in plugin beside the founding ones; all of them on standard error."""
    policies = {
        name: _with(name)
        for name in sorted(PLUGINS)
        if name not in _OTHERS and f"name: {name}\n" not in FOUNDING_POLICY
    }
    return partial(_prepare, size, policies, True)


def beside_founding(size: Size, plugin: str) -> Callable[[], float]:
    """The factor of one more plugin."""
    return _prepare(size, {plugin: _with(plugin)}, True)


def other_policy(size: Size, name: str) -> Callable[[], Callable[[], float]]:
    """The factor of one of :data:`VOLCANO`."""
    return partial(_prepare, size, {name: other(name)}, False)


def other(name: str) -> str:
    """The text of one of :data:`VOLCANO`."""
    return _text("enqueue, allocate, backfill, reclaim", VOLCANO[name])


def pod_by_pod(size: Size, plugin: str) -> Callable[[], Callable[[], float]]:
    """Seconds a pod with one of :data:`POD_BY_POD`; all pods find room."""
    tier = ["gang", *POD_BY_POD[plugin], "predicates", "nodeorder", "capacity-card"]
    return partial(_prepare_pods, size, _text("enqueue, allocate", [tier]))


def _text(actions: str, tiers: list[list[str]]) -> str:
    plugins = [{"plugins": [{"name": plugin} for plugin in tier]} for tier in tiers]
    return json.dumps({"actions": actions, "tiers": plugins})


def _with(plugin: str) -> str:
    said = json.dumps({"name": plugin, "arguments": _ARGUMENTS.get(plugin, {})})
    return f"{FOUNDING_POLICY}  - {said}\n"


def _prepare(size: Size, policies: dict[str, str], by_card: bool) -> Callable[[], float]:
    snapshot = waiting(size)
    built = Workspace()
    built.load(snapshot)
    parsed = {"": parse_policy(FOUNDING_POLICY)}
    for name, text in policies.items():
        try:
            parsed[name] = parse_policy(text)
        except BadInput as error:
            print(f"       {name}: not beside the founding plugins ({error})", file=sys.stderr)
    decided = {name: _decided(snapshot, policy, built, size, by_card or not name) for name, policy in parsed.items()}

    def seconds(name: str) -> float:
        return session_seconds(snapshot, parsed[name], built, decided[name])

    def measure() -> float:
        taken = {name: min(run) for name, run in _rounds(parsed, seconds).items()}
        plain = taken.pop("")
        factors = {name: value / plain for name, value in taken.items()}
        for name, factor in sorted(factors.items(), key=lambda item: -item[1]):
            print(f"       {name:30}{taken[name] * 1000:>10.1f} ms{factor:>8.2f} x", file=sys.stderr)
        print(
            f"       founding {plain * 1000:.1f} ms, median {statistics.median(factors.values()):.2f} x",
            file=sys.stderr,
        )
        return max(factors.values())

    return measure


def _prepare_pods(size: Size, text: str) -> Callable[[], float]:
    snapshot, policy = waiting(size), parse_policy(text)
    built = Workspace()
    built.load(snapshot)
    decided = _decided(snapshot, policy, built, size, True)
    return lambda: session_seconds(snapshot, policy, built, decided) / size.tasks


def _rounds(names: Iterable[str], seconds: Callable[[str], float]) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(ROUNDS):
        for name, taken in found.items():
            taken.append(seconds(name))
    return found


def _decided(snapshot: Snapshot, policy: Policy, built: Workspace, size: Size, by_card: bool) -> list[Bind]:
    """The binds; ``by_card``: queues have a quota for each card type, and so has each task its place."""
    result, _ = run_session(snapshot, policy, now=BORN, workspace=built.fork(), check=True)
    check(snapshot, result, placed=size.tasks // GANG * GANG if by_card else None, quotas=by_card)
    return list(result.binds)
