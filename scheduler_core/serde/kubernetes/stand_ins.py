"""What stands for an object that cannot be read: as much of it as can be read without what is wrong.

A gang, pod or queue that stands in so has a problem, so that what depends on it waits and says why; it is no victim,
since nobody can say what it is worth. Of other kinds nothing stands in, as if the object were not there."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from scheduler_core.model.errors import BadInput
from scheduler_core.model.pod import Pod
from scheduler_core.model.queue import Queue
from scheduler_core.serde.kubernetes.decode import steps
from scheduler_core.serde.kubernetes.founding import FoundingRecord
from scheduler_core.serde.kubernetes.job import JobRecord
from scheduler_core.serde.kubernetes.pod import PodRecord
from scheduler_core.serde.kubernetes.podgroup import PodGroupRecord

# So many fields of one object are left out before it counts as unreadable as a whole.
_MOST_FIELDS = 20
_replace = msgspec.structs.replace


def stand_in(obj: Mapping[str, Any], error: BadInput, read: Callable[[object], Any]) -> Any:
    """What ``read`` makes of the object without the fields that it cannot read, with the first of them as its problem;
    None where nothing can stand in. ``error``: what was found first, with the path below the object."""
    problem = f"{(error.path or '').lstrip('.')}: {error.message}".removeprefix(": ")
    for _ in range(_MOST_FIELDS):
        smaller = _without(obj, steps(error.path or ""))
        if smaller is None:
            return None
        obj = smaller
        try:
            record = read(obj)
        except BadInput as another:
            error = another
        else:
            return _with_problem(record, problem)
    return None


def _without(value: Any, place: list[str | int]) -> Any:
    """A copy without what is at the place, or without the deepest part of it that is there; None = nothing is left."""
    if not place:
        return None
    step, *rest = place
    if isinstance(value, Mapping) and step in value:
        inner = _without(value[step], rest)
        return {key: inner if key == step else item for key, item in value.items() if key != step or inner is not None}
    if isinstance(value, list) and isinstance(step, int) and step < len(value):
        inner = _without(value[step], rest)
        return [*value[:step], *([] if inner is None else [inner]), *value[step + 1 :]]
    return None


def _with_problem(record: Any, problem: str) -> Any:
    match record:
        case PodRecord(pod=pod):
            # What it needs is not known, so nothing of it counts; the builder closes its node.
            bare = Pod(
                namespace=pod.namespace, name=pod.name, uid=pod.uid, node=pod.node, phase=pod.phase, group=pod.group,
                scheduler=pod.scheduler, owner=pod.owner, deleted=pod.deleted, preemptable=False,
            )  # fmt: skip
            return _replace(record, problem=problem, pod=bare, devices={}, names=(), share=0)
        case PodGroupRecord():
            return _replace(record, group=_replace(record.group, problem=problem, preemptable=False))
        case Queue():
            return Queue(name=record.name, parent=record.parent, problem=problem, reclaimable=False)
        case JobRecord():
            return _replace(record, unreadable=problem)
        case FoundingRecord():
            return _replace(record, group=_with_problem(record.group, problem))
    return None
