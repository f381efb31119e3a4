"""What sessions ask of one gang after another, for all gangs at once. Where a plugin's function has a form (see
:mod:`scheduler_core.framework.forms`) only the gangs that it may have a word about are asked one by one."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from scheduler_core.algorithms.member_sums import waiting_members
from scheduler_core.framework.forms import Claimants, GangShare, ReadyKey, StaticKey, Suspects, forms_of
from scheduler_core.framework.job_order import JobOrder
from scheduler_core.framework.promises import Minimums
from scheduler_core.state.status import PENDING, Bools, Floats, Index, Ints

if TYPE_CHECKING:
    from scheduler_core.framework.session import Session


class GangColumns:
    """Columns over the gangs of a session, each made when it is first asked for."""

    def __init__(self, session: Session) -> None:
        self._session = session
        # What :func:`waiting_tasks` found for the first gangs that it was asked about, before any task moved.
        self.lined: tuple[Bools, Index, Ints] | None = None

    @cached_property
    def schedulable(self) -> Bools:
        """bool (G,): see :meth:`Session.schedulable`."""
        session = self._session
        gangs, queues = session.gangs, session.ledger.queues
        is_open = np.array([session.queue_is_open(q) for q in range(len(queues))] + [False], dtype=np.bool_)
        picky = np.array([queue.namespaces is not None for queue in queues] + [False], dtype=np.bool_)
        found: Bools = ~session.cluster.workspace.facts.held & is_open[gangs.queue]
        asked = found & (picky[gangs.queue] | self._suspect_classes | self.suspects("job_problem"))
        for gang in np.flatnonzero(asked).tolist():
            found[gang] = session.schedulable(gang)
        return found

    @cached_property
    def questionable(self) -> Bools:
        """bool (G,): gangs for which :meth:`Session.problem` may find one."""
        session = self._session
        known = [not queue.problem for queue in session.ledger.queues]
        found: Bools = ~np.array([*known, False], dtype=np.bool_)[session.gangs.queue]
        return found | session.cluster.workspace.facts.held | self._suspect_classes | self.suspects("job_problem")

    @cached_property
    def _suspect_classes(self) -> Bools:
        """Gangs with a waiting member that asks for what nothing can give."""
        session = self._session
        odd = np.array([cls.oversize_share for cls in session.cluster.classes.classes], dtype=np.bool_)
        return self.with_waiting(odd) if odd.any() else np.zeros(len(session.gangs), dtype=np.bool_)

    def with_waiting(self, classes: Bools) -> Bools:
        """bool (G,): gangs with a waiting member of one of ``classes`` (bool (K,))."""
        gangs, tasks = self._session.gangs, self._session.tasks
        found: Bools = np.zeros(len(gangs), dtype=np.bool_)
        if not classes.any():
            return found
        waiting, _ = members_waiting(self._session)
        found[tasks.gang[waiting[classes[tasks.cls[waiting]]]]] = True
        return found

    @cached_property
    def _alike(self) -> tuple[Ints, Ints, Ints]:
        """int64 (G,) each: the class that a gang's waiting members have in common, -1 = none; how many they are; which
        state of the gang this speaks of."""
        gangs, tasks = self._session.gangs, self._session.tasks
        waiting, _ = members_waiting(self._session)
        gang, cls = tasks.gang[waiting].astype(np.int64), tasks.cls[waiting].astype(np.int64)
        size = len(gangs)
        least = np.full(size, np.iinfo(np.int64).max, dtype=np.int64)
        most = np.full(size, -1, dtype=np.int64)
        np.minimum.at(least, gang, cls)
        np.maximum.at(most, gang, cls)
        counts = np.bincount(gang, minlength=size)
        return np.where(least == most, most, -1), counts, gangs.versions.copy()

    @cached_property
    def _alike_lists(self) -> tuple[list[int], list[int], Ints]:
        """The same, for single look-ups."""
        cls, count, seen = self._alike
        return cls.tolist(), count.tolist(), seen

    def waiting_classes(self, gangs: Ints) -> tuple[Ints, Ints]:
        """The class that all waiting members of each gang have, -1 = they differ or that is not known, and how many
        they are."""
        cls, count, seen = self._alike
        known = seen[gangs] == self._session.gangs.versions[gangs]
        return np.where(known, cls[gangs], -1), count[gangs]

    def waiting_class(self, gang: int) -> tuple[int, int] | None:
        """The class that all waiting members of a gang have, and how many they are; None where they differ."""
        cls, count, seen = self._alike_lists
        if cls[gang] < 0 or seen[gang] != self._session.gangs.versions[gang]:
            return None
        return cls[gang], count[gang]

    @cached_property
    def declared(self) -> Minimums:
        """What each of the workspace's declarations asks for, by its number in place of a gang's."""
        session = self._session
        declarations = session.cluster.workspace.gangs.declarations
        found = Minimums.empty(len(declarations))
        for number, group in enumerate(declarations):
            found.write(number, session.declared(group))
        return found

    def suspects(self, point: str) -> Bools:
        """bool (G,): gangs for which some function of the point may answer."""
        size = len(self._session.gangs)
        found: Bools = np.zeros(size, dtype=np.bool_)
        forms = forms_of(self._session.hooks, point)
        if forms is None:
            return np.ones(size, dtype=np.bool_)
        for parts in forms:
            for form in parts:
                if isinstance(form, Suspects):
                    found |= form.gangs
        return found

    def valid(self, chosen: Bools) -> Bools:
        """bool (G,): chosen, and no plugin says that the gang cannot start as it is; asked anew each time."""
        session, found = self._session, chosen.copy()
        for gang in np.flatnonzero(self.suspects("job_valid") & chosen).tolist():
            found[gang] = session.hooks.refusal("job_valid", gang) is None
        return found

    @cached_property
    def may_reclaim(self) -> Bools:
        """bool (G,): gangs that no plugin keeps from taking back."""
        session, size = self._session, len(self._session.gangs)
        forms = forms_of(session.hooks, "reclaimer")
        if forms is None:
            refusal = session.hooks.refusal
            return np.array([refusal("reclaimer", gang) is None for gang in range(size)], dtype=np.bool_)
        found: Bools = np.ones(size, dtype=np.bool_)
        for form in (form for parts in forms for form in parts):
            if isinstance(form, Claimants):
                found &= form.gangs
        return found

    def ready(self, gangs: Ints) -> Bools:
        """bool: whether each of the given gangs goes late where the order asks for readiness."""
        session = self._session
        forms = forms_of(session.hooks, "job_order") or []
        keys = [form for parts in forms for form in parts if isinstance(form, ReadyKey)]
        found: Bools = session.gangs.ready_count[gangs] >= session.gangs.min_member[gangs]
        asked = session.cluster.workspace.facts.roles[gangs] | session.gangs.has_best_effort[gangs]
        for place in np.flatnonzero(asked).tolist():
            found[place] = any(key.of_gang(int(gangs[place])) for key in keys)
        return found

    @cached_property
    def since(self) -> Floats:
        """float64 (G,): see :meth:`Session.waiting_since`."""
        session = self._session
        since, kept = session.cluster.workspace.facts.since, session.memory.submitted
        if not kept:
            return since
        since = since.copy()
        for gang, name in enumerate(session.cluster.workspace.lasting_names):
            if name in kept:
                since[gang] = min(since[gang], kept[name])
        return since

    @cached_property
    def name_rank(self) -> Ints:
        """int64 (G,): place in the order of ``namespace/name``."""
        return self._session.gangs.name_rank

    @cached_property
    def job_order(self) -> JobOrder | None:
        """The order of gangs in words; None where a plugin's key has no form, or two of them are a gang's share."""
        forms = forms_of(self._session.hooks, "job_order")
        kinds = [type(form) for parts in forms or () for form in parts]
        if forms is None or max(kinds.count(ReadyKey), kinds.count(GangShare)) > 1:
            return None
        return JobOrder(self._session, forms)


def waiting_tasks(session: Session, chosen: Bools) -> tuple[Index, Ints]:
    """Waiting members of the chosen gangs, gang by gang in task order. Returns: int32 flat, int64 (G + 1,): those of
    gang g at ``start[g]:start[g + 1]``. O(gangs + members of those that have any), and a sort for gangs whose members
    do not lie in order; a call for each where a plugin's key has no form."""
    forms = forms_of(session.hooks, "task_order")
    tasks, columns, unmoved = session.tasks, session.columns, not session.gangs.versions.any()
    if unmoved and columns.lined is not None and np.array_equal(columns.lined[0], chosen):
        return columns.lined[1].copy(), columns.lined[2].copy()
    slots, start = members_waiting(session, chosen)
    if forms is None:
        for first, last in zip(start[:-1].tolist(), start[1:].tolist(), strict=True):
            if last - first > 1:
                slots[first:last] = sorted(slots[first:last].tolist(), key=session.task_key)
        return slots.astype(np.int32), start
    keys = [form.values[slots] for parts in forms for form in parts if isinstance(form, StaticKey)]
    keys += [tasks.number[slots], tasks.created[slots]]
    _sort_within(session, slots, keys)
    found = slots.astype(np.int32)
    if unmoved:
        columns.lined = chosen.copy(), found.copy(), start.copy()
    return found, start


