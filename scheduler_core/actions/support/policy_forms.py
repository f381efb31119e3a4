"""What the policy comes to in arrays for the turns of action allocate, and what of it has to be asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from scheduler_core.framework.forms import (
    Form,
    Limits,
    Members,
    OfQueue,
    Overused,
    ShareKey,
    Silent,
    StaticKey,
    dense_ranks,
    forms_of,
    terms_of,
)
from scheduler_core.framework.kernels import tables
from scheduler_core.framework.kernels.columns import Rows
from scheduler_core.framework.kernels.turns import ASKS_END, ASKS_READY, ASKS_TASKS
from scheduler_core.framework.session import Session
from scheduler_core.state.queue_ledger import NO_LIMIT
from scheduler_core.state.status import PIPELINED, Bools, Floats, Index, Ints
from scheduler_core.state.task_class import TaskClass

TASK_POINTS = ("task_predicate", "task_node_order")
# Numbers beyond this are not exact as float64, as which shares are divided.
_EXACT = 2**53

Forms = list[Sequence[Form]]


class PolicyForms(NamedTuple):
    """The forms of all functions that have a say in the turns, None where Python is asked."""

    queue_order: Forms | None
    overused: Forms | None
    job_ready: Forms | None
    job_pipelined: Forms | None
    allocatable: Forms | None
    card_choice: Forms | None
    node_order: Forms

    @property
    def asks_queues(self) -> bool:
        """Python says which queue goes first."""
        return self.queue_order is None or self.overused is None


def policy_forms(session: Session) -> PolicyForms:
    hooks = session.hooks
    queue_order, overused = forms_of(hooks, "queue_order"), forms_of(hooks, "overused")
    shares = [form for parts in queue_order or () for form in parts if isinstance(form, ShareKey)]
    if not all(_exact(session, form.limits) for form in shares):
        queue_order = None
    allocatable = forms_of(hooks, "allocatable")
    kinds = [type(form) for parts in allocatable or () for form in parts]
    return PolicyForms(
        queue_order,
        overused if overused is None or len(overused) <= 1 else None,
        forms_of(hooks, "job_ready"),
        forms_of(hooks, "job_pipelined"),
        None if kinds.count(Limits) > 1 else allocatable,
        forms_of(hooks, "card_choice"),
        terms_of(hooks),
    )


def _exact(session: Session, limits: Ints) -> bool:
    """Shares of the limits are divisions of numbers that float64 holds exactly."""
    bounded = limits[limits < NO_LIMIT]
    return bool(max(bounded.max(initial=0), session.ledger.allocated.max(initial=0)) < _EXACT)


def asked_of_gangs(session: Session, forms: PolicyForms) -> npt.NDArray[np.int8]:
    """int8 (G,): what has to be asked about each gang, bits ``ASKS_…``."""
    gangs = session.gangs
    asks = np.zeros(len(gangs), dtype=np.int8)
    ends: Bools = (gangs.counts[PIPELINED] > 0) | gangs.has_best_effort
    ready = gangs.has_best_effort | _others(session, forms.job_ready)
    ends |= _others(session, forms.job_pipelined)
    asks[ready] |= ASKS_READY
    asks[ready | ends | session.compat] |= ASKS_END
    alone = single_tasks(session)
    mixed = alone.any() and any(of_queues(session, point, mixed=True) for point in TASK_POINTS)
    if mixed or session.candidates.samples:
        alone[:] = True
    asks[alone] |= ASKS_TASKS
    return asks


def _others(session: Session, forms: Forms | None) -> Bools:
    """bool (G,): gangs that are not decided by their members alone."""
    found: Bools = np.full(len(session.gangs), forms is None, dtype=np.bool_)
    for form in (form for parts in forms or () for form in parts):
        if isinstance(form, Members | Silent):
            found |= form.others
    return found


def single_tasks(session: Session) -> Bools:
    """bool (G,): gangs of whose single tasks plugins may say something."""
    return session.columns.suspects(TASK_POINTS[0]) | session.columns.suspects(TASK_POINTS[1])


def of_queues(session: Session, point: str, mixed: bool = False) -> list[Callable[[int], Bools | Floats]]:
    """What plugins say of all tasks of a queue; nothing where single tasks are asked about too, unless ``mixed``."""
    if not mixed and single_tasks(session).any():
        return []
    forms = forms_of(session.hooks, point) or []
    return [form.nodes for parts in forms for form in parts if isinstance(form, OfQueue)]


class Kinds:
    """Kinds of tasks: their class, and what plugins say of all tasks of their queue. A kind is a number; kinds of one
    class lie side by side."""

    def __init__(self, session: Session) -> None:
        self._session = session
        masks, scores = (of_queues(session, point) for point in TASK_POINTS)
        queues = range(len(session.ledger)) if masks or scores else ()
        known: dict[tuple[bytes, ...], int] = {}
        self._said: list[tuple[list[Bools | Floats], list[Bools | Floats]]] = []
        self._of_queue: Ints = np.zeros(len(session.ledger) + 1, dtype=np.int64)
        for queue in queues:
            said = [call(queue) for call in masks], [call(queue) for call in scores]
            key = tuple(vector.tobytes() for part in said for vector in part)
            self._of_queue[queue] = known.setdefault(key, len(known))
            if len(self._said) < len(known):
                self._said.append(said)
        self._said = self._said or [([], [])]

    def __len__(self) -> int:
        return len(self._session.cluster.classes) * len(self._said)

    def of_tasks(self, slots: Index) -> Ints:
        """int64: the kinds of some tasks."""
        tasks, gangs = self._session.tasks, self._session.gangs
        cls = tasks.cls[slots].astype(np.int64)
        if len(self._said) == 1:
            return cls
        return cls * len(self._said) + self._of_queue[gangs.queue[tasks.gang[slots]]]

    def cls(self, kind: int) -> TaskClass:
        return self._session.cluster.classes[kind // len(self._said)]

    def nodes(self, kind: int) -> Bools | None:
        """bool (N,): where tasks of the queue may be; None = anywhere."""
        masks = self._said[kind % len(self._said)][0]
        return np.logical_and.reduce(masks) if masks else None

    def scores(self, kind: int) -> list[Floats]:
        """float64 (N,) each: what is added for tasks of the queue."""
        return [np.asarray(score, dtype=np.float64) for score in self._said[kind % len(self._said)][1]]


def queue_rows(session: Session, forms: PolicyForms) -> tuple[Ints, Rows, Floats, Rows]:
    """The limits of which the queues' shares are parts (of share s those at ``[s]:[s + 1]`` of the first array), the
    least shares, and where the turns of queues end."""
    queues = len(session.ledger)
    shares = [form for found in forms.queue_order or () for form in found if isinstance(form, ShareKey)]
    ends = [form for found in forms.overused or () for form in found if isinstance(form, Overused)]
    sums = [[[row] for row in range(len(form.limits))] if form.sums is None else form.sums for form in shares]
    none: Floats = np.zeros(queues, dtype=np.float64)
    return (
        tables.starts_of(np.array([len(form.limits) for form in shares], dtype=np.int64)),
        tables.rows_of_all(queues, [(of_share, form.limits) for of_share, form in zip(sums, shares, strict=True)]),
        np.array([none if form.least is None else form.least for form in shares]).reshape(len(shares), queues),
        tables.rows_of_all(queues, [(form.sums, form.limits) for form in ends]),
    )


def queue_ranks(session: Session, forms: Forms) -> Ints:
    """int64 (shares + 1, Q): ranks in the queue order before, between and behind the shares."""
    queues, ranks = session.ledger.queues, []
    values: list[Ints | Floats] = []
    for form in (form for group in forms for form in group):
        if isinstance(form, StaticKey):
            values.append(form.values)
        else:
            ranks.append(dense_ranks(values, len(queues)))
            values = []
    names = sorted(range(len(queues)), key=lambda q: queues[q].name)
    rank = np.empty(len(queues), dtype=np.int64)
    rank[names] = np.arange(len(queues))
    born = np.array([queue.created for queue in queues], dtype=np.float64)
    return np.array([*ranks, dense_ranks([*values, born, rank], len(queues))])
