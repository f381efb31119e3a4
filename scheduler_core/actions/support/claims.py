"""The turns of action reclaim in compiled code, wherever the policy and the gang are plain.

Plain is what :mod:`scheduler_core.actions.support.turns` calls so, and of a gang that its waiting members are all
alike and ask for one card type at most. Any other gang is served by the caller when its turn comes, in the very same
order. Where several units have to be weighed against each other the search outside the loop does that."""

from collections.abc import Callable

import numpy as np

from scheduler_core.actions.allocate import hold_back
from scheduler_core.actions.support.admission import withdraw_promises
from scheduler_core.actions.support.claim_story import ClaimRecorder, new_story
from scheduler_core.actions.support.policy_forms import TASK_POINTS, PolicyForms, of_queues, policy_forms
from scheduler_core.actions.support.search_state import State
from scheduler_core.actions.support.turns import CompiledTurns
from scheduler_core.actions.support.victim_search import VictimSearch
from scheduler_core.algorithms.compiled import direct
from scheduler_core.algorithms.protection import system_rule
from scheduler_core.algorithms.victims_heap import KEY, Heap
from scheduler_core.algorithms.victims_room import LEVEL, NEVER, PLENTY, WORK
from scheduler_core.algorithms.victims_search import solve
from scheduler_core.framework.forms import Limits, Term, forms_of
from scheduler_core.framework.kernels import tables
from scheduler_core.framework.kernels.claim_columns import (
    BY_HAND,
    CHOOSE,
    CHOSEN,
    CONTROLS,
    DONE,
    END,
    FREE,
    FRESH,
    GROW,
    IDLE,
    NEVER_HERE,
    NEW_KIND,
    NOT_YET,
    PLACE,
    PLACED,
    S_LEFT,
    S_UNIT,
    SEEK,
    SLOT,
    STAGE,
    TAKE,
    TAKE_BACK,
    U_GANG,
    U_TASKS,
    VET,
    WANTED,
    WHO,
    Claims,
    Leavers,
)
from scheduler_core.framework.kernels.claims import seek, serve_claims
from scheduler_core.framework.kernels.leaving import note_passed_over
from scheduler_core.framework.kernels.terms import OWN
from scheduler_core.framework.session import Session
from scheduler_core.state.cluster import Place
from scheduler_core.state.status import CHARGED, Bools, Index, Ints, TaskStatus

# Levels of all kinds are kept for so many (level, node) pairs at most; kinds beyond go through Python.
_MOST_PAIRS = 600_000
# How many units are looked at beforehand for pods of the system, the first time; twice as many each time after.
_VETTED_AHEAD = 32


