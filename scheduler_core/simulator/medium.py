"""The medium demo: the demo's day, and beside it a hall of 940 nodes on which 10,000 pods run when it begins. Drawn
from the seed. What the hall runs moves little: a tenth of its services follow the tide, most of its training runs for
days, and a gang that has ended is followed by another one. As in the demo, a stored world needs nothing beside it."""

import random
from collections.abc import Iterator

import msgspec

from scheduler_core.model.podgroup import EvictedPolicy, GangCondition, GangPhase
from scheduler_core.model.resources import MILLI
from scheduler_core.simulator.demo import (
    DAY,
    HOUR,
    MIDNIGHT,
    START,
    STEP,
    TTL_SECONDS,
    DemoScenario,
    lap_of,
    tide_level,
)
from scheduler_core.simulator.demo_nodes import GPU, demo_nodes
from scheduler_core.simulator.demo_tenancy import PRIORITY_CLASSES, DemoQueue
from scheduler_core.simulator.demo_tenancy import QUEUES as DEMO_QUEUES
from scheduler_core.simulator.errors import Refusal, WorldError
from scheduler_core.simulator.medium_nodes import hall_cards, hall_nodes, resource_of
from scheduler_core.simulator.medium_tenancy import queues
from scheduler_core.simulator.workload import OwnerKind, PodTemplate, Workload
from scheduler_core.simulator.world import World

PODS = 10_000
# Of a queue's quota its gangs hold at most so much when it begins.
_FILLED_PERCENT = {"inference": 62, "training": 38}
_TIDAL_SHARE = 0.1
# How much of its size at the beginning a tidal service grows or shrinks by, at the full range of the tide.
_SWING = 0.6
_SLOT_LABEL, _TIDAL_LABEL = "tidesched.io/demo-slot", "tidesched.io/demo-size"
_SMALL_BOARDS = ("NVIDIA-A10", "NVIDIA-A40", "NVIDIA-L20", "NVIDIA-L40", "NVIDIA-L40S", "NVIDIA-T4", "NVIDIA-V100")
# Milli-cards of a pod, with weights.
_SLICES = ((MILLI, 1),)
_SIZES = {
    ("small", "inference"): ((250, 3), (500, 2)),
    ("small", "training"): ((500, 3), (MILLI, 1)),
    ("large", "inference"): ((500, 5), (MILLI, 4), (2 * MILLI, 1)),
    ("large", "training"): ((MILLI, 4), (2 * MILLI, 1)),
}
# What a scheduler has written to a gang that runs: without it the first session would write to each of them.
_SCHEDULED = GangCondition(type="Scheduled", reason="tasks in gang are ready to be scheduled")
_MEMBERS = {"inference": (2, 3, 4, 6, 8), "training": (2, 4, 4, 8)}


class _Gang(msgspec.Struct, frozen=True):
    """What one place in a queue runs, life after life."""

    queue: str
    namespace: str
    service_type: str
    slot: int
    card: str
    milli: int
    members: int

    @property
    def name(self) -> str:
        kind = "serve" if self.service_type == "inference" else "train"
        return f"{kind}-{self.slot:02d}"


def medium_world(seed: int) -> World:
    """The medium demo's cluster at its first moment, with 10,000 pods that run already."""
    described = (*DEMO_QUEUES, *queues())
    nodes = (*demo_nodes(), *hall_nodes())
    world = World(nodes, (queue.to_model() for queue in described), PRIORITY_CLASSES, seed=seed, start=START - HOUR)
    gangs = tuple(drawn(seed))
    for gang in gangs:
        world.submit(_workload(gang, world.t, seed, first=True))
        world.set_group_status(f"{gang.namespace}/{_first_name(gang)}", GangPhase.INQUEUE)
    world.advance(world.t + world.controller_delay)
    _place(world)
    world.advance(world.t + 2 * world.start_delay)
    for key in list(world.pod_groups):
        world.set_group_status(key, GangPhase.RUNNING, (_SCHEDULED,))
    world.advance(START)
    return world


def drawn(seed: int) -> Iterator[_Gang]:
    """The gangs of the hall: one after the other for each queue in turn, until 10,000 pods are there. Raises
    ValueError: the quotas of the hall do not hold so many."""
    rng = random.Random(f"{seed}/hall")
    left = {
        (queue.name, card): count * MILLI * _FILLED_PERCENT[queue.service_type] // 100
        for queue in queues()
        for card, count in queue.card_quota.items()
    }
    open_queues, pods, slot = list(queues()), 0, 0
    while open_queues:
        slot += 1
        for queue in list(open_queues):
            gang = _next_gang(queue, slot, left, rng, PODS - pods)
            if gang is None:
                open_queues.remove(queue)
                continue
            left[queue.name, gang.card] -= gang.members * gang.milli
            pods += gang.members
            yield gang
            if pods == PODS:
                return
    raise ValueError(f"the hall's quotas hold {pods} pods of {PODS}")


