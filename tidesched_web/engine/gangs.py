import datetime as dt
from collections.abc import Mapping

from scheduler_core.model.same_gang import goes_on, lasting_name
from scheduler_core.serde.kubernetes.pod import named_group
from tidesched_web.engine.model import Memory, Pod

__all__ = ["goes_on", "lasting_name"]


def spared_until(memory: Memory | None, now: dt.datetime) -> dict[str, float]:
    """Until when (seconds since the epoch) each gang is no victim, by its key or its lasting name."""
    if memory is None:
        return {}
    return {rest.gang: rest.until for rest in memory.spared if rest.until > now.timestamp()}


def gang_named(namespace: str, labels: Mapping[str, str], annotations: Mapping[str, str]) -> str:
    name = named_group(labels, annotations)
    return f"{namespace}/{name}" if name else ""


def gang_of(pod: Pod) -> str:
    """The gang as the snapshot has it; for a pod of another scheduler the one that it names; empty for none."""
    return pod.group_key or gang_named(pod.namespace, pod.labels, pod.annotations)