class CompiledClaims(CompiledTurns):
    """Turns of claimants; :meth:`serve` serves them all. ``forms``: see :func:`plain_claims`. ``waiting``: bool (G,),
    gangs that take part. ``search``: the search for victims of the action. ``state``: what a plain gang could gain
    where, for all of its kind; None where that is the gang's own affair."""

    def __init__(
        self, session: Session, forms: PolicyForms, waiting: Bools, search: VictimSearch,
        state: Callable[[int], State | None],
    ) -> None:  # fmt: skip
        super().__init__(session, forms, waiting)
        self._search, self._state = search, state
        field, nodes = search.field, len(session.nodes)
        self._leavers = Leavers(
            session.tasks.cls,
            session.cluster.charge,
            np.array([cls.share for cls in session.cluster.classes.classes], dtype=np.int64),
            CHARGED,
            session.gangs.valid_count,
            search.barred,
            search.level_of,
            search.lenient,
            search.whole,
        )
        kind, kinds = self._kinds()
        units = len(field.units)
        self._states: list[State | None] = [None] * kinds
        self._levels = 0
        self._finders: dict[int, Callable[..., bool]] = {}
        self._claims = Claims(
            np.zeros(CONTROLS, dtype=np.int64), kind, np.full(kinds, NOT_YET, dtype=np.int64),
            np.zeros(kinds, dtype=np.int64), *_levels_for(kinds, nodes), np.zeros(units + 1, dtype=np.int64),
            np.zeros(units, dtype=np.bool_), np.zeros(1, dtype=np.int64), np.full(1, PLENTY, dtype=np.int64),
            np.zeros(nodes, dtype=np.int64), np.zeros(nodes, dtype=np.int64),
        )  # fmt: skip
        self._claims.control[FRESH] = -1
        self._story = new_story(search, int(np.count_nonzero(self._turns.plain)))
        self._ahead = _VETTED_AHEAD
        self._bars = search.bars

    def _kinds(self) -> tuple[Index, int]:
        """int32 (G,): numbers of kinds of claimants that share one search, -1 = by hand; and how many there are."""
        session, turns, tasks = self._session, self._turns, self._session.tasks
        pods, classes, queues = tasks.pods, session.cluster.classes, session.ledger.queues
        slots, sizes = turns.task, np.diff(turns.start)
        gang, cls = tasks.gang[slots], tasks.cls[slots].astype(np.int64)
        first: Ints = np.full(len(session.gangs), -1, dtype=np.int64)
        first[sizes > 0] = cls[turns.start[:-1][sizes > 0]]
        odd: Bools = cls != first[gang]
        odd |= np.array([len(each.cards) > 1 for each in classes.classes], dtype=np.bool_)[cls]
        never = [pod is not None and pod.preemption_policy == "Never" for pod in map(pods.__getitem__, slots.tolist())]
        odd |= np.array(never, dtype=np.bool_)
        simple: Bools = turns.plain & (sizes > 0)
        simple[gang[odd]] = False
        kind: Index = np.full(len(session.gangs), -1, dtype=np.int32)
        known: dict[tuple[int, str, int], int] = {}
        for claimant in np.flatnonzero(simple).tolist():
            queue = session.gangs.queue_list[claimant]
            own = queue if queues[queue].reclaimable else -1
            key = (int(first[claimant]), session.service_type(claimant).value, own)
            kind[claimant] = known.setdefault(key, len(known))
        return kind, len(known)

    def serve(self, waiting: Bools, by_hand: Callable[[int], None], record: ClaimRecorder) -> None:
        """Serve the gangs of ``waiting``. ``by_hand``: the turn of a gang that is not plain. ``record``: writes down
        what the loop did."""
        session, control = self._session, self._claims.control
        self._line_up(waiting)
        rest = (self._turns, self._rules, self._search.field, self._leavers)
        # Whatever the loop takes anew in between has the types that it had before.
        go_on, again = serve_claims, False
        while True:
            answer = go_on(self._tables(), self._quota, self._scores, self._views, *rest, self._claims, self._story)
            if answer == DONE:
                break
            if not again:
                go_on, again = direct(serve_claims), True
            if answer == SEEK:
                self._seek()
            elif answer == GROW:
                self._log = tables.grown(self._log)
            elif answer == VET:
                self._vet(by_hand, record)
            elif answer == BY_HAND:
                self._by_hand(by_hand, record)
            elif answer == NEW_KIND:
                self._tell()
                self._new_kind(int(control[WHO]))
            elif answer == TAKE_BACK:
                self._take_back()
            else:
                self._tell()
                hold_back(session, int(control[WHO]))
                self._hear()
        self._tell()
        record.go_on(self._story, self._turns, self._states)
        withdraw_promises(session, self._turns.kept)

    def _by_hand(self, by_hand: Callable[[int], None], record: ClaimRecorder) -> None:
        self._tell()
        record.go_on(self._story, self._turns, self._states)
        withdraw_promises(self._session, self._turns.kept)
        by_hand(int(self._claims.control[WHO]))
        self._claims.control[STAGE] = IDLE
        self._hear()
        if self._bars != self._search.bars:
            # A gang turned out to be of the system: all gangs are asked anew.
            self._bars = self._search.bars
            self._levels = 0
            self._claims.first[:] = NOT_YET

    def _take_back(self) -> None:
        """Undo the places on room that was taken and keep all victims; all places where the gang cannot run."""
        session, control, story = self._session, self._claims.control, self._story
        cluster, first = session.cluster, int(self._turns.start[control[WHO]])
        failed = control[STAGE] == PLACE
        left = int(control[FREE]) if failed else 0
        self._tell()
        for place in range(int(control[PLACED]) - 1, left - 1, -1):
            cluster.move(int(self._turns.task[first + place]), Place(TaskStatus.PENDING))
        rows = story.unit[story.size[S_UNIT] : story.size[S_UNIT] + control[CHOSEN]]
        begin, end = int(story.size[S_LEFT]), int(rows[-1, U_TASKS]) if len(rows) else 0
        for at in range(end - 1, begin - 1, -1):
            task = int(story.left[at])
            before = cluster.place_of(task)
            cluster.move(task, Place(TaskStatus(int(story.was[at])), before.node, before.card, before.indices))
        for gang in rows[:, U_GANG].tolist():
            self._search.forget(gang)
        self._hear()
        if failed:
            control[WANTED], control[STAGE] = control[PLACED] - left, CHOOSE
        control[PLACED], control[CHOSEN] = left, 0

    def _new_kind(self, gang: int) -> None:
        """Learn what claimants like this one could gain where."""
        claims, nodes = self._claims, len(self._session.nodes)
        kind = int(claims.kind[gang])
        state = self._states[kind] = self._state(gang)
        if state is None or (self._levels + len(state.ranks)) * nodes > _MOST_PAIRS:
            claims.first[kind] = NEVER_HERE
            return
        first = self._levels
        self._levels = first + len(state.ranks)
        while self._levels > len(claims.rank):
            more = _levels_for(len(claims.rank), nodes)
            names = ("rank", "room", "sums", "keys", "current", "place")
            grown = {
                name: np.concatenate([getattr(claims, name), part]) for name, part in zip(names, more, strict=True)
            }
            claims = self._claims = claims._replace(**grown)
        claims.first[kind], claims.levels[kind] = first, len(state.ranks)
        claims.rank[first : self._levels] = state.ranks
        for part in (claims.room, claims.sums, claims.current):
            part[first : self._levels] = 0
        claims.place[first : self._levels] = -1

    def _seek(self) -> None:
        claims, kind = self._claims, int(self._claims.kind[self._claims.control[WHO]])
        state = self._states[kind]
        assert state is not None
        field, choice = self._search.field, self._search.choice(1)
        find = self._finders.get(kind)
        if find is None:
            # The first time for each kind the types of what it asks are looked at.
            found = seek(self._cards, self._log, field, state.ask, choice, claims, self._story, kind)
            self._finders[kind] = direct(seek)
        else:
            found = find(self._cards, self._log, field, state.ask, choice, claims, self._story, kind)
        if not found:
            self._weigh()

    def _weigh(self) -> None:
        """Search among several units for the present gang, level by level."""
        claims, control = self._claims, self._claims.control
        kind = int(claims.kind[control[WHO]])
        state, wanted = self._states[kind], int(control[WANTED])
        assert state is not None
        for slot in range(int(control[SLOT]), int(claims.first[kind] + claims.levels[kind])):
            if claims.sums[slot, 0] < wanted:
                continue
            heap, rank = Heap(claims.keys[slot], claims.current[slot]), int(claims.rank[slot])
            found = solve(self._search.field, state.ask, claims.limits, self._search.choice(1), rank, heap, wanted)
            if found.size:
                claims.chosen[: found.size] = found
                control[CHOSEN], control[STAGE] = found.size, TAKE
                note_passed_over(self._search.field, state.ask, claims, self._story)
                return
        control[WANTED] -= 1
        control[STAGE] = CHOOSE

    def _vet(self, by_hand: Callable[[int], None], record: ClaimRecorder) -> None:
        """Make sure that no gang of the system leaves: look at the chosen units, and at those that cost least next."""
        claims, control, units = self._claims, self._claims.control, self._search.field.units
        state, chosen = self._states[int(claims.kind[control[WHO]])], claims.chosen[: control[CHOSEN]]
        assert state is not None
        if not all(self._passes(int(unit)) for unit in chosen):
            # The turn of this gang begins anew outside.
            control[CHOSEN], control[STAGE] = 0, END
            self._take_back()
            self._by_hand(by_hand, record)
            return
        claims.vetted[chosen] = True
        left = np.flatnonzero(state.ask.ok & ~claims.vetted & (units[:, LEVEL] < NEVER))
        order = left[np.lexsort((left, units[left, WORK], units[left, LEVEL]))][: self._ahead]
        claims.vetted[order] = [self._passes(unit) for unit in order.tolist()]
        self._ahead *= 2

    def _passes(self, unit: int) -> bool:
        """No pod of the unit belongs to the system."""
        pods = self._session.tasks.pods
        return not any(
            pod is not None and system_rule(pod) is not None
            for pod in (pods[task] for task in self._search.tasks_of(unit))
        )


