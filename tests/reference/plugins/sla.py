"""sla: gangs that have waited for as long as they may."""

from __future__ import annotations

import math

from tests.reference.world import waiting_since

KEYS = ("volcano.sh/sla-waiting-time", "sla-waiting-time")
UNITS = {"s": 1, "m": 60, "h": 3600}


class Sla:
    """Deadlines; durations of one number and one unit only."""

    def __init__(self, arguments):
        self.everybodys = _seconds(arguments.get("sla-waiting-time", ""))

    def deadline(self, world, gang):
        notes = world["gangs"][gang].annotations
        said = next((notes[key] for key in KEYS if key in notes), None)
        return waiting_since(world, gang) + (self.everybodys if said is None else _seconds(said))

    def well_written(self, world, gang):
        notes = world["gangs"][gang].annotations
        return all(_seconds(notes[key]) < math.inf for key in KEYS if key in notes)

    def gang_order(self, world, gang):
        return (self.deadline(world, gang),)

    def enqueueable(self, world, gang):
        return 1 if world["now"] >= self.deadline(world, gang) else 0

    pipelined = enqueueable

    def holds_partly(self, world, gang):
        return world["now"] >= self.deadline(world, gang)


def _seconds(text):
    return float(text[:-1]) * UNITS[text[-1]] if text and text[:-1].isdecimal() and text[-1] in UNITS else math.inf
