"""What one kind of claimant could gain where, kept for all of its kind and repaired for the nodes that change."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from scheduler_core.actions.support.receipts import MOST_CANDIDATES, MOST_DEARER, MOST_REFUSED, Option, standing_rows
from scheduler_core.algorithms.victims import Unit
from scheduler_core.algorithms.victims_alone import NOTE, note_alone
from scheduler_core.algorithms.victims_beside import rules_beside
from scheduler_core.algorithms.victims_field import gangs_on
from scheduler_core.algorithms.victims_heap import Heap, new_heap
from scheduler_core.algorithms.victims_room import (
    GANG,
    LEVEL,
    NEVER,
    PLENTY,
    SINGLE,
    TASK,
    UNIT_TASK,
    WHOLE,
    WORK,
    capacity_of_all,
)
from scheduler_core.algorithms.victims_search import fill_heap, solve
from scheduler_core.framework.combine import Verdict
from scheduler_core.framework.gang_votes import GangVerdict
from scheduler_core.framework.session import Session
from scheduler_core.model.decision import Refusal
from scheduler_core.model.rules import Rule
from scheduler_core.state.status import RUNNING, Bools, Ints
from scheduler_core.state.task_class import TaskClass

if TYPE_CHECKING:
    from scheduler_core.actions.support.victim_search import VictimSearch

# With more changed nodes than this part of all, a state is made anew instead of repaired.
_REPAIR_SHARE = 4

# A record names at most so many that might have been taken and were cheaper than those that were.
MOST_PASSED_OVER = 10

Verdicts = Verdict | GangVerdict


class Level(msgspec.Struct, gc=False):
    """What a state knows of one level: what each node takes if all units up to it leave, and the heap of offers."""

    rank: int
    room: Ints
    sums: Ints
    heap: Heap
    place: int


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
        near = gangs_on(field, tasks.status, RUNNING, tasks.gang, nodes, len(session.gangs))
        candidates = near & (session.gangs.queue != queue) & ~search.barred
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
        # Seen now: a gang evicted later was no refused candidate.
        taken: Bools = np.zeros_like(near)
        taken[field.units[ok & (field.units[:, LEVEL] < NEVER), GANG]] = True
        self._kept: Bools = near & ~taken
        # Numbers of the units that were found last.
        self._solved: list[int] = []
        self._refused: dict[int, tuple[Refusal, ...]] = {}
        self._rules: dict[int, dict[str, str]] = {}
        self._spared: dict[int, tuple[tuple[Option, ...], Bools]] = {}

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
                rank, np.zeros((nodes, options), dtype=np.int64), np.zeros(options, dtype=np.int64), new_heap(nodes), -1
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

    def refused(self, queue: int) -> tuple[Refusal, ...]:
        """Candidates that rules or votes keep, each with its rule; the cheapest ones where there are many. Claimants of
        several queues may share the state, but no claimant's own queue has candidates."""
        if queue not in self._refused:
            search, session, verdict = self._search, self._session, self.verdict
            kept: Bools = self._kept & (session.gangs.queue != queue)
            gangs = np.flatnonzero(kept)
            gangs = gangs[np.lexsort((gangs, search.work_of_gangs(gangs), search.rank_of(gangs)))][:MOST_REFUSED]
            self._refused[queue] = tuple(
                Refusal(session.gangs.names[gang], search.rule(gang, queue) or _voted(session, verdict, gang))
                for gang in gangs.tolist()
            )
            costs = search.field.units[search.whole[gangs[:MOST_CANDIDATES]]][:, [GANG, WORK, self.ask.size]].tolist()
            options = zip(costs, self._refused[queue], strict=False)
            self._spared[queue] = (
                tuple([Option(gang, work, size, one.rule) for (gang, work, size), one in options]),
                kept,
            )
        return self._refused[queue]

    def rules(self, queue: int) -> dict[str, str]:
        """The same by gang; not to be changed."""
        if queue not in self._rules:
            self._rules[queue] = {refusal.gang: refusal.rule for refusal in self.refused(queue)}
        return self._rules[queue]

    def by_name(self, queue: int) -> tuple[Refusal, ...]:
        """The same by name."""
        return tuple(sorted(self.refused(queue), key=lambda refusal: refusal.gang))

    def spared(self, queue: int) -> tuple[tuple[Option, ...], Bools]:
        """The cheapest of the candidates that rules or votes keep, and bool (G,), all of them; not to be changed."""
        self.refused(queue)
        return self._spared[queue]

    def standing(self) -> Ints:
        """int64 (any, 4): who may be taken whole at the moment, see :class:`Standing`."""
        return standing_rows(self._search.field.units, self.ask.ok, self.ask.size)

    def was_standing(self, units: Ints) -> Bools:
        """bool: which of these units are whole gangs that might be taken before they left."""
        whole: Bools = self.ask.ok[units] & (self._search.field.units[units, UNIT_TASK] < 0)
        return whole

    def considered(self, queue: int) -> Bools:
        """bool (G,): who comes into question at the moment, those that may not be taken included."""
        units = self._search.field.units
        found: Bools = self.spared(queue)[1].copy()
        found[units[self.ask.ok & (units[:, LEVEL] < NEVER), GANG]] = True
        return found

    def passed_over(self, chosen: list[Unit], count: int, limits: list[int]) -> tuple[Option, ...]:
        """The cheapest gangs that may be taken, cost less than the chosen ones together, and were not, each with why.
        ``chosen``: what :meth:`solve` found last, for ``count`` tasks and with these limits."""
        units = self._search.field.units
        # The chosen ones may be on their way out already: their units say no longer what they were.
        top = max(self._search.rank_of_level(unit.level) for unit in chosen)
        work = sum(unit.work for unit in chosen)
        level = units[:, LEVEL]
        found = self.ask.ok & (units[:, UNIT_TASK] < 0) & (level <= top) & ((level < top) | (units[:, WORK] < work))
        taken = {unit.gang for unit in chosen}
        at = np.flatnonzero(found)
        order = at[np.lexsort((at, units[at, WORK], level[at]))][: MOST_PASSED_OVER + len(taken)]
        found_options = self._options(order, taken)[:MOST_PASSED_OVER]
        return tuple([self._with_room(one, count, limits) for one in found_options])

    def _with_room(self, one: Option, count: int, limits: list[int]) -> Option:
        """The option with what there would be if its gang alone left, where room is what decided."""
        if one.rule != Rule.TOO_LITTLE.text():
            return one
        note, most = np.zeros(NOTE, dtype=np.int64), np.array(limits, dtype=np.int64)
        alone: Bools = np.zeros(len(self._search.field.units), dtype=np.bool_)
        unit, fits = int(self._search.whole[one.gang]), np.zeros_like(most)
        note_alone(self._search.field, self.ask, most, unit, count, alone, fits, note)
        return one._replace(room=tuple(note.tolist()))

    def next_dearer(self, chosen: list[Unit]) -> tuple[Option, ...]:
        """The cheapest gangs that may be taken and cost as much as the chosen ones together, or more, each with why."""
        units = self._search.field.units
        top = max(self._search.rank_of_level(unit.level) for unit in chosen)
        work, taken = sum(unit.work for unit in chosen), {unit.gang for unit in chosen}
        level = units[:, LEVEL]
        found = self.ask.ok & (units[:, UNIT_TASK] < 0) & (level < NEVER)
        found &= (level > top) | ((level == top) & (units[:, WORK] >= work))
        at, most = np.flatnonzero(found), MOST_DEARER + len(taken)
        order: list[int] = []
        while at.size and len(order) < most:
            lowest = level[at] == level[at].min()
            equal, at = at[lowest], at[~lowest]
            lost = units[equal, WORK]
            if equal.size > most:
                equal = equal[lost <= np.partition(lost, most - 1)[most - 1]]
            order += equal[np.lexsort((equal, units[equal, WORK]))].tolist()
        found_options = self._options(np.array(order[:most], dtype=np.int64), taken)[:MOST_DEARER]
        room = Rule.TOO_LITTLE.text()
        return tuple([one._replace(rule=Rule.AS_DEAR.text()) if one.rule == room else one for one in found_options])

    def _options(self, order: Ints, taken: set[str]) -> tuple[Option, ...]:
        """Units as options, without the gangs that are taken."""
        session, units = self._session, self._search.field.units
        rules = rules_beside(units, self.ask.size, order.tolist(), self._solved)
        rows = units[order][:, [GANG, WORK, self.ask.size]].tolist()
        return tuple(
            Option(gang, work, frees, rule.text())
            for (gang, work, frees), rule in zip(rows, rules, strict=True)
            if session.gangs.names[gang] not in taken
        )

    def most(self, limits: list[int]) -> int:
        """How many tasks would fit if all units left that may; an upper bound."""
        return max((self._bound(rank, limits) for rank in self._levels), default=0)

    def _bound(self, rank: int, limits: list[int]) -> int:
        return int(sum(min(fits, limit) for fits, limit in zip(self._level(rank).sums.tolist(), limits, strict=True)))

    def solve(self, count: int, limits: list[int]) -> list[Unit] | None:
        """The units to take for ``count`` tasks, by name, or None when nothing is enough."""
        at_most = np.array(limits, dtype=np.int64)
        for rank in self._levels:
            if self._bound(rank, limits) < count:
                continue
            found = solve(self._search.field, self.ask, at_most, self._choice, rank, self._level(rank).heap, count)
            if found.size:
                self._solved = found.tolist()
                return [self._search.unit(number) for number in found.tolist()]
        return None


def _voted(session: Session, verdict: Verdicts, gang: int) -> str:
    """What the votes say against a gang, or against the first of its members that has to stay."""
    if isinstance(verdict, GangVerdict):
        return verdict.rule(gang)
    tasks = (task for task in session.gangs.members(gang) if task in verdict.refused)
    first = min(tasks, key=session.tasks.keys.__getitem__, default=None)
    return Rule.NOT_EVERY_MEMBER.text() if first is None else verdict.refused[first]


def _allowed_units(search: VictimSearch, verdict: Verdict) -> Bools:
    """bool (units,): whole gangs and single members of which every task is allowed."""
    pieces = search.field.pieces
    refused = np.array([task not in verdict.allowed for task in pieces[:, TASK].tolist()], dtype=np.bool_)
    ok: Bools = np.ones(len(search.field.units), dtype=np.bool_)
    for column in (WHOLE, SINGLE):
        ok[pieces[refused & (pieces[:, column] >= 0), column]] = False
    return ok
