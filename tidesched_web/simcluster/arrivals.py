"""What users of the cluster do: submissions and scalings by the scenario, in the cluster's time."""

from __future__ import annotations

from tidesched_web.simcluster.machine import Machine


class Arrivals:
    """Brings what is due; placeholder."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    def bring(self) -> None:
        return
