import re
from collections.abc import Collection, Mapping
from typing import Any


def reason_within_sight(
    numbers: Mapping[str, Any], message: str, queue_names: Collection[str] | None
) -> tuple[dict[str, Any], str]:
    """Without the names of gangs in other tenants' queues; the amounts stay. None sees everything."""
    shown = dict(numbers)
    holders = numbers.get("holders")
    if queue_names is None or not holders:
        return shown, message
    shown["holders"] = []
    for holder in holders:
        if holder.get("queue") in queue_names:
            shown["holders"].append(holder)
            continue
        shown["holders"].append({**holder, "gang": None, "queue": None})
        for name in (holder.get("gang"), holder.get("queue")):
            if name:
                message = re.sub(rf"(?<![\w./-]){re.escape(name)}(?![\w/-])", "another tenant's", message)
    return shown, message


# What a gang asks for and what is wrong with how it is written: its owner knows both. Other figures are the queue's.
_OF_THE_GANG = ("resource", "requested", "field")
_AS_WRITTEN = frozenset(
    {"Suspended", "Misconfigured", "NotSupported", "TimedOut", "NoMatchingCard", "GangIncomplete", "NotAllowedInQueue"}
)


def shown_reason(
    code: str, numbers: Mapping[str, Any], message: str, *, own_queue: bool, queue_names: Collection[str] | None
) -> tuple[dict[str, Any], str]:
    """Not ``own_queue``: how much a queue of another tenant may use, uses and has promised is not for the reader."""
    if own_queue:
        return reason_within_sight(numbers, message, queue_names)
    shown = {name: value for name, value in numbers.items() if name in _OF_THE_GANG}
    return shown, message if code in _AS_WRITTEN else ""


def shown_remedy(
    remedy: Mapping[str, Any],
    cluster_id: int,
    queue_names: Collection[str] | None,
    own_gangs: Collection[tuple[int, str]],
) -> dict[str, Any]:
    shown = dict(remedy)
    if queue_names is None:
        return shown
    if remedy.get("queue") and remedy["queue"] not in queue_names:
        shown |= {"queue": None, "by": None}
    if remedy.get("gang") and (cluster_id, remedy["gang"]) not in own_gangs:
        shown |= {"gang": None}
    return shown
