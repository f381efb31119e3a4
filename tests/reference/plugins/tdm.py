"""tdm: machines that are lent at certain hours."""

from __future__ import annotations

import re
from datetime import datetime
from zoneinfo import ZoneInfo

from tests.reference.world import count, members

ZONE, PREEMPTABLE = "volcano.sh/revocable-zone", "volcano.sh/preemptable"
UNITS = {"h": 3600, "m": 60, "s": 1}


class Tdm:
    """Zones that open and close."""

    def __init__(self, arguments):
        self.windows = arguments.get("tdm.revocable-zone.<zone>", {})
        self.clock = ZoneInfo(arguments.get("tdm.timezone", "UTC"))
        period = arguments.get("tdm.evict.period", "1m")
        self.period = sum(int(number) * UNITS[unit] for number, unit in re.findall(r"(\d+)([hms])", period))

    def _open(self, world, zone):
        at = datetime.fromtimestamp(world["now"], self.clock)
        begin, end = self.windows[zone].split("-")
        minute = at.hour * 60 + at.minute
        begin, end = (int(part.split(":")[0]) * 60 + int(part.split(":")[1]) for part in (begin, end))
        return begin <= minute < end if begin < end else minute >= begin or minute < end

    def _zone(self, world, name):
        return world["nodes"][name].labels.get(ZONE, "")

    def filter(self, world, task, name):
        zone = self._zone(world, name)
        return not zone or (_revocable(task) and zone in self.windows and self._open(world, zone))

    def score(self, world, task, name):
        zone = self._zone(world, name)
        lent = zone in self.windows and self._open(world, zone)
        return 100.0 if lent and _revocable(task) else 0.0

    def gang_order(self, world, gang):
        return (world["gangs"][gang].preemptable is True,)

    def starving(self, world, gang):
        return world["gangs"][gang].preemptable is not True and bool(members(world, gang, "pending"))

    def preemptable(self, world, task, candidates):
        if task["pod"].preemptable is not False or _revocable(task):
            return set()
        fit = [
            other
            for other in candidates
            if other["status"] == "running"
            and other["pod"].preemptable is not False
            and not (other["node"] and self._zone(world, other["node"]))
        ]
        return {other["key"] for other in _within(world, fit)}

    def victim_tasks(self, world, candidates):
        found = set()
        for zone in sorted(self.windows):
            last = world["acted"].get(f"tdm/{zone}")
            if self._open(world, zone) or (last is not None and last + self.period > world["now"]):
                continue
            there = [
                task
                for task in candidates
                if task["node"] and self._zone(world, task["node"]) == zone and task["pod"].preemptable is not False
            ]
            found |= {task["key"] for task in _within(world, there)}
            if there:
                world["acted"][f"tdm/{zone}"] = world["now"]
        return found


def _within(world, candidates):
    """The first of each gang, as many as may be missing."""
    gone, chosen = {}, []
    for task in candidates:
        gang = task["gang"]
        if gone.get(gang, 0) < _may_go(world, gang):
            gone[gang] = gone.get(gang, 0) + 1
            chosen.append(task)
    return chosen


def _may_go(world, gang):
    notes = world["gangs"][gang].annotations
    most, least = notes.get("volcano.sh/jdb-max-unavailable"), notes.get("volcano.sh/jdb-min-available")
    total, running = len(members(world, gang)), count(world, gang, ("running",))
    text = most or least
    if not text:
        return 1
    part = re.fullmatch(r"(\d+)(%?)", text.strip())
    if part is None:
        return 1
    number = int(part[1])
    if part[2]:
        number = (number * total + 99) // 100
    if most:
        missing = total - count(world, gang, ("succeeded", "failed")) - running
        return max(0, number - missing)
    return max(0, running - number)


def _revocable(task):
    pod = task["pod"]
    zone = pod.annotations.get(ZONE, pod.labels.get(ZONE))
    if zone is not None:
        return zone == "*"
    return pod.annotations.get(PREEMPTABLE, pod.labels.get(PREEMPTABLE)) == "true"