def members_waiting(session: Session, chosen: Bools | None = None) -> tuple[Ints, Ints]:
    """int64 flat, int64 (G + 1,): waiting members of the chosen gangs (bool (G,), None = all), gang by gang."""
    gangs = session.gangs
    counts = gangs.counts[PENDING]
    wanted = counts > 0 if chosen is None else chosen
    return waiting_members(wanted, counts, PENDING, session.tasks.status, gangs.start, gangs.member)


def _sort_within(session: Session, slots: Ints, keys: list[Ints | Floats]) -> None:
    """Sort ``slots``, which lie gang by gang, inside each gang."""
    gang = session.tasks.gang[slots]
    late, _ = _compared(gang, keys)
    if not late.any():
        return
    wrong: Bools = np.zeros(len(session.gangs), dtype=np.bool_)
    wrong[gang[1:][late]] = True
    at = np.flatnonzero(wrong[gang])
    order = np.lexsort((*(key[at] for key in reversed(keys)), gang[at]))
    slots[at] = slots[at[order]]
    moved = [key[at[order]] for key in keys]
    _, tied = _compared(gang[at], moved)
    # What is equal so far is ordered by the whole key, names included; runs of equals are short.
    found = slots[at]
    edges = np.flatnonzero(np.diff(np.concatenate([[False], tied, [False]]).astype(np.int8)))
    for first, last in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        found[first : last + 1] = sorted(found[first : last + 1].tolist(), key=session.task_key)
    slots[at] = found


def _compared(gang: Index, keys: list[Ints | Floats]) -> tuple[Bools, Bools]:
    """bool (n - 1,) twice, of each pair of neighbours: not in order though of one gang; equal in all keys."""
    equal = gang[1:] == gang[:-1]
    less: Bools = np.zeros(equal.shape, dtype=np.bool_)
    for key in keys:
        less |= equal & (key[:-1] < key[1:])
        equal &= key[:-1] == key[1:]
    return (gang[1:] == gang[:-1]) & ~less, equal
