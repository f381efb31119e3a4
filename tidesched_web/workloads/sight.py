"""What of a gang's reason a reader may see who does not see every queue."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any


def reason_within_sight(
    numbers: Mapping[str, Any], message: str, queue_names: Collection[str] | None
) -> tuple[dict[str, Any], str]:
    """Figures and sentence without the names of gangs in other tenants' queues; the amounts stay.

    ``queue_names`` are the reader's queues in that cluster; None sees everything.
    """
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
