"""Tasks of the openb trace.
``name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time``, times
in seconds. Source: Alibaba cluster-trace-gpu-v2023, published with the FGD paper (USENIX ATC 2023)."""

from pathlib import Path

import msgspec

from scheduler_core.model.errors import BadInput
from scheduler_core.model.resources import MILLI
from scheduler_core.simulator.traces.table import Row, read_rows

_COLUMNS = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")
# Several published workloads say no more: any card will do, batch work is there from the start and stays.
_DEFAULTS = {
    "gpu_spec": "", "qos": "BE", "creation_time": "0", "deletion_time": str(10 * 365 * 24 * 3600), "scheduled_time": "",
}  # fmt: skip
# Latency-sensitive and guaranteed tasks serve requests; best-effort and burstable ones are batch work.
SERVICE_TYPES = {"LS": "inference", "Guaranteed": "inference", "BE": "training", "Burstable": "training"}
PRIORITY_CLASSES = {"Guaranteed": "pc-high", "LS": "pc-medium", "Burstable": "pc-normal", "BE": "pc-low"}


class TraceTask(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One task of the trace. ``card_milli``: milli-cards in all, 0 for none; below 1000 a share of one card.
    ``models``: card types that will do, in the order of the file, each once; empty = any. ``created``: trace seconds.
    ``life``: seconds from being scheduled (or made, where it never was) to its end."""

    name: str
    cpu_milli: int
    memory_mib: int
    card_milli: int
    models: tuple[str, ...]
    service_type: str
    priority_class: str
    created: float
    life: float


def read_pods(path: Path) -> tuple[TraceTask, ...]:
    """The tasks in the order of their arrival, then of their names. Raises BadInput: a broken line, an unknown ``qos``,
    a name that is there twice, or no task at all."""
    tasks: dict[str, TraceTask] = {}
    for row in read_rows(path, _COLUMNS, _DEFAULTS):
        task = _task(row)
        if task.name in tasks:
            raise row.error("name", "is there twice", hint="every task has a name of its own")
        tasks[task.name] = task
    if not tasks:
        raise BadInput("bad_csv", "no tasks", file=str(path), hint="one line for each task below the header")
    return tuple(sorted(tasks.values(), key=lambda task: (task.created, task.name)))


def _task(row: Row) -> TraceTask:
    name, qos = row.text("name"), row.text("qos")
    if not name:
        raise row.error("name", "is empty", hint="every task has a name")
    if qos not in SERVICE_TYPES:
        raise row.error("qos", "is not known", hint=f"one of {', '.join(SERVICE_TYPES)}")
    cards, milli = row.whole("num_gpu"), row.whole("gpu_milli")
    if cards and not 0 < milli <= MILLI:
        raise row.error("gpu_milli", "is not a part of a card", hint="1 to 1000; 1000 is a whole card")
    if cards > 1 and milli != MILLI:
        raise row.error("gpu_milli", f"is a share of {cards} cards", hint="a share is of one card")
    created, deleted = row.number("creation_time"), row.number("deletion_time")
    began = row.number("scheduled_time") if row.text("scheduled_time") else created
    if deleted < created:
        raise row.error("deletion_time", f"is before the creation at {created:g}", hint="a task ends after it was made")
    spec = row.text("gpu_spec")
    return TraceTask(
        name=name,
        cpu_milli=row.whole("cpu_milli"),
        memory_mib=row.whole("memory_mib"),
        card_milli=cards * milli,
        models=tuple(dict.fromkeys(part.strip() for part in spec.split("|") if part.strip())) if cards else (),
        service_type=SERVICE_TYPES[qos],
        priority_class=PRIORITY_CLASSES[qos],
        created=created,
        life=max(1.0, deleted - began),
    )
