"""What a plugin's function comes to in arrays, for the compiled loops.

A plugin that has :meth:`Plugin.compiled_form` says for an extension point what its function amounts to; the loops of
:mod:`scheduler_core.framework.kernels` then decide the same without calling it. Where one of the functions that matter
has no form, the loop asks it and goes on, and decides the same more slowly."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import numpy.typing as npt

from scheduler_core.framework.kernels.terms import OWN
from scheduler_core.state.status import Bools, Floats, Index, Ints
from scheduler_core.state.task_class import TaskClass

if TYPE_CHECKING:
    from scheduler_core.algorithms.fragmentation import Mix
    from scheduler_core.framework.combine import Hooks
    from scheduler_core.framework.named_resources import NamedResources
    from scheduler_core.framework.resource_rows import ResourceRows


class StaticKey(msgspec.Struct, frozen=True, gc=False):
    """Orders: a sort key that nothing in a session changes; the lowest goes first. ``values``: by gang, queue or task
    slot."""

    values: Ints | Floats


class ReadyKey(msgspec.Struct, frozen=True, gc=False):
    """``job_order``: gangs that cannot run yet go before those that can; at most one in a policy. ``of_gang``: whether
    a gang can run, for those of which more is demanded than minMember."""

    of_gang: Callable[[int], bool]


class GangShare(msgspec.Struct, frozen=True, gc=False):
    """``job_order``: the gang with the smaller dominant share goes first; at most one in a policy. ``rows``: what
    counts, and the totals; numbers that float64 holds exactly."""

    rows: ResourceRows

    def values(self) -> Floats:
        """float64 (G,): the shares as they are now."""
        held, total = self.rows.held_by_gangs(), np.array(self.rows.total, dtype=np.int64)[:, None]
        parts = np.where(total > 0, held / np.maximum(total, 1), 1.0)
        found: Floats = np.where(held > 0, parts, 0.0).max(axis=0, initial=0.0)
        return found


class ShareKey(msgspec.Struct, frozen=True, gc=False):
    """``queue_order``: the queue with the smaller largest used part of a limit; several in a policy follow each other.
    ``limits``: int64 (rows, Q), ``NO_LIMIT`` = none. ``sums``: the ledger rows that each row adds up; None = the rows
    are those of the ledger. ``least``: float64 (Q,), the share of a queue that uses nothing; None = 0."""

    limits: Ints
    sums: list[list[int]] | None = None
    least: Floats | None = None


class Overused(msgspec.Struct, frozen=True, gc=False):
    """``overused``: the queue has bound as much as the limits of all rows; see :class:`ShareKey`."""

    limits: Ints
    sums: list[list[int]]


class Members(msgspec.Struct, frozen=True, gc=False):
    """``job_ready``, ``job_pipelined``: minMember members are in place (or promised), for gangs without more demands.
    ``others``: bool (G,), gangs of which more is demanded; they are asked about."""

    others: Bools


class Silent(msgspec.Struct, frozen=True, gc=False):
    """``job_pipelined``, ``job_enqueueable``: no say but about some gangs, which are asked about. ``others``: bool
    (G,), gangs about which the function may decide. ``permits``: of the others it permits all, instead of abstaining;
    for ``job_enqueueable``."""

    others: Bools
    permits: bool = False


class Suspects(msgspec.Struct, frozen=True, gc=False):
    """``job_valid``, ``job_problem``, ``task_predicate``, ``task_node_order``: for which gangs the function may answer.
    ``gangs``: bool (G,); for the others it surely answers None."""

    gangs: Bools


class OfQueue(msgspec.Struct, frozen=True, gc=False):
    """``task_predicate``, ``task_node_order``: the same for all tasks of a queue. ``nodes``: by number of the queue,
    for a predicate bool (N,), for a score float64 (N,)."""

    nodes: Callable[[int], Bools | Floats]


class Limits(msgspec.Struct, frozen=True, gc=False):
    """``allocatable``: what the queue's tasks have and are promised, and the task, stay within limits. ``limits``:
    int64 (D, Q), rows of the ledger, ``NO_LIMIT`` = none. ``named``: bool (K,), the limit of a card counts for tasks of
    the class anywhere. ``counted``: bool (Q,), the limit of a card counts for all tasks of the queue."""

    limits: Ints
    named: Bools
    counted: Bools


class RowLimits(msgspec.Struct, frozen=True, gc=False):
    """``allocatable``: what the queue's tasks have and are promised, and the task, stay within limits by resource.
    ``rows``: the resources. ``limits``: int64 (rows, Q)."""

    rows: ResourceRows
    limits: Ints


class RowCeilings(msgspec.Struct, frozen=True, gc=False):
    """``job_enqueueable``: a gang's minimum, what is in use and what is promised stay within limits by resource.

    Attributes:
        rows: the resources. limits, used: int64 (rows, Q); of the gang's queue, or what is so for all queues together.
        whole: they are of all queues together, and so are the promises that count. waved: bool (G,), gangs that are let
        in without a look. back: int64 (rows, Q), what a gang of the queue could take back and does not count as used;
        None = nothing. takes_back: bool (G,), who may take back. line, held: int64 (rows, Q), a gang takes back only
        within the line of its queue, by what it holds."""

    rows: ResourceRows
    limits: Ints
    used: Ints
    whole: bool
    waved: Bools
    back: Ints | None = None
    takes_back: Bools | None = None
    line: Ints | None = None
    held: Ints | None = None


class Ceilings(msgspec.Struct, frozen=True, gc=False):
    """``job_enqueueable``: a gang's minimum, what is in use and what is promised stay within limits.

    Those of its queue and those of the cluster; as :class:`scheduler_core.framework.quota.Book` tests it.

    Attributes:
        limits, used: int64 (D, Q), rows of the ledger. For cards only what is asked for by name counts here. total:
        int64 (D,), limits of the cluster. in_use: int64 (2, D), of the cluster, without and with what could be taken
        back. back: int8 (G,), which of the two counts for a gang."""

    limits: Ints
    used: Ints
    total: Ints
    in_use: Ints
    back: npt.NDArray[np.int8]


class Claimants(msgspec.Struct, frozen=True, gc=False):
    """``reclaimer``: whom the function lets take back. ``gangs``: bool (G,)."""

    gangs: Bools


class Term(msgspec.Struct, frozen=True, gc=False):
    """``node_order``: one summand; those of a plugin are added in their order, then the plugins.

    Attributes:
        kind: of :mod:`scheduler_core.framework.kernels.terms`. weight: factor. of_class: for ``STATIC``, float64 (N,)
        of a class, or None for all zero. resources, row_weights: for ``PACK`` and ``SHAPE``, which resources count and
        what each weighs. line: for ``SHAPE``, where its points are (percent in use, rising) and the score at each,
        float64. fragments: for ``FRAGMENTS``, the usual tasks, and int64 (3,), the most cpu, memory and milli-cards of
        any node. call: for ``OWN``, the function itself."""

    kind: int
    weight: float = 1.0
    of_class: Callable[[TaskClass], Floats | None] | None = None
    resources: NamedResources | None = None
    row_weights: Floats | None = None
    line: tuple[Floats, Floats] | None = None
    fragments: tuple[Mix, Ints] | None = None
    call: Callable[[TaskClass, Index | slice], Floats] | None = None


Form = (
    StaticKey
    | ReadyKey
    | GangShare
    | ShareKey
    | Members
    | Silent
    | Suspects
    | OfQueue
    | Limits
    | Overused
    | RowLimits
    | RowCeilings
    | Ceilings
    | Claimants
    | Term
)


def forms_of(hooks: Hooks, point: str) -> list[Sequence[Form]] | None:
    """The forms of all functions of a point, in the order of the policy; None when one has none."""
    found = []
    for _, call in hooks.flat(point):
        forms = form_of(call, point)
        if forms is None:
            return None
        found.append(forms)
    return found


def terms_of(hooks: Hooks) -> list[Sequence[Form]]:
    """The terms of the node score, plugin by plugin; a function without a form is a term of its own."""
    flat = hooks.flat("node_order")
    found = [(form_of(call, "node_order"), call) for _, call in flat]
    return [[Term(OWN, call=call)] if forms is None else forms for forms, call in found]


def form_of(call: Callable[..., Any], point: str) -> Sequence[Form] | None:
    """The form of one function, None = it has none, or a subclass answers otherwise than the class with the form."""
    plugin = getattr(call, "__self__", None)
    declare = getattr(plugin, "compiled_form", None)
    if declare is None:
        return None
    if _is_changed(type(plugin), point):  # type: ignore[arg-type]  # a class is hashable
        return None
    answer: Sequence[Form] | None = declare(point)
    return answer


@lru_cache(maxsize=4096)
def _is_changed(plugin: type, point: str) -> bool:
    """Whether a subclass has the function anew and the form of its base."""
    for owner in inspect.getmro(plugin):
        if "compiled_form" in vars(owner):
            return False
        if point in vars(owner):
            return True
    return False


def dense_ranks(values: Sequence[npt.NDArray[Any]], size: int) -> Ints:
    """int64 (size,): place of each subject in the order of its keys, the first array first; equal keys, equal place."""
    if not values or not size:
        return np.zeros(size, dtype=np.int64)
    order = np.lexsort(tuple(reversed(values)))
    new = np.zeros(size, dtype=np.bool_)
    for column in values:
        in_order = column[order]
        new[1:] |= in_order[1:] != in_order[:-1]
    ranks = np.empty(size, dtype=np.int64)
    ranks[order] = np.cumsum(new)
    return ranks
