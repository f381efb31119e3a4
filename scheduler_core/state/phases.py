"""Phases of gangs as a column of codes that compiled code can read and write."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from scheduler_core.model.podgroup import GangPhase

Codes = npt.NDArray[np.int8]

PHASES: tuple[GangPhase, ...] = tuple(GangPhase)
PHASE_CODE: dict[GangPhase, int] = {phase: code for code, phase in enumerate(PHASES)}
# The same as plain integers, for compiled code.
PHASE_PENDING, PHASE_INQUEUE, PHASE_RUNNING, PHASE_UNKNOWN, PHASE_COMPLETED = range(5)


class Phases:
    """Phase of each gang; reads and writes like a list of :class:`GangPhase`. ``codes``: int8 (G,), position in
    :data:`PHASES`."""

    def __init__(self, codes: Codes) -> None:
        self.codes = codes

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, gang: int) -> GangPhase:
        return PHASES[int(self.codes[gang])]

    def __setitem__(self, gang: int, phase: GangPhase) -> None:
        self.codes[gang] = PHASE_CODE[phase]

    def __iter__(self) -> Iterator[GangPhase]:
        return (PHASES[code] for code in self.codes.tolist())

    def where(self, phase: GangPhase) -> list[int]:
        """Gangs in a phase, in the order of names."""
        found: list[int] = np.flatnonzero(self.codes == PHASE_CODE[phase]).tolist()
        return found
