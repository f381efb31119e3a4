"""A13: a day of tide on a saturated cluster, our reclaim beside upstream's choice pod by pod.

``python -m bench.tide [--hours 24] [--seed 42]`` prints the table. The same day is lived twice in the simulated
cluster: inference follows a curve with two floods, training waits for every card that is left. The policies differ in
``compatibility: volcano`` alone. Every session's result is carried out by the simulated cluster, which refuses what
cannot be, and the quotas are checked after each.
"""

from __future__ import annotations

import argparse
import functools
import math
import random
import sys
from collections.abc import Callable

from scheduler_core import parse_policy
from scheduler_core.model.cards import NodeCards
from scheduler_core.model.node import Node
from scheduler_core.model.podgroup import EvictedPolicy
from scheduler_core.model.queue import Queue
from scheduler_core.serde.policy.founding import FOUNDING_POLICY
from scheduler_core.simulator.clock import REPLAY_START
from scheduler_core.simulator.loop import SessionLoop
from scheduler_core.simulator.metrics import Metrics, Report
from scheduler_core.simulator.placement import PRIORITY_CLASSES
from scheduler_core.simulator.scenario import Arrivals
from scheduler_core.simulator.workload import OwnerKind, PodTemplate, Workload
from scheduler_core.simulator.world import World

CARD, RESOURCE = "NVIDIA-H200", "nvidia.com/gpu"
NODES, CARDS_A_NODE = 12, 8
CARDS = NODES * CARDS_A_NODE
# What inference may use, and so the height of the flood.
FLOOD = 40
# Pods of a training gang and the cards of each.
SHAPES = ((2, 1), (2, 2), (4, 1), (4, 1), (4, 2), (8, 1), (8, 2))
HOURS, SEED = 24.0, 42
SESSION, GRACE = 20.0, 30.0
POLICIES = {"ours": FOUNDING_POLICY, "pod by pod": "compatibility: volcano\n" + FOUNDING_POLICY}


def level(share: float) -> float:
    """The tide at a share of the day, 0 to 1: low at night, a flood before noon and a higher one in the evening."""
    return max(0.05, 0.8 * math.exp(-(((share - 0.42) / 0.09) ** 2)) + math.exp(-(((share - 0.8) / 0.08) ** 2)))


def services(seconds: float, rng: random.Random) -> list[tuple[float, Workload]]:
    """Services that are there while the tide is above their own level; together they never pass the quota."""
    found: list[tuple[float, Workload]] = []
    cards = 0
    while True:
        need = rng.choice((2, 4, 4))
        cards += need
        if cards > FLOOD:
            return found
        threshold, since, step = cards / FLOOD, None, 60.0
        for minute in range(int(seconds / step) + 2):
            at = minute * step
            up = at < seconds and level(at / seconds) >= threshold
            if up and since is None:
                since = at + rng.uniform(0, step)
            elif not up and since is not None:
                name = f"svc-{len(found):04}"
                found.append((REPLAY_START + since, _service(name, need, max(60.0, at - since))))
                since = None


def jobs(seconds: float, rng: random.Random) -> list[tuple[float, Workload]]:
    """Training gangs: enough at the beginning to fill the cluster, and then more than it can do."""
    found: list[tuple[float, Workload]] = []
    at = 0.0
    while at < seconds:
        (pods, need), life = rng.choice(SHAPES), rng.uniform(1800, 4 * 3600)
        found.append((REPLAY_START + at, _job(f"job-{len(found):04}", pods, need, life)))
        at += 0.0 if len(found) < 30 else rng.expovariate(1 / 420)
    return found


def _template(cards: int) -> PodTemplate:
    return PodTemplate(
        cpu_milli=4000 * cards,
        memory_mib=16_384 * cards,
        card_names=(CARD,),
        resource=RESOURCE,
        card_milli=cards * 1000,
    )


def _service(name: str, cards: int, life: float) -> Workload:
    return Workload(
        namespace="tide", name=name, queue="inference", service_type="inference", owner_kind=OwnerKind.REPLICA_SET,
        template=_template(cards), priority_class="pc-high", duration=life,
    )  # fmt: skip


def _job(name: str, pods: int, cards: int, life: float) -> Workload:
    return Workload(
        namespace="tide", name=name, queue="training", service_type="training", owner_kind=OwnerKind.JOB,
        template=_template(cards), replicas=pods, min_member=pods, priority_class="pc-low",
        evicted_policy=EvictedPolicy.RESTART_JOB, duration=life,
    )  # fmt: skip


