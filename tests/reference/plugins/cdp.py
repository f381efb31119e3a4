"""cdp: who was just placed is left alone."""

from __future__ import annotations

import re

COOLDOWN = "volcano.sh/cooldown-time"
UNITS = {"h": 3600, "m": 60, "s": 1}


class Cdp:
    """No victims that cool down."""

    def __init__(self, arguments):
        pass

    def preemptable(self, world, task, candidates):
        return {other["key"] for other in candidates if not _cools(other["pod"], world["now"])}

    reclaimable = preemptable
    unified_evictable = preemptable


def _cools(pod, now):
    text = pod.annotations.get(COOLDOWN) or pod.labels.get(COOLDOWN) or ""
    seconds = sum(int(number) * UNITS[unit] for number, unit in re.findall(r"(\d+)([hms])", text))
    placed = pod.scheduled if pod.scheduled is not None else pod.started if pod.started is not None else pod.created
    return now < placed + seconds
