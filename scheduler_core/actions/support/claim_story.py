"""What the compiled turns of claimants did, as the session's record: evictions, reclaims, promises that last."""

from collections.abc import Sequence
from itertools import islice

import numpy as np

from scheduler_core.actions.support.falls import Fall, leavers, record_evictions, rule_of
from scheduler_core.actions.support.receipts import MOST_REFUSED, Further, Looked, Move, Option, Standing
from scheduler_core.actions.support.reservations import cool_down, keep
from scheduler_core.actions.support.search_state import State
from scheduler_core.actions.support.victim_search import VictimSearch
from scheduler_core.actions.support.victims import Victims
from scheduler_core.algorithms.victims_alone import NOTE
from scheduler_core.algorithms.victims_beside import RULES
from scheduler_core.algorithms.victims_room import FREES_CPU, FREES_MILLI
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
    U_UNIT,
    U_WORK,
    Story,
)
from scheduler_core.framework.kernels.turns import Turns
from scheduler_core.framework.session import Session
from scheduler_core.model.decision import Refusal
from scheduler_core.state.card_sets import cards_of_words
from scheduler_core.state.status import PIPELINED, Ints

# Pod, whether its task waits for the place, node, card type, class, cards.
Placed = tuple[str, bool, int, int, int, tuple[int, ...]]


def new_story(search: VictimSearch, claims: int) -> Story:
    """An empty story with room for what so many claimants can do: each task leaves once at most, and is tried once
    more by the attempt that is under way."""
    units, there = len(search.field.units), 2 * len(search.field.pieces) + 1
    return Story(
        np.zeros(4, dtype=np.int64), np.zeros((claims + 1, 9), dtype=np.int64),
        np.zeros((2 * units + 1, 7), dtype=np.int64), np.zeros(there, dtype=np.int32), np.zeros(there, dtype=np.int64),
        np.zeros(there, dtype=np.int32), np.zeros(there, dtype=np.bool_), np.zeros(10 * claims + 10, dtype=np.int32),
        np.zeros((10 * claims + 10, 2), dtype=np.int64), np.zeros((10 * claims + 10, NOTE), dtype=np.int64),
        np.zeros(units, dtype=np.bool_), np.zeros(1, dtype=np.int64),
    )  # fmt: skip


