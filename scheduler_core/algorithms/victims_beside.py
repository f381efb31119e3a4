"""Why a unit that might have been taken was not, beside those that were."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from scheduler_core.algorithms.compiled import compiled_branchy, from_python
from scheduler_core.algorithms.victims_room import LEVEL, WORK
from scheduler_core.model.rules import Rule

Ints = npt.NDArray[np.int64]

# What the number says, by its value.
RULES: tuple[Rule, ...] = (Rule.TOO_LITTLE, Rule.DEARER, Rule.LATER_BY_NAME)


@compiled_branchy
@from_python
def beside(units: Ints, size: int, unit: int, chosen: Ints, count: int) -> int:
    """Position in :data:`RULES`: the unit frees as much as one of the chosen and costs more, or as much; else 0.
    ``units``: int64 (units, UNIT_COLUMNS), in the order of names. ``size``: column of what is freed. ``chosen``:
    numbers of units, the first ``count`` count."""
    found = 0
    for i in range(count):
        other = chosen[i]
        if other == unit or units[unit, size] < units[other, size]:
            continue
        level, work = units[unit, LEVEL] - units[other, LEVEL], units[unit, WORK] - units[other, WORK]
        if level > 0 or (level == 0 and work > 0):
            return 1
        if level == 0 and work == 0 and unit > other:
            found = 2
    return found


def rules_beside(units: Ints, size: int, passed: Sequence[int], chosen: Sequence[int]) -> list[Rule]:
    """The rule of each unit that was passed over."""
    taken: Ints = np.array(chosen, dtype=np.int64)
    return [RULES[beside(units, size, unit, taken, len(taken))] for unit in passed]
