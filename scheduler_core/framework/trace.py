"""What happened in a session, gang by gang, for the result and the reasons."""

from __future__ import annotations

from scheduler_core.framework.refusals import Refusals
from scheduler_core.model.decision import Event, Eviction, Reclaim
from scheduler_core.model.memory import Rest


class Trace:
    """Collected by the actions; nothing in it changes a decision.

    Attributes:
        enqueue_refusals: gang -> why it was not admitted.
        evictions, reclaims, events: in the order in which they were made.
        reclaim_refusals: gang -> rule by candidate gang, for a reclaim that came to nothing.
        notes: gang -> a sentence that its reason ends with, if it still waits.
        cooling: lasting name -> rest of a gang that was evicted.
        counters: how often something was done, by name.
    """

    def __init__(self) -> None:
        self.enqueue_refusals = Refusals()
        self.evictions: list[Eviction] = []
        self.reclaims: list[Reclaim] = []
        self.events: list[Event] = []
        self.reclaim_refusals: dict[int, dict[str, str]] = {}
        self.notes: dict[int, str] = {}
        self.cooling: dict[str, Rest] = {}
        self.counters: dict[str, int] = {}

    def count(self, name: str, by: int = 1) -> None:
        """Add to a counter."""
        self.counters[name] = self.counters.get(name, 0) + by
