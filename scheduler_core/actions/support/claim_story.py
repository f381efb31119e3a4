"""What the compiled turns of claimants did, told as the session's record: evictions, reclaims, promises that last."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from scheduler_core.actions.support.attempt import MAX_REFUSED, Fall, write_down
from scheduler_core.actions.support.reservations import cool_down, reserve
from scheduler_core.actions.support.search_state import TOO_LITTLE, State
from scheduler_core.actions.support.victim_search import VictimSearch
from scheduler_core.actions.support.victims import Victims
from scheduler_core.framework.kernels.claim_columns import (
    C_FREE,
    C_GANG,
    C_KEPT,
    C_KIND,
    C_PASSED,
    C_PASSES,
    C_PLACED,
    C_UNIT,
    C_UNITS,
    S_CLAIM,
    U_GANG,
    U_TASK,
    U_TASKS,
    Story,
)
from scheduler_core.framework.kernels.turns import Turns
from scheduler_core.framework.session import Session
from scheduler_core.model.decision import Refusal


def new_story(search: VictimSearch, claims: int) -> Story:
    """An empty story with room for what so many claimants can do: each task leaves once at most, and is tried once
    more by the attempt that is under way."""
    units, there = len(search.field.units), 2 * len(search.field.pieces) + 1
    return Story(
        np.zeros(4, dtype=np.int64),
        np.zeros((claims + 1, 9), dtype=np.int64),
        np.zeros((2 * units + 1, 7), dtype=np.int64),
        np.zeros(there, dtype=np.int32),
        np.zeros(there, dtype=np.int64),
        np.zeros(there, dtype=np.int32),
        np.zeros(there, dtype=np.bool_),
        np.zeros(10 * claims + 10, dtype=np.int32),
    )


class StoryTeller:
    """Tells the session what has happened since it was told last.

    Args:
        action: name. seconds: how long freed room stays promised. cool: how long whoever fell is left alone.
    """

    def __init__(self, session: Session, victims: Victims, *, action: str, seconds: float, cool: float) -> None:
        self._session, self._victims = session, victims
        self._action, self._seconds, self._cool = action, seconds, cool
        self._told = 0

    def go_on(self, story: Story, turns: Turns, states: Sequence[State | None]) -> None:
        """Write down what came since; O(tasks that moved)."""
        end = int(story.size[S_CLAIM])
        for row in story.claim[self._told : end].tolist():
            state = states[row[C_KIND]] if row[C_KIND] >= 0 else None
            self._victims.forget(row[C_GANG])
            if not row[C_KEPT]:
                if state is not None and state.rules:
                    self._session.trace.reclaim_refusals[row[C_GANG]] = state.rules
            elif row[C_UNITS] > row[C_UNIT]:
                assert state is not None
                self._tell(story, turns, row, state)
        self._told = end

    def _tell(self, story: Story, turns: Turns, row: list[int], state: State) -> None:
        session, gang = self._session, row[C_GANG]
        units = story.unit[row[C_UNIT] : row[C_UNITS]]
        first, last = int(units[0, U_TASK]), int(units[-1, U_TASKS])
        start = int(turns.start[gang])
        fall = Fall(
            gang,
            turns.task[start + row[C_FREE] : start + row[C_PLACED]].tolist(),
            story.left[first:last].tolist(),
            story.taken[first:last].tolist(),
            story.lost[first:last].tolist(),
        )
        passed = story.passed[row[C_PASSED] : row[C_PASSES]].tolist()
        if passed:
            names = session.gangs.names
            rules = {one.gang: one for one in state.refused()}
            rules.update({names[other]: Refusal(names[other], TOO_LITTLE) for other in passed})
            refused = tuple([rules[name] for name in sorted(rules)[:MAX_REFUSED]])
        else:
            refused = state.by_name[:MAX_REFUSED]
        write_down(session, self._action, fall, votes=state.verdict.votes, refused=refused)
        gangs = units[:, U_GANG].tolist()
        for other in gangs:
            self._victims.forget(other)
        reserve(session, gang, fall.leaving, self._seconds)
        cool_down(session, gangs, self._cool)
