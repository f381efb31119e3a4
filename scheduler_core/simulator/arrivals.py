"""From the tasks of a trace to workloads that arrive in a replay.

* Number: ``scale`` times as many tasks. The trace itself is taken whole as often as it fits, the rest is drawn from it
  without repetition; a copy arrives at a moment of its own, drawn from the trace's arrivals.
* Time: stretches without an arrival are cut to :data:`LONGEST_LULL`, then the span is compressed to the replay's
  hours. Lives are not compressed, as grace and sessions are not either; they end with the replay at the latest.
* Tide: inference arrivals keep their order and follow the curve instead. Each one gets a level drawn below the tide at
  its arrival, and leaves when the tide is below that level, if its own life has not ended before: so what runs
  follows the curve up and down.
* Gangs: training tasks of one queue and one shape form gangs in the order of arrival. A gang arrives with its first
  member and works as long as its longest."""

import itertools
import random

import msgspec

from scheduler_core.model.podgroup import EvictedPolicy
from scheduler_core.model.resources import MILLI
from scheduler_core.simulator.placement import Assignment, QueueDraw
from scheduler_core.simulator.traces.openb_nodes import GPU_RESOURCE
from scheduler_core.simulator.traces.openb_pods import TraceTask
from scheduler_core.simulator.traces.tide_curve import TideCurve
from scheduler_core.simulator.workload import OwnerKind, PodTemplate, Workload

NAMESPACE = "replay"
LONGEST_LULL = 3600.0


class Arrival(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One task in the replay: when it comes (seconds from the start) and how long it works."""

    task: TraceTask
    name: str
    at: float
    life: float


def draw_arrivals(
    tasks: tuple[TraceTask, ...], *, scale: float, seconds: float, tide: TideCurve | None, rng: random.Random
) -> list[Arrival]:
    """The tasks that arrive within ``seconds``, by time and name. O(n log n)."""
    shares = _shares([task.created for task in tasks])
    count = max(1, round(len(tasks) * scale))
    drawn: list[tuple[float, str, TraceTask]] = []
    copy = 0
    while len(drawn) < count:
        missing = count - len(drawn)
        picked = range(len(tasks)) if missing >= len(tasks) else sorted(rng.sample(range(len(tasks)), missing))
        for i in picked:
            share = shares[i] if copy == 0 else _between(shares, rng.random())
            drawn.append((share, f"{tasks[i].name}-{copy}" if copy else tasks[i].name, tasks[i]))
        copy += 1
    drawn.sort(key=lambda item: item[:2])
    if tide is None:
        return [
            Arrival(task=task, name=name, at=share * seconds, life=min(task.life, seconds))
            for share, name, task in drawn
        ]
    return _with_tide(drawn, seconds, tide, rng)


def _with_tide(
    drawn: list[tuple[float, str, TraceTask]], seconds: float, tide: TideCurve, rng: random.Random
) -> list[Arrival]:
    total = sum(task.service_type == "inference" for _, _, task in drawn)
    arrivals, seen = [], 0
    for share, name, task in drawn:
        life = min(task.life, seconds)
        if task.service_type == "inference":
            share = tide.arrival((seen + 0.5) / total)  # noqa: PLW2901 - the tide moves the arrival
            seen += 1
            ebb = tide.ebb(share, rng.random() * tide.level(share))
            if ebb is not None:
                life = max(1.0, min(life, (ebb - share) * seconds))
        arrivals.append(Arrival(task=task, name=name, at=share * seconds, life=life))
    arrivals.sort(key=lambda arrival: (arrival.at, arrival.name))
    return arrivals


def _shares(times: list[float]) -> list[float]:
    """Ascending trace times as shares of the span, lulls cut."""
    at, places = 0.0, [0.0]
    for earlier, later in itertools.pairwise(times):
        at += min(later - earlier, LONGEST_LULL)
        places.append(at)
    return [place / at if at else 0.0 for place in places]


def _between(shares: list[float], quantile: float) -> float:
    position = quantile * (len(shares) - 1)
    index = int(position)
    after = shares[min(index + 1, len(shares) - 1)]
    return shares[index] + (after - shares[index]) * (position - index)


def make_workloads(
    arrivals: list[Arrival], draw: QueueDraw, *, gang_size: int, start: float
) -> list[tuple[float, Workload]]:
    """Services of one pod for inference, gangs of ``gang_size`` for training, each with its time of arrival. Training
    tasks that are left over at the end form smaller gangs."""
    services: list[tuple[float, Workload]] = []
    gangs: list[tuple[Assignment, list[Arrival]]] = []
    open_gangs: dict[tuple[object, ...], list[Arrival]] = {}
    for arrival in arrivals:
        task, assignment = arrival.task, draw.draw(arrival.task)
        if task.service_type == "inference":
            services.append((start + arrival.at, _service(arrival, assignment)))
            continue
        shape = (assignment, task.priority_class, task.cpu_milli, task.memory_mib, task.card_milli)
        members = open_gangs.get(shape)
        if members is None:
            members = open_gangs[shape] = []
            gangs.append((assignment, members))
        members.append(arrival)
        if len(members) == gang_size:
            del open_gangs[shape]
    return services + [(start + members[0].at, _gang(members, assignment)) for assignment, members in gangs]


def _template(task: TraceTask, assignment: Assignment) -> PodTemplate:
    whole = task.card_milli % MILLI == 0
    return PodTemplate(
        cpu_milli=task.cpu_milli, memory_mib=task.memory_mib, card_names=assignment.cards,
        resource=GPU_RESOURCE if task.card_milli and whole else "", card_milli=task.card_milli,
    )  # fmt: skip


def _service(arrival: Arrival, assignment: Assignment) -> Workload:
    return Workload(
        namespace=NAMESPACE, name=arrival.name, queue=assignment.queue, service_type="inference",
        owner_kind=OwnerKind.REPLICA_SET, template=_template(arrival.task, assignment),
        priority_class=arrival.task.priority_class, duration=arrival.life,
    )  # fmt: skip


def _gang(members: list[Arrival], assignment: Assignment) -> Workload:
    task = members[0].task
    return Workload(
        namespace=NAMESPACE,
        name=members[0].name,
        queue=assignment.queue,
        service_type="training",
        owner_kind=OwnerKind.JOB,
        template=_template(task, assignment),
        replicas=len(members),
        min_member=len(members),
        priority_class=task.priority_class,
        evicted_policy=EvictedPolicy.RESTART_JOB,
        duration=max(member.life for member in members),
    )
