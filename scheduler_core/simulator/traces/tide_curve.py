"""A tide: the request rate of inference over time, ``seconds,qps``, in steps of any length."""

from pathlib import Path

import numpy as np
import numpy.typing as npt

from scheduler_core.model.errors import BadInput
from scheduler_core.simulator.traces.table import read_rows

# Levels are looked up on a grid this fine; the curves come in steps of minutes.
_GRID = 4096


class TideCurve:
    """The level of the tide over one day, 1 at its highest.

    The curve is stretched so that its first and last point are the ends of the day.

    Parameters
    ----------
    seconds, rates : float64 (K,)
        Points of the curve, seconds ascending; between two points it is a straight line."""

    def __init__(self, seconds: npt.NDArray[np.float64], rates: npt.NDArray[np.float64]) -> None:
        span = seconds[-1] - seconds[0]
        self._share = (seconds - seconds[0]) / span
        self._level = rates / rates.max()
        self._positions = np.linspace(0.0, 1.0, _GRID)
        self._grid = np.interp(self._positions, self._share, self._level)
        steps = (self._grid[1:] + self._grid[:-1]) / 2
        self._water = np.concatenate(([0.0], np.cumsum(steps))) / steps.sum()

    def level(self, share: float) -> float:
        return float(np.interp(share, self._share, self._level))

    def arrival(self, share: float) -> float:
        """When ``share`` of the day's requests have come, as a share of the day: arrivals follow the curve."""
        return float(np.interp(share, self._water, self._positions))

    def ebb(self, share: float, level: float) -> float | None:
        """The first share of the day after ``share`` at which the tide is below ``level``; None = not any more."""
        start = int(share * (_GRID - 1)) + 1
        below = self._grid[start:] < level
        first = int(below.argmax()) if below.size else 0
        if not below.size or not below[first]:
            return None
        return (start + first) / (_GRID - 1)


def read_tide(path: Path) -> TideCurve:
    """Read a curve. Raises BadInput: a broken line, times that do not rise, fewer than two points, or a rate that is
    always zero."""
    seconds: list[float] = []
    rates: list[float] = []
    for row in read_rows(path, ("seconds", "qps")):
        at = row.number("seconds")
        if seconds and at <= seconds[-1]:
            raise row.error("seconds", f"does not come after {seconds[-1]:g}", hint="times rise from line to line")
        seconds.append(at)
        rates.append(row.number("qps"))
    if len(seconds) < 2 or max(rates) <= 0:
        raise BadInput(
            "bad_csv",
            "no tide, a curve has at least two points and one rate above zero",
            file=str(path),
            hint="lines such as 300,0.18",
        )
    return TideCurve(np.array(seconds), np.array(rates))