def _next_gang(
    queue: DemoQueue, slot: int, left: dict[tuple[str, str], int], rng: random.Random, most: int
) -> _Gang | None:
    """Another gang of a queue, on the card type of which it has most left; None where it is full."""
    card = max(sorted(queue.card_quota), key=lambda name: left[queue.name, name])
    room = left[queue.name, card]
    choices = _sizes(card, queue.service_type)
    milli = rng.choices([size for size, _ in choices], [weight for _, weight in choices])[0]
    if room < milli:
        milli = min(size for size, _ in choices)
    members = min(rng.choice(_MEMBERS[queue.service_type]), room // milli, most)
    if members < 1:
        return None
    return _Gang(queue.name, queue.namespaces[0], queue.service_type, slot, card, milli, members)


def _sizes(card: str, kind: str) -> tuple[tuple[int, int], ...]:
    if resource_of(card) != GPU:
        return _SLICES
    return _SIZES["small" if card in _SMALL_BOARDS else "large", kind]


def _first_name(gang: _Gang) -> str:
    return gang.name if gang.service_type == "inference" else f"{gang.name}-lap0"


def _workload(gang: _Gang, now: float, seed: int, *, first: bool = False) -> Workload:
    """A gang as it is handed in at ``now``; ``first``: one that runs when the demo begins, of any age."""
    rng = random.Random(f"{seed}/{gang.namespace}/{gang.name}/{0 if first else now:.0f}")
    template = PodTemplate(
        cpu_milli=4 * gang.milli if resource_of(gang.card) == GPU else gang.milli,
        memory_mib=(32 if resource_of(gang.card) == GPU else 8) * 1024 * gang.milli // MILLI,
        card_names=(gang.card,),
        resource=resource_of(gang.card) if gang.milli % MILLI == 0 else "",
        card_milli=gang.milli,
    )
    if gang.service_type == "inference":
        tidal = rng.random() < _TIDAL_SHARE
        return Workload(
            namespace=gang.namespace, name=gang.name, queue=gang.queue, service_type="inference",
            owner_kind=OwnerKind.REPLICA_SET, template=template, replicas=gang.members, priority_class="pc-high",
            submitted=now - rng.uniform(1, 80) * DAY, labels={_TIDAL_LABEL: str(gang.members)} if tidal else {},
        )  # fmt: skip
    # Most of it runs for days: one in seven is a short run.
    days = rng.uniform(0.1, 0.5) if rng.random() < 1 / 7 else rng.uniform(2, 9)
    return Workload(
        namespace=gang.namespace,
        name=_first_name(gang) if first else f"{gang.name}-lap{lap_of(now)}-{int((now - MIDNIGHT) % DAY // STEP):03d}",
        queue=gang.queue,
        service_type="training",
        owner_kind=OwnerKind.JOB,
        template=template,
        replicas=gang.members,
        min_member=gang.members,
        priority_class="pc-low",
        evicted_policy=EvictedPolicy.RESTART_JOB,
        duration=days * DAY * (rng.random() if first else 1.0) + HOUR,
        ttl_seconds=TTL_SECONDS,
        submitted=now - rng.random() * DAY if first else now,
        labels={_SLOT_LABEL: str(gang.slot)},
    )


def _place(world: World) -> None:
    """Bind the pods that were made, each to the next node of the hall that has its card type and room."""
    by_card: dict[str, list[str]] = {card: [] for card in hall_cards()}
    for node in hall_nodes():
        for group in node.cards:
            by_card[group.card].append(node.name)
    at = dict.fromkeys(by_card, 0)
    # The largest first, so that what is cut small fills what they leave.
    for pod in sorted(world.pods.values(), key=lambda pod: (-(pod.card.milli if pod.card else 0), pod.key)):
        assert pod.card is not None
        card = pod.card.names[0]
        names = by_card[card]
        for step in range(len(names)):
            try:
                world.bind(pod.key, names[(at[card] + step) % len(names)], card)
            except WorldError as error:
                if error.code is not Refusal.NODE_FULL:
                    raise
                continue
            at[card] = (at[card] + step) % len(names)
            break
        else:
            raise ValueError(f"no node of the hall has room for {pod.key}")


class MediumScenario:
    """The demo's scenario on its own part of the cluster, and what moves in the hall, in the same steps."""

    def __init__(self, world: World, *, seed: int) -> None:
        self._demo = DemoScenario(world, seed=seed)
        self._seed = seed
        self._training = [gang for gang in drawn(seed) if gang.service_type == "training"]

    @property
    def next_time(self) -> float | None:
        """The next moment of action; there always is one."""
        return self._demo.next_time

    def act(self, world: World) -> None:
        """What the demo does; then tidal services follow the tide and places that are empty get another gang."""
        self._demo.act(world)
        change = tide_level(world.t, seed=self._seed) - tide_level(START, seed=self._seed)
        taken = set()
        for state in list(world.workloads.values()):
            workload = state.workload
            if size := workload.labels.get(_TIDAL_LABEL):
                wanted = max(1, round(int(size) * (1 + _SWING * change)))
                if wanted != workload.replicas:
                    world.scale(workload.namespace, workload.name, wanted)
            elif (slot := workload.labels.get(_SLOT_LABEL)) and not state.phase.ended:
                taken.add((workload.queue, int(slot)))
        for gang in self._training:
            if (gang.queue, gang.slot) not in taken:
                world.submit(_workload(gang, world.t, self._seed))
