"""The demo's day: inference follows a tide, training fills what it leaves, lap after lap. Everything is a function of
the seed, the time and the state of the world, so a world that was stored needs nothing beside it to go on. One lap is a
day of virtual time; names carry its number."""

import itertools
import math
import random
import zlib

from scheduler_core.model.podgroup import EvictedPolicy
from scheduler_core.simulator.demo_nodes import demo_nodes
from scheduler_core.simulator.demo_oddities import ODDITIES, ODDITY_LABEL, Oddity
from scheduler_core.simulator.demo_tenancy import PRIORITY_CLASSES, QUEUES
from scheduler_core.simulator.demo_workloads import SERVICES, TRAINING, DemoService, DemoTraining, template
from scheduler_core.simulator.workload import OwnerKind, Workload, WorkloadPhase, WorkloadState
from scheduler_core.simulator.world import World

HOUR, DAY = 3600.0, 86_400.0
# 06:30 on a Monday, shortly before the morning rise: 2026-03-02T06:30:00Z.
START = 1772433000.0
MIDNIGHT = START - 6.5 * HOUR
STEP = 300.0
# So many gangs of each training queue wait at most; with fewer, another one is handed in.
BACKLOG = 3
TTL_SECONDS = 1800.0
# What has not run for so long is taken back by its owner.
PATIENCE = 20 * HOUR
# The common tide: hour of the day and share of the peak.
_TIDE = (
    (0.0, 0.38), (2.0, 0.2), (4.5, 0.12), (6.5, 0.2), (8.0, 0.5), (9.5, 0.85), (11.0, 1.0), (12.5, 0.8), (14.0, 0.72),
    (16.0, 0.9), (18.0, 0.78), (20.0, 0.97), (21.5, 0.9), (23.0, 0.55), (24.0, 0.38),
)  # fmt: skip


def demo_world(seed: int) -> World:
    """The demo's cluster at its first moment, empty."""
    return World(demo_nodes(), (queue.to_model() for queue in QUEUES), PRIORITY_CLASSES, seed=seed, start=START)


def lap_of(time: float) -> int:
    """The number of the day, from 1; the first one is short."""
    return int((time - MIDNIGHT) // DAY) + 1


def tide_level(time: float, *, seed: int, lead: float = 0.0) -> float:
    """Share of the peak at ``time``, 0 to about 1.1: the common tide, another height each day, and small waves."""
    hours = (time - MIDNIGHT) / HOUR + lead
    hour = hours % 24.0
    for (h0, v0), (h1, v1) in itertools.pairwise(_TIDE):
        if h0 <= hour <= h1:
            level = v0 + (v1 - v0) * (hour - h0) / (h1 - h0)
            break
    day = int(hours // 24)
    height = 0.9 + 0.18 * _draw(seed, "day", day)
    wave = 0.04 * math.sin(hours * 2.1 + seed) + 0.03 * math.sin(hours * 5.3 + lead)
    return max(0.0, level * height + wave)


def _draw(seed: int, *what: object) -> float:
    """A number in [0, 1) that belongs to ``what``."""
    return zlib.crc32(repr((seed, what)).encode()) / 2**32


class DemoScenario:
    """Acts every :data:`STEP` seconds of virtual time. ``world``: where it acts; a stored one goes on where it was."""

    def __init__(self, world: World, *, seed: int) -> None:
        self._seed = seed
        self._step = max(0, math.ceil((world.t - START) / STEP))

    @property
    def next_time(self) -> float | None:
        return START + self._step * STEP

    def act(self, world: World) -> None:
        """Scale the services, hand in training where little waits, take back what waited too long."""
        self._step += 1
        for service in SERVICES:
            self._follow(world, service)
        self._give_up(world)
        self._fill(world)
        for oddity in ODDITIES:
            self._stumble(world, oddity)

    def _follow(self, world: World, service: DemoService) -> None:
        level = tide_level(world.t, seed=self._seed, lead=service.lead)
        wanted = max(service.floor, round(service.peak * level))
        state = world.workloads.get(f"{service.queue}/{service.name}")
        if state is None:
            world.submit(
                Workload(
                    namespace=service.queue, name=service.name, queue=service.queue, service_type="inference",
                    owner_kind=OwnerKind.REPLICA_SET, template=template(service.cards, service.milli), replicas=wanted,
                    priority_class=service.priority_class,
                )
            )  # fmt: skip
        elif abs(wanted - state.workload.replicas) >= max(1, service.peak // 12) or wanted == service.floor:
            # An autoscaler's dead band: small waves do not move big services.
            world.scale(service.queue, service.name, wanted)

    def _give_up(self, world: World) -> None:
        for key, state in list(world.workloads.items()):
            group = world.pod_groups.get(key)
            if group is not None and _waits(state) and world.t - group.created > PATIENCE:
                world.delete_workload(state.workload.namespace, state.workload.name)

    def _stumble(self, world: World, oddity: Oddity) -> None:
        workload = oddity.workload(lap_of(world.t))
        due = oddity.begin <= (world.t - MIDNIGHT) % DAY / HOUR < oddity.end
        if due and workload.key not in world.workloads:
            world.submit(workload)
        elif not due and workload.key in world.workloads:
            world.delete_workload(workload.namespace, workload.name)

    def _fill(self, world: World) -> None:
        waiting: dict[str, int] = {}
        for state in world.workloads.values():
            if _waits(state):
                waiting[state.workload.queue] = waiting.get(state.workload.queue, 0) + 1
        rng = random.Random(f"{self._seed}/{world.t:.0f}")
        for queue in QUEUES:
            if queue.service_type != "training":
                continue
            kinds = [kind for kind in TRAINING if kind.queue == queue.name]
            for index in range(BACKLOG - waiting.get(queue.name, 0)):
                kind = rng.choices(kinds, [kind.weight for kind in kinds])[0]
                gang = self._gang(world.t, kind, queue.namespaces[0], index, rng)
                if gang.key not in world.workloads:
                    world.submit(gang)

    def _gang(self, now: float, kind: DemoTraining, namespace: str, index: int, rng: random.Random) -> Workload:
        members = rng.choice(kind.members)
        low, high = kind.hours
        # Short runs are many, long ones few.
        hours = low * (high / low) ** (rng.random() ** 1.5)
        tick = int((now - MIDNIGHT) % DAY // STEP)
        return Workload(
            namespace=namespace,
            name=f"{kind.name}-lap{lap_of(now)}-{tick:03d}{'abc'[index]}",
            queue=kind.queue,
            service_type="training",
            owner_kind=OwnerKind.JOB,
            template=template(kind.cards, kind.milli),
            replicas=members,
            min_member=members,
            priority_class=kind.priority_class,
            evicted_policy=EvictedPolicy.ABORT_JOB if kind.aborts else EvictedPolicy.RESTART_JOB,
            duration=hours * HOUR,
            ttl_seconds=TTL_SECONDS,
        )


def _waits(state: WorkloadState) -> bool:
    return (
        state.workload.owner_kind is OwnerKind.JOB
        and state.phase in (WorkloadPhase.PENDING, WorkloadPhase.RESTARTING)
        and ODDITY_LABEL not in state.workload.labels
    )