def live(policy: str, *, hours: float = HOURS, seed: int = SEED) -> Report:
    """The day under one policy."""
    seconds = hours * 3600
    rng = random.Random(seed)
    held = (NodeCards(CARD, RESOURCE, CARDS_A_NODE),)
    nodes = [Node(name=f"node-{i:02}", cpu_milli=192_000, memory_mib=2_000_000, cards=held) for i in range(NODES)]
    queues = [
        Queue(name="inference", priority=80_000, reclaimable=False, card_quota={CARD: FLOOD * 1000},
              service_type="inference"),
        Queue(name="training", priority=20_000, reclaimable=True, card_quota={CARD: CARDS * 1000},
              service_type="training"),
    ]  # fmt: skip
    world = World(nodes, queues, PRIORITY_CLASSES, seed=seed, start=REPLAY_START, grace_seconds=GRACE)
    arrivals = Arrivals([*services(seconds, rng), *jobs(seconds, rng)])
    loop = SessionLoop(world, arrivals, parse_policy(policy), session_seconds=SESSION, seed=seed, reasons=False)
    metrics = Metrics(world)
    loop.observe(metrics)
    for _ in range(round(seconds / SESSION)):
        loop.step()
    report = metrics.report(sessions=loop.sessions, refused=loop.refused, seed=seed, scale=1.0)
    assert report.quota_violations == 0, "a queue held more than its quota"
    return report


@functools.cache
def day(name: str) -> Report:
    """The standard day under one of the two policies, lived once."""
    return live(POLICIES[name])


def _least(value: float | None) -> float:
    assert value is not None, "no service was promised anything"
    return value


# What A13 promises, with the unit and the target: shares of what the choice pod by pod loses, and seconds.
MEASURES: dict[str, tuple[str, float, Callable[[], float]]] = {
    "A13-work-lost": ("%", 50.0, lambda: 100 * day("ours").card_hours["lost"] / day("pod by pod").card_hours["lost"]),
    "A13-gangs-broken": ("%", 50.0, lambda: 100 * day("ours").gangs_broken / day("pod by pod").gangs_broken),
    "A13-promise-p99": ("s", SESSION, lambda: _least(day("ours").promise_s["inference"]["p99"])),
    "A13-running-p99": ("s", GRACE + 2 * SESSION, lambda: _least(day("ours").wait_s["inference"]["p99"])),
}


def measured(name: str) -> Callable[[], Callable[[], float]]:
    """For ``python -m bench``: one of the measures; the table is printed with the first of them."""

    def prepare() -> Callable[[], float]:
        def measure() -> float:
            value = MEASURES[name][2]()
            if name == next(iter(MEASURES)):
                print(table({policy: day(policy) for policy in POLICIES}), file=sys.stderr)
            return value

        return measure

    return prepare


def table(reports: dict[str, Report]) -> str:
    """The two days side by side."""
    rows: list[tuple[str, Callable[[Report], object]]] = [
        ("inference pods promised within, p50 / p99 s", lambda r: _pair(r.promise_s["inference"])),
        ("inference pods running within, p50 / p99 s", lambda r: _pair(r.wait_s["inference"])),
        ("training pods running within, p50 / p99 s", lambda r: _pair(r.wait_s["training"])),
        ("training pods evicted", lambda r: r.evictions.get("training", 0)),
        ("gangs broken", lambda r: r.gangs_broken),
        ("gangs partly there, sessions", lambda r: r.gangs_partial_steps),
        ("work lost, card hours", lambda r: round(r.card_hours["lost"], 1)),
        ("inference, card hours", lambda r: round(r.card_hours["inference"], 1)),
        ("training, card hours", lambda r: round(r.card_hours["training"], 1)),
        ("cards in use, mean", lambda r: f"{r.allocation[CARD]['mean']:.1%}"),
        ("quota violations", lambda r: r.quota_violations),
    ]
    lines = [f"{'':46}" + "".join(f"{name:>18}" for name in reports)]
    lines += [f"{label:46}" + "".join(f"{cell(r)!s:>18}" for r in reports.values()) for label, cell in rows]
    return "\n".join(lines)


def _pair(percentiles: dict[str, float | None]) -> str:
    return f"{percentiles['p50']} / {percentiles['p99']}"


def main(arguments: list[str] | None = None) -> int:
    """Live the day under both policies and print the table; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m bench.tide", description=__doc__.partition("\n")[0])
    parser.add_argument("--hours", type=float, default=HOURS)
    parser.add_argument("--seed", type=int, default=SEED)
    options = parser.parse_args(arguments)
    print(table({name: live(text, hours=options.hours, seed=options.seed) for name, text in POLICIES.items()}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
