"""A day of a trace through the scheduler: ``python -m scheduler_core replay``."""

import argparse
import contextlib
import math
import random
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import BinaryIO

import msgspec

from scheduler_core.model.errors import BadInput
from scheduler_core.model.policy import Policy
from scheduler_core.model.queue import PriorityClass, Queue
from scheduler_core.simulator.arrivals import draw_arrivals, make_workloads
from scheduler_core.simulator.clock import REPLAY_START
from scheduler_core.simulator.loop import SessionLoop
from scheduler_core.simulator.metrics import Metrics, Report
from scheduler_core.simulator.output import Progress, open_trace, show_progress, write_report
from scheduler_core.simulator.placement import PRIORITY_CLASSES, QueueDraw, queues_by_model
from scheduler_core.simulator.scenario import Arrivals
from scheduler_core.simulator.trace_writer import TraceWriter
from scheduler_core.simulator.traces.openb_nodes import read_nodes
from scheduler_core.simulator.traces.openb_pods import read_pods
from scheduler_core.simulator.traces.tide_curve import read_tide
from scheduler_core.simulator.world import World

_HOUR = 3600.0


class ReplayOptions(msgspec.Struct, frozen=True, kw_only=True):
    nodes: Path
    pods: Path
    tide: Path | None = None
    gang_size: int = 1
    hours: float = 24.0
    scale: float = 1.0
    session_seconds: float = 10.0
    grace_seconds: float = 30.0
    seed: int = 42

    def check(self) -> None:
        """Refuse numbers that mean nothing. Raises BadInput: ``bad_argument`` with the option."""
        for name, value, least, strict in (
            ("gang-size", self.gang_size, 1, False),
            ("hours", self.hours, 0, True),
            ("scale", self.scale, 0, True),
            ("session-seconds", self.session_seconds, 0, True),
            ("grace-seconds", self.grace_seconds, 0, False),
        ):
            if not math.isfinite(value) or value < least or (strict and value == least):
                hint = f"{'more than' if strict else 'at least'} {least}"
                raise BadInput("bad_argument", f"{value:g} is not {hint}", path=f"--{name}", value=value, hint=hint)


def replay(
    options: ReplayOptions, policy: Policy, *, queues: Iterable[Queue] | None = None,
    priority_classes: Iterable[PriorityClass] = (), trace: BinaryIO | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Report:  # fmt: skip
    """Run a replay from its first arrival to its last session.

    Args:
        queues: instead of one inference and one training queue for each card type.
        priority_classes: beside the four that every replay has.
        trace: where to write a line for each thing that happens to a pod. progress: called after each session.

    Raises:
        BadInput: an option, a line of a file or the queues cannot be used."""
    options.check()
    nodes, tasks = read_nodes(options.nodes), read_pods(options.pods)
    tide = read_tide(options.tide) if options.tide is not None else None
    seconds = options.hours * _HOUR
    if queues is None:
        queues = queues_by_model(nodes)
    queues = tuple(queues)
    rng = random.Random(options.seed)
    arrivals = draw_arrivals(tasks, scale=options.scale, seconds=seconds, tide=tide, rng=rng)
    workloads = make_workloads(
        arrivals, QueueDraw(nodes, queues, tasks, rng), gang_size=options.gang_size, start=REPLAY_START
    )
    classes = {item.name: item for item in (*PRIORITY_CLASSES, *priority_classes)}
    world = World(
        nodes, queues, classes.values(), seed=options.seed, start=REPLAY_START, grace_seconds=options.grace_seconds
    )
    loop = SessionLoop(
        world, Arrivals(workloads), policy, session_seconds=options.session_seconds, seed=options.seed, reasons=False
    )
    metrics = Metrics(world)
    loop.observe(metrics)
    if trace is not None:
        loop.observe(TraceWriter(world, trace))
    sessions = max(1, round(seconds / options.session_seconds))
    for session in range(1, sessions + 1):
        loop.step()
        if progress is not None:
            progress(Progress(session, sessions, world.t - REPLAY_START, metrics.reclaims))
    return metrics.report(sessions=loop.sessions, refused=loop.refused, seed=options.seed, scale=options.scale)


def main(options: argparse.Namespace) -> int:
    """The command: the options of the command line, with ``policy`` and ``queue_objects`` read already. Raises
    BadInput: anything in the input that cannot be used."""
    chosen = ReplayOptions(
        nodes=Path(options.nodes), pods=Path(options.pods), tide=Path(options.tide) if options.tide else None,
        gang_size=options.gang_size, hours=options.hours, scale=options.scale, session_seconds=options.session_seconds,
        grace_seconds=options.grace_seconds, seed=options.seed,
    )  # fmt: skip
    with contextlib.ExitStack() as stack:
        trace = stack.enter_context(open_trace(options.trace)) if options.trace else None
        progress = stack.enter_context(show_progress())
        report = replay(chosen, options.policy, queues=options.queue_objects, trace=trace, progress=progress)
    write_report(report, as_json=options.output == "json", out=options.out)
    return 0