class ClaimRecorder:
    """Records in the session what has happened since the last call. ``action``: name. ``seconds``: how long freed room
    stays promised. ``cool``: how long evicted gangs are left alone."""

    def __init__(self, session: Session, victims: Victims, *, action: str, seconds: float, cool: float) -> None:
        self._session, self._victims = session, victims
        self._action, self._seconds, self._cool = action, seconds, cool
        self._told = 0

    def go_on(self, story: Story, turns: Turns, states: Sequence[State | None]) -> None:
        """Write down what came since; O(tasks that moved)."""
        end = int(story.size[S_CLAIM])
        took: list[list[int]] = []
        # Claimants without victims: their gang, tasks placed, and how many had taken before.
        others: list[tuple[int, int, int]] = []
        for row in story.claim[self._told : end].tolist():
            self._victims.forget(row[C_GANG])
            if not row[C_KEPT]:
                state = states[row[C_KIND]] if row[C_KIND] >= 0 else None
                rules = {} if state is None else state.rules(self._session.queue_of(row[C_GANG]))
                if rules:
                    self._session.trace.reclaim_refusals[row[C_GANG]] = rules
            elif row[C_UNITS] > row[C_UNIT]:
                took.append(row)
            else:
                others.append((row[C_GANG], row[C_PLACED], len(took)))
        self._told = end
        if took:
            self._tell(story, turns, took, others, states)

    def _tell(
        self, story: Story, turns: Turns, took: list[list[int]], others: list[tuple[int, int, int]],
        states: Sequence[State | None],
    ) -> None:  # fmt: skip
        """Write down what claimants have taken; columns are read once for all of them."""
        session, first = self._session, took[0][C_UNIT]
        units = story.unit[first : took[-1][C_UNITS]]
        gangs, begin, end = (units[:, column].tolist() for column in (U_GANG, U_TASK, U_TASKS))
        low, high = begin[0], end[-1]
        gone = leavers(session, story.left[low:high], story.taken[low:high].tolist(), story.lost[low:high].tolist())
        places = self._places(turns, took)
        since_each = self._moves(turns, others, len(took))
        standing, eligible = self._standing(story, took, states)
        falls, fallen = [], []
        for number, (row, placed) in enumerate(zip(took, places, strict=True)):
            gang, kind, since, until = row[C_GANG], row[C_KIND], row[C_UNIT] - first, row[C_UNITS] - first
            state = states[kind]
            assert state is not None
            leaving = gone[begin[since] - low : end[until - 1] - low]
            backed = [(node, card, cls) for _, _, node, card, cls, _ in placed[row[C_FREE] :]]
            refused = self._refused(story, row, state)
            others_left = int(eligible[kind][since]) - len(set(gangs[since:until]))
            looked = self._looked(story, row, state, Further(standing[kind], until), others_left)
            everywhere = [(card, cls) for _, _, _, card, cls, _ in placed]
            falls.append(
                Fall(
                    gang, backed, leaving, rule_of(session, gang), "", state.verdict.votes, refused, everywhere, looked,
                    since_each[number],
                )
            )  # fmt: skip
            promised = sorted((pod, node, card, cards) for pod, waits, node, card, _, cards in placed if waits)
            keep(session, gang, promised, [(one.node, one.pod) for one in leaving], self._seconds)
            fallen += gangs[since:until]
        for other in fallen:
            self._victims.forget(other)
        record_evictions(session, self._action, falls, since_each[-1])
        cool_down(session, fallen, self._cool)

    def _moves(self, turns: Turns, others: list[tuple[int, int, int]], falls: int) -> list[list[Move]]:
        """What claimants without victims gained: before each eviction of others, and after the last one."""
        found: list[list[Move]] = [[] for _ in range(falls + 1)]
        tasks = self._session.tasks
        for gang, count, place in others:
            first, queue = int(turns.start[gang]), self._session.queue_of(gang)
            for task in turns.task[first : first + count].tolist():
                found[place].append(Move(queue, int(tasks.card[task]), int(tasks.cls[task]), 1))
        return found

    def _standing(
        self, story: Story, took: list[list[int]], states: Sequence[State | None]
    ) -> tuple[dict[int, Standing], dict[int, Ints]]:
        """By kind: who might be taken at the moments of these claimants, and how many before each unit left."""
        units = story.unit[took[0][C_UNIT] : took[-1][C_UNITS]]
        left = story.left[units[0, U_TASK] : units[-1, U_TASKS]]
        session, place = self._session, np.arange(len(units), dtype=np.int64)
        classes, cls = session.cluster.classes.classes, session.tasks.cls[left]
        frees = {
            FREES_MILLI: np.array([one.milli for one in classes], dtype=np.int64)[cls],
            FREES_CPU: np.array([one.cpu_milli for one in classes], dtype=np.int64)[cls],
        }
        standing: dict[int, Standing] = {}
        eligible: dict[int, Ints] = {}
        for kind in {row[C_KIND] for row in took}:
            state = states[kind]
            assert state is not None
            was = state.was_standing(units[:, U_UNIT])
            freed = np.add.reduceat(frees[state.ask.size], units[:, U_TASK] - units[0, U_TASK])
            gone = np.stack([units[:, U_GANG], units[:, U_WORK], freed, place], axis=1)[was]
            rows = state.standing()
            standing[kind] = Standing(np.concatenate([rows, gone]))
            eligible[kind] = len(rows) + np.cumsum(was[::-1])[::-1]
        return standing, eligible

    def _looked(self, story: Story, row: list[int], state: State, further: Further, eligible: int) -> Looked:
        """Who came into question for a claimant, with what taking them would have cost."""
        spared, kept = state.spared(self._session.queue_of(row[C_GANG]))
        first, last = row[C_PASSED], row[C_PASSES]
        columns = (story.passed[first:last].tolist(), story.cost[first:last].tolist(), range(first, last))
        passed = []
        for noted, (work, frees), place in zip(*columns, strict=True):
            gang, why = divmod(noted, len(RULES))
            room = () if why else tuple(story.room[place].tolist())
            passed.append(Option(gang, work, frees, RULES[why].text(), room))
        return Looked((*spared, *passed), int(np.count_nonzero(kept)) + eligible, further)

    def _places(self, turns: Turns, took: list[list[int]]) -> list[list[Placed]]:
        """Of each claimant its tasks that have a place."""
        tasks = self._session.tasks
        start = turns.start[[row[C_GANG] for row in took]].tolist()
        counts = [row[C_PLACED] for row in took]
        at = np.concatenate([turns.task[since : since + count] for since, count in zip(start, counts, strict=True)])
        columns = zip(
            [tasks.keys[task] for task in at.tolist()],
            (tasks.status[at] == PIPELINED).tolist(),
            tasks.node[at].tolist(),
            tasks.card[at].tolist(),
            tasks.cls[at].tolist(),
            [cards_of_words(*words) for words in tasks.indices.words[at].tolist()],
            strict=True,
        )
        return [list(islice(columns, count)) for count in counts]

    def _refused(self, story: Story, row: list[int], state: State) -> tuple[Refusal, ...]:
        """Candidates that were not taken, the first by name."""
        queue = self._session.queue_of(row[C_GANG])
        passed = story.passed[row[C_PASSED] : row[C_PASSES]].tolist() if row[C_PASSES] > row[C_PASSED] else []
        if not passed:
            return state.by_name(queue)[:MOST_REFUSED]
        names = self._session.gangs.names
        rules = {one.gang: one for one in state.refused(queue)}
        for noted in passed:
            other, why = divmod(noted, len(RULES))
            rules[names[other]] = Refusal(names[other], RULES[why].text())
        return tuple([rules[name] for name in sorted(rules)[:MOST_REFUSED]])
