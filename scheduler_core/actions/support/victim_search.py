"""The search for victims over a whole session: one table of units for an action, one search state for equal claimants.

What may leave is tabled once and repaired for the gangs that change; what a class of tasks could gain on each node is
kept per kind of claimant and repaired for the nodes that change. A storm of claimants then pays for what it moves.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from functools import cached_property

import msgspec
import numpy as np

from scheduler_core.actions.support.victims import Victims
from scheduler_core.algorithms.protection import PROTECTED_NAMESPACE, system_rule
from scheduler_core.algorithms.victims import Unit
from scheduler_core.algorithms.victims_choice import Choice, new_choice
from scheduler_core.algorithms.victims_field import Tasks, free_cards, gangs_on, load_all, load_unit, make_pieces
from scheduler_core.algorithms.victims_heap import Heap, new_heap
from scheduler_core.algorithms.victims_room import (
    FIRST,
    FREES_CPU,
    FREES_MILLI,
    GANG,
    LAST,
    LEVEL,
    NEVER,
    PLENTY,
    SINGLE,
    SPARE,
    TASK,
    UNIT_COLUMNS,
    UNIT_TASK,
    WHOLE,
    WORK,
    Ask,
    Field,
    capacity_of_all,
)
from scheduler_core.algorithms.victims_search import fill_heap, solve
from scheduler_core.framework.combine import Verdict
from scheduler_core.framework.gang_votes import GangVerdict
from scheduler_core.framework.session import Session
from scheduler_core.model.decision import Refusal
from scheduler_core.model.podgroup import EvictedPolicy, PodGroup
from scheduler_core.state.status import ALLOCATED, CHARGED, RUNNING, Bools, Index, Ints
from scheduler_core.state.task_class import TaskClass

# With more changed nodes than this part of all, a state is made anew instead of repaired.
_REPAIR_SHARE = 4

# A record names at most so many candidates that were refused; in a large cluster nearly everybody is one.
MOST_REFUSED = 100
# And at most so many that might have been taken and were cheaper than those that were.
MOST_PASSED_OVER = 10
TOO_LITTLE = "its leaving would not make enough room"

Verdicts = Verdict | GangVerdict


class GangColumns(msgspec.Struct, frozen=True, gc=False):
    """What PodGroups say, as columns: priority, never to be taken, no PodEvicted policy, namespace of the system.

    ``rank`` is the place of the priority among ``priorities``.
    """

    groups: Sequence[PodGroup]
    priorities: Ints
    rank: Ints
    kept: Bools
    lenient: Bools
    system: Bools


class Level(msgspec.Struct, gc=False):
    """What a state knows of one level: what each node takes if everybody up to it leaves, and the heap of offers."""

    rank: int
    room: Ints
    sums: Ints
    heap: Heap
    place: int


class VictimSearch:
    """Units of all gangs of a session, and search states by kind of claimant."""

    def __init__(self, session: Session, victims: Victims) -> None:
        self._session, self._victims = session, victims
        tasks, gangs, cards = session.tasks, session.gangs, session.cards
        self._columns = columns = _gang_columns(session)
        self.lenient = columns.lenient
        queues, classes = session.ledger.queues, session.cluster.classes
        reclaimable = np.array([queue.reclaimable for queue in queues] + [False], dtype=np.bool_)
        priority = np.array([queue.priority for queue in queues] + [0], dtype=np.int64)
        self.barred: Bools = ~reclaimable[gangs.queue] | columns.kept | columns.system
        self.barred |= gangs.counts[ALLOCATED] > 0
        self.barred[victims.resting()] = True
        self._queue_priorities, place = np.unique(priority, return_inverse=True)
        self.level_of: Ints = place[gangs.queue] * max(1, len(columns.priorities)) + columns.rank
        spare = np.where(columns.lenient, np.maximum(gangs.ready_count - gangs.min_member, 0), 0)
        alone, self.whole, units = self._number(spare)
        kinds = np.array([(c.milli, c.cpu_milli, c.share or 1000) for c in classes.classes], dtype=np.int64)
        there = np.flatnonzero(tasks.live & CHARGED[tasks.status] & (tasks.gang >= 0))
        columns_of_tasks = Tasks(
            there, tasks.gang, tasks.node, tasks.cls, tasks.card, alone, tasks.indices.words, self._began(there),
            tasks.protected, kinds.reshape(-1, 3),
        )  # fmt: skip
        pieces, start, unit_piece = make_pieces(
            columns_of_tasks, float(session.now), len(session.nodes), self.whole, units
        )
        requests = np.stack([cls.request for cls in classes.classes])
        card_at = np.stack([cards.start, cards.count], axis=2).astype(np.int64)
        self.field = Field(
            pieces, start, units, unit_piece, requests, session.nodes.future, card_at, np.zeros_like(cards.used)
        )
        load_all(self.field, tasks.status, CHARGED, RUNNING, self.barred, self.level_of)
        self._place = -1
        self._states: dict[object, State | None] = {}
        self.choices: dict[int, Choice] = {}
        # How often somebody was barred on the way, so that what was found before has to be looked for again.
        self.bars = 0

    def _number(self, spare: Ints) -> tuple[Index, Ints, Ints]:
        """Number the units in the order of their names: (unit of each single member, of each whole gang, the table)."""
        session, gangs = self._session, self._session.gangs
        alone: Index = np.full(len(session.tasks), -1, dtype=np.int32)
        more: Ints = np.zeros(len(gangs) + 1, dtype=np.int64)
        singles: list[tuple[int, int]] = []
        for gang in np.flatnonzero((spare > 0) & ~self.barred).tolist():
            members = [t for t in gangs.with_status(gang, RUNNING) if not session.tasks.protected[t]]
            more[gang + 1] = len(members)
            singles += [(gang, task) for task in members]
        whole: Ints = np.arange(len(gangs), dtype=np.int64) + np.cumsum(more)[:-1]
        units: Ints = np.zeros((len(gangs) + len(singles), UNIT_COLUMNS), dtype=np.int64)
        units[:, UNIT_TASK], units[:, LEVEL] = -1, NEVER
        units[whole, GANG], units[whole, SPARE] = np.arange(len(gangs)), spare
        places = dict[int, int]()
        for gang, task in singles:
            unit = places[gang] = places.get(gang, int(whole[gang])) + 1
            alone[task] = unit
            units[unit, GANG], units[unit, UNIT_TASK], units[unit, SPARE] = gang, task, spare[gang]
        return alone, whole, units

    def _began(self, there: Ints) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        """float64 (tasks,): when the work of each task in place began; its creation where no start is known."""
        tasks = self._session.tasks
        unknown = there[np.isnan(tasks.started[there])]
        if not unknown.size:
            return tasks.started
        began = tasks.started.copy()
        for task in unknown.tolist():
            began[task] = tasks.pod(task).created
        return began

    def refresh(self) -> None:
        """Bring the free cards up to what has moved since the last question, O(changed nodes)."""
        log, cards = self._session.nodes.log, self._session.cards
        if self._place == len(log):
            return
        nodes = np.arange(len(self._session.nodes)) if self._place < 0 else np.array(log[self._place :], dtype=np.int64)
        self._place = len(log)
        free_cards(self.field.card_at, nodes, cards.used, cards.releasing, cards.pipelined, self.field.card_free)

    def rank_of(self, gangs: Ints) -> Ints:
        """int64: the level of gangs, as a place in the order of levels."""
        return self.level_of[gangs]

    def work_of_gangs(self, gangs: Ints) -> Ints:
        """int64: work that is lost when whole gangs leave."""
        lost: Ints = self.field.units[self.whole[gangs], WORK]
        return lost

    def rule(self, gang: int, queue: int) -> str | None:
        """The hard rule that keeps a gang from a reclaimer in a queue."""
        return self._victims.rule(gang, queue)

    def forget(self, gang: int) -> None:
        """The gang has changed: bring its units up to date."""
        session, unit = self._session, int(self.whole[gang])
        if session.gangs.count(gang, ALLOCATED):
            self.barred[gang] = True
        if self._columns.lenient[gang]:
            self.field.units[unit, SPARE] = max(0, session.gangs.ready(gang) - session.gangs.least[gang])
        load_unit(self.field, unit, session.tasks.status, CHARGED, RUNNING, self.barred, self.level_of)

    def bar(self, gang: int) -> None:
        """A rule was found that keeps the gang for the rest of the action."""
        self.barred[gang] = True
        self.bars += 1
        self.forget(gang)
        self._states.clear()

    def tasks_of(self, unit: int) -> list[int]:
        """The tasks of a unit, those of a whole gang that have left before included."""
        field = self.field
        found: list[int] = field.pieces[
            field.unit_piece[field.units[unit, FIRST] : field.units[unit, LAST]], TASK
        ].tolist()
        return found

    def unit(self, number: int) -> Unit:
        """A unit as a record speaks of it."""
        session, field = self._session, self.field
        gang, single, _, work, spare, _, _, milli, cpu = field.units[number].tolist()
        name = label = session.gangs.names[gang]
        if single < 0:
            found = [task for task in session.gangs.members(gang) if CHARGED[session.tasks.status[task]]]
            members = tuple(sorted(found, key=session.tasks.keys.__getitem__))
            spare = 0
        else:
            members, label = (single,), f"{name} {session.tasks.keys[single]}"
        return Unit(label, name, self.level(int(self.level_of[gang])), work, milli or cpu, members, spare)

    def rank_of_level(self, level: tuple[int, int]) -> int:
        """Place of a level in the order of levels."""
        queue = int(np.searchsorted(self._queue_priorities, level[0]))
        return queue * len(self._columns.priorities) + int(np.searchsorted(self._columns.priorities, level[1]))

    def level(self, rank: int) -> tuple[int, int]:
        """Queue priority and gang priority of a level."""
        queue, gang = divmod(rank, len(self._columns.priorities))
        return int(self._queue_priorities[queue]), int(self._columns.priorities[gang])

    def protected(self, units: list[Unit]) -> bool:
        """True when a pod among the units belongs to the system; its gang is out of the question from now on."""
        session, found = self._session, False
        for unit in units:
            if any(system_rule(session.tasks.pod(task)) is not None for task in unit.members):
                self.bar(int(session.tasks.gang[unit.members[0]]))
                found = True
        return found

    def state(
        self,
        key: object,
        cls: TaskClass,
        useful: Bools,
        limits: list[int],
        queue: int,
        ask: Callable[[Bools], Verdicts],
    ) -> State | None:
        """The search state for a kind of claimant, None when there is no node for it; also where nobody may be taken,
        to say why.

        Args:
            key: what makes claimants alike; None = this one is like no other.
            useful: bool (N,), where the tasks may go. limits: tasks that the quota allows, by card option.
            queue: the reclaimer's, which takes from others only.
            ask: the plugins' answer about candidate gangs, bool (G,).
        """
        made = State(self, self._session, cls, useful, limits, queue, ask) if useful.any() else None
        if key is not None:
            self._states[key] = made
        return made

    def known(self, key: object) -> tuple[bool, State | None]:
        """Whether there is a state for this kind of claimant, and the state."""
        return (True, self._states[key]) if key is not None and key in self._states else (False, None)

    def unshare(self, key: object) -> None:
        """The state depends on more than its key says."""
        self._states.pop(key, None)

    def ask(self, cls: TaskClass, nodes: Bools, ok: Bools) -> Ask:
        """What equal tasks look for, in arrays."""
        amounts: Ints = np.array([cls.rows, cls.request[list(cls.rows)]], dtype=np.int64).reshape(2, len(cls.rows))
        size, need = (FREES_MILLI, cls.milli) if cls.milli else (FREES_CPU, max(1, cls.cpu_milli))
        return Ask(amounts, np.array(cls.cards, dtype=np.int64), nodes, ok, cls.whole, cls.share, size, need)

    def choice(self, options: int) -> Choice:
        """Scratch room for a request with so many card options."""
        if options not in self.choices:
            self.choices[options] = new_choice(self.field, options, len(self._session.gangs))
        return self.choices[options]


class State:
    """What one kind of claimant could gain where, for each level that was asked for."""

    def __init__(
        self, search: VictimSearch, session: Session, cls: TaskClass, nodes: Bools, limits: list[int], queue: int,
        ask: Callable[[Bools], Verdicts],
    ) -> None:  # fmt: skip
        # The search keeps its states; they must not keep it.
        self._search: VictimSearch = weakref.proxy(search)
        self._session = session
        tasks, field = session.tasks, search.field
        self.near = gangs_on(field, tasks.status, RUNNING, tasks.gang, nodes, len(session.gangs))
        self.near &= session.gangs.queue != queue
        candidates = self.near & ~search.barred
        self.verdict: Verdicts = ask(candidates) if candidates.any() else Verdict(frozenset(), (), {})
        if isinstance(self.verdict, GangVerdict):
            self.allowed: Bools = candidates & self.verdict.allowed
            ok: Bools = self.allowed[field.units[:, GANG]]
        else:
            self.allowed = candidates
            ok = candidates[field.units[:, GANG]] & _allowed_units(search, self.verdict)
        self.ask = search.ask(cls, nodes, ok)
        options = max(1, len(cls.cards))
        self._choice = search.choice(options)
        # With one option its limit is kept to at the end; several share a node's cpu, so it matters how far each goes.
        self._bounds: Ints = np.array([PLENTY] if options == 1 else limits, dtype=np.int64)
        self.ranks: list[int] = np.unique(search.rank_of(np.unique(field.units[ok, GANG]))).tolist()
        self._levels: dict[int, Level | None] = dict.fromkeys(self.ranks)
        self._queue = queue
        self._refused: tuple[Refusal, ...] | None = None if self.near.any() else ()

    def _level(self, rank: int) -> Level:
        """What is known of a level, up to date. O(tasks) the first time, then O(changed nodes)."""
        self._search.refresh()
        log, nodes = self._session.nodes.log, len(self._session.nodes)
        level = self._levels[rank]
        if level is not None and level.place == len(log):
            return level
        if level is None:
            options = len(self._bounds)
            level = Level(
                rank,
                np.zeros((nodes, options), dtype=np.int64),
                np.zeros(options, dtype=np.int64),
                new_heap(nodes),
                -1,
            )
            self._levels[rank] = level
        changed = np.unique(np.array(log[level.place :], dtype=np.int64)) if level.place >= 0 else None
        if changed is None or len(changed) * _REPAIR_SHARE > nodes:
            changed = np.arange(nodes, dtype=np.int64)
        room = np.empty((len(changed), len(self._bounds)), dtype=np.int64)
        capacity_of_all(self._search.field, self.ask, self._bounds, rank, changed, room)
        level.sums += room.sum(axis=0) - level.room[changed].sum(axis=0)
        level.room[changed] = room
        fill_heap(self._search.field, self.ask, self._choice, rank, level.heap, changed, len(changed))
        level.place = len(log)
        return level

    def refused(self) -> tuple[Refusal, ...]:
        """Candidates that rules or votes keep, each with its rule; the cheapest ones where there are many."""
        if self._refused is None:
            search, session = self._search, self._session
            field, verdict = search.field, self.verdict
            taken: Bools = np.zeros_like(self.near)
            taken[field.units[self.ask.ok & (field.units[:, LEVEL] < NEVER), GANG]] = True
            gangs = np.flatnonzero(self.near & ~taken)
            order = np.lexsort((gangs, search.work_of_gangs(gangs), search.rank_of(gangs)))
            self._refused = tuple(
                Refusal(session.gangs.names[gang], search.rule(gang, self._queue) or _voted(session, verdict, gang))
                for gang in gangs[order[:MOST_REFUSED]].tolist()
            )
        return self._refused

    @cached_property
    def rules(self) -> dict[str, str]:
        """The same by gang; not to be changed."""
        return {refusal.gang: refusal.rule for refusal in self.refused()}

    @cached_property
    def by_name(self) -> tuple[Refusal, ...]:
        """The same by name."""
        return tuple(sorted(self.refused(), key=lambda refusal: refusal.gang))

    def passed_over(self, chosen: list[Unit]) -> tuple[Refusal, ...]:
        """The cheapest gangs that may be taken, cost less than the chosen ones, and were not: they free too little."""
        session, units = self._session, self._search.field.units
        # The chosen ones may be on their way out already: their units say no longer what they were.
        top = max(self._search.rank_of_level(unit.level) for unit in chosen)
        work = sum(unit.work for unit in chosen)
        level = units[:, LEVEL]
        found = self.ask.ok & (units[:, UNIT_TASK] < 0) & (level <= top) & ((level < top) | (units[:, WORK] < work))
        taken = {unit.gang for unit in chosen}
        at = np.flatnonzero(found)
        order = at[np.lexsort((at, units[at, WORK], level[at]))][: MOST_PASSED_OVER + len(taken)]
        names = [session.gangs.names[gang] for gang in units[order, GANG].tolist()]
        return tuple(Refusal(name, TOO_LITTLE) for name in names if name not in taken)[:MOST_PASSED_OVER]

    def most(self, limits: list[int]) -> int:
        """How many tasks would fit if everybody left who may; an upper bound."""
        return max((self._bound(rank, limits) for rank in self._levels), default=0)

    def _bound(self, rank: int, limits: list[int]) -> int:
        return int(sum(min(fits, limit) for fits, limit in zip(self._level(rank).sums.tolist(), limits, strict=True)))

    def solve(self, count: int, limits: list[int]) -> list[Unit] | None:
        """The units to take for ``count`` tasks, by name, or None when nothing is enough."""
        at_most = np.array(limits, dtype=np.int64)
        for rank in self._levels:
            if self._bound(rank, limits) < count:
                continue
            found = solve(
                self._search.field,
                self.ask,
                at_most,
                self._choice,
                rank,
                self._level(rank).heap,
                count,
            )
            if found.size:
                return [self._search.unit(number) for number in found.tolist()]
        return None


def _voted(session: Session, verdict: Verdicts, gang: int) -> str:
    """What the votes say against a gang, or against the first of its members that has to stay."""
    if isinstance(verdict, GangVerdict):
        return verdict.rule(gang)
    tasks = (task for task in session.gangs.members(gang) if task in verdict.refused)
    first = min(tasks, key=session.tasks.keys.__getitem__, default=None)
    return "not every member may be taken" if first is None else verdict.refused[first]


def _allowed_units(search: VictimSearch, verdict: Verdict) -> Bools:
    """bool (units,): whole gangs and single members of which every task is allowed."""
    pieces = search.field.pieces
    refused = np.array([task not in verdict.allowed for task in pieces[:, TASK].tolist()], dtype=np.bool_)
    ok: Bools = np.ones(len(search.field.units), dtype=np.bool_)
    for column in (WHOLE, SINGLE):
        ok[pieces[refused & (pieces[:, column] >= 0), column]] = False
    return ok


def _gang_columns(session: Session) -> GangColumns:
    """The columns of the session's gangs, kept while the PodGroups are the very same."""
    groups, masks = session.gangs.groups, session.cluster.workspace.masks
    known = masks.get("gang columns")
    if isinstance(known, GangColumns) and known.groups is groups:
        return known
    priority: Ints = np.fromiter((group.priority for group in groups), dtype=np.int64, count=len(groups))
    priorities, rank = np.unique(priority, return_inverse=True)
    made = GangColumns(
        groups,
        priorities,
        rank.astype(np.int64),
        np.fromiter((group.preemptable is False or bool(group.spared) for group in groups), np.bool_, len(groups)),
        np.fromiter((group.evicted_policy is EvictedPolicy.NONE for group in groups), np.bool_, len(groups)),
        np.fromiter((group.namespace == PROTECTED_NAMESPACE for group in groups), np.bool_, len(groups)),
    )
    masks["gang columns"] = made
    return made
