"""What happens to a world from outside: workloads that arrive and services that change their size."""

from collections.abc import Iterable
from typing import Protocol

from scheduler_core.simulator.workload import Workload
from scheduler_core.simulator.world import World


class Scenario(Protocol):
    """A source of submissions over time, the same for the same seed."""

    @property
    def next_time(self) -> float | None:
        """When it acts next, seconds since the epoch; None = never again."""

    def act(self, world: World) -> None:
        """Do all that is due at ``world.t``."""


def advance(world: World, scenario: Scenario, until: float) -> None:
    """Let time pass up to ``until``, with the scenario acting at its moments."""
    while (due := scenario.next_time) is not None and due <= until:
        world.advance(max(due, world.t))
        scenario.act(world)
    world.advance(until)


class Arrivals:
    """A scenario that is a list: each workload is submitted when its time comes."""

    def __init__(self, arrivals: Iterable[tuple[float, Workload]]) -> None:
        self._arrivals = sorted(arrivals, key=lambda item: (item[0], item[1].key))
        self._next = 0

    def __len__(self) -> int:
        return len(self._arrivals)

    @property
    def next_time(self) -> float | None:
        """When the next workload comes."""
        return self._arrivals[self._next][0] if self._next < len(self._arrivals) else None

    def act(self, world: World) -> None:
        while self._next < len(self._arrivals) and self._arrivals[self._next][0] <= world.t:
            world.submit(self._arrivals[self._next][1])
            self._next += 1