def plain_claims(session: Session) -> PolicyForms | None:
    """The forms of all functions that have a say in the turns of claimants; None where one has none."""
    forms, further = policy_forms(session), forms_of(session.hooks, "preemptive")
    if session.election is not None or session.candidates.samples or session.columns.job_order is None:
        return None
    if forms.asks_queues or forms.overused or forms.card_choice is None or forms.card_choice:
        return None
    if further is None or forms.job_ready is None or forms.job_pipelined is None or forms.allocatable is None:
        return None
    if any(of_queues(session, point, mixed=True) for point in TASK_POINTS):
        return None
    if any(isinstance(form, Term) and form.kind == OWN for parts in forms.node_order for form in parts):
        return None
    tested = [form for parts in (*forms.allocatable, *further) for form in parts]
    limits = [form for form in tested if isinstance(form, Limits)]
    return forms if len(limits) == len(tested) and all(_same(limits[0], other) for other in limits) else None


def _same(a: Limits, b: Limits) -> bool:
    pairs = ((a.limits, b.limits), (a.named, b.named), (a.counted, b.counted))
    return all(np.array_equal(one, other) for one, other in pairs)


def _levels_for(count: int, nodes: int) -> tuple[Ints, Ints, Ints, Ints, Ints, Ints]:
    """Room for so many levels: rank, room, sums, keys, current, place."""
    return (
        np.zeros(count, dtype=np.int64), np.zeros((count, nodes, 1), dtype=np.int64),
        np.zeros((count, 1), dtype=np.int64), np.zeros((count, 4 * nodes + 64, KEY + 1), dtype=np.int64),
        np.zeros((count, nodes + 1), dtype=np.int64), np.full(count, -1, dtype=np.int64),
    )  # fmt: skip
