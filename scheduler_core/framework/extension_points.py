"""The extension points: what a plugin may have, how the answers of several are combined, which switch governs them.

A plugin takes part at a point by having a method of its name, with its arguments and its answer.

Source: volcano-semantics 1.3 (switches) and 1.4 (combination rules). Orders are sort keys instead of comparisons:
the keys of the plugins, one after the other, decide exactly as "the first comparison that is not zero wins"."""

from __future__ import annotations

import enum
import inspect
from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
import numpy as np

from scheduler_core.model.errors import BadInput

if TYPE_CHECKING:
    from scheduler_core.framework.combine import Ballot, Opinion
    from scheduler_core.framework.demand import Demand, Shortfall
    from scheduler_core.framework.pod_points import Deny, Nomination, Permit
    from scheduler_core.model.pod import ServiceType
    from scheduler_core.model.resources import Amount
    from scheduler_core.state.status import Bools, Floats
    from scheduler_core.state.task_class import TaskClass

Where = slice | np.ndarray[tuple[int], np.dtype[np.intp]]


class Combine(enum.StrEnum):
    """How the answers of the registered plugins become one."""

    KEY = "key"  # sort keys one after the other
    VOTE = "vote"  # any reject refuses; at the end of a tier with a permit, permitted
    ALL = "all"  # every one must agree, over all tiers; the first refusal is the answer
    ANY = "any"  # one is enough, over all tiers
    FIRST_TIER_ALL = "first_tier_all"  # only the first tier with a registrant, all of it
    VICTIMS = "victims"  # intersection in a tier, veto by an empty answer
    UNION = "union"  # union in a tier, the first tier that names any
    MASKS = "masks"  # node masks, all must hold
    SUM = "sum"  # node scores are added
    CALL_ALL = "call_all"  # no answer
    FIRST = "first"  # the first registrant's answer


class ExtensionPoint(msgspec.Struct, frozen=True, gc=False):
    """One of them.

    Attributes:
        name: of the method.
        combine: rule of combination.
        switch: key of :attr:`PluginOption.switches` that turns it off; empty = no switch."""

    name: str
    combine: Combine
    switch: str = ""


_F = TypeVar("_F", bound=Callable[..., Any])


def _point(combine: Combine, switch: str = "") -> Callable[[_F], _F]:
    def declare(function: _F) -> _F:
        function.extension_point = ExtensionPoint(function.__name__, combine, switch)  # type: ignore[attr-defined]  # set here
        return function

    return declare


class ExtensionPoints:
    """The methods that a plugin may have.

    Gangs, tasks, queues, nodes and card types are numbers of the session's tables. A mask is bool (N,), with the reason
    that is counted for the nodes that it refuses; a second one holds once what leaves has left. In the per-pod cycle
    ``predicate`` and ``node_order`` are filter and score."""

    @_point(Combine.KEY, "queue_order")
    def queue_order(self, queue: int, /) -> tuple[Any, ...]:
        """Place of a queue, the lowest key first."""

    @_point(Combine.KEY, "job_order")
    def job_order(self, gang: int, /) -> tuple[Any, ...]:
        """Place of a gang in its queue."""

    @_point(Combine.KEY, "task_order")
    def task_order(self, task: int, /) -> tuple[Any, ...]:
        """Place of a task in its gang."""

    @_point(Combine.KEY)
    def victim_queue_order(self, queue: int, reclaimer_queue: int, /) -> tuple[Any, ...]:
        """From which queue is taken first."""

    @_point(Combine.ALL)
    def job_valid(self, gang: int, /) -> str | None:
        """Why the gang cannot start as it is."""

    @_point(Combine.ALL, "job_ready")
    def job_ready(self, gang: int, /) -> bool:
        """Whether the gang may run with what it has."""

    @_point(Combine.VOTE, "job_pipelined")
    def job_pipelined(self, gang: int, /) -> Ballot:
        """Whether it could run once what leaves has left."""

    @_point(Combine.FIRST_TIER_ALL, "job_starving")
    def job_starving(self, gang: int, /) -> bool:
        """Whether it may take from others."""

    @_point(Combine.VOTE, "job_enqueued")
    def job_enqueueable(self, gang: int, demand: Demand, /) -> Ballot | Shortfall:
        """Whether it is let in, by what it needs to start."""

    @_point(Combine.CALL_ALL, "job_enqueued")
    def job_enqueued(self, gang: int, /) -> None:
        """It has been let in."""

    @_point(Combine.ANY, "overused")
    def overused(self, queue: int, /) -> bool:
        """The queue takes no turn."""

    @_point(Combine.ALL, "allocatable")
    def allocatable(self, queue: int, cls: TaskClass, card: int, /) -> Shortfall | None:
        """What the quota lacks for one task on a card type (-1 = none)."""

    @_point(Combine.ALL, "preemptive")
    def preemptive(self, queue: int, cls: TaskClass, card: int, /) -> Shortfall | None:
        """The same on room that is taken from others."""

    @_point(Combine.VICTIMS, "preemptable")
    def preemptable(self, preemptor: int, candidates: Sequence[int], /) -> Opinion:
        """Which tasks a task of the same queue may take."""

    @_point(Combine.VICTIMS, "reclaimable")
    def reclaimable(self, reclaimer: int, candidates: Sequence[int], /) -> Opinion:
        """Which tasks of other queues a task may take."""

    @_point(Combine.VICTIMS)
    def unified_evictable(self, evictor: int, candidates: Sequence[int], /) -> Opinion:
        """The same for actions over gangs, in all queues."""

    @_point(Combine.UNION, "victim")
    def victim_tasks(self, candidates: Sequence[int], /) -> dict[int, str]:
        """Tasks that have to leave by themselves, and why."""

    @_point(Combine.MASKS, "predicate")
    def predicate(self, cls: TaskClass, /) -> Iterable[tuple[str, Bools] | tuple[str, Bools, Bools]]:
        """Nodes that a task of the class may use, by reason."""

    @_point(Combine.SUM, "node_order")
    def node_order(self, cls: TaskClass, where: Where, /) -> Floats:
        """Score of the nodes at ``where`` for a task of the class."""

    @_point(Combine.MASKS, "predicate")
    def task_predicate(self, task: int, /) -> tuple[str, Bools] | tuple[str, Bools, Bools] | None:
        """What one task adds to the predicates of its class."""

    @_point(Combine.SUM, "node_order")
    def task_node_order(self, task: int, /) -> Floats | None:
        """What one task adds to the score of all nodes."""

    @_point(Combine.FIRST, "node_order")
    def card_choice(self, cls: TaskClass, card: int, node: int, /) -> tuple[int, ...] | None:
        """Cards of the node; those without room are passed over."""

    @_point(Combine.FIRST, "target_job")
    def target_job(self, gangs: Sequence[int], /) -> int | None:
        """The gang that nodes are kept for."""

    @_point(Combine.CALL_ALL, "reserved_nodes")
    def reserved_nodes(self, gang: int, kept: Sequence[str], /) -> list[str] | None:
        """Nodes that are enough for a gang."""

    @_point(Combine.KEY)
    def queue_sort(self, task: int, /) -> tuple[Any, ...]:
        """Place of a pod in the per-pod cycle; one plugin only."""

    @_point(Combine.ALL)
    def pre_filter(self, task: int, /) -> str | Deny | None:
        """Why the cycle ends before it begins."""

    @_point(Combine.FIRST)
    def post_filter(self, task: int, dry_run: Any, /) -> Nomination | None:
        """Room that could be made for a pod without one."""

    @_point(Combine.ALL)
    def pre_score(self, task: int, nodes: Bools, /) -> str | None:
        """Why the cycle ends before the score."""

    @_point(Combine.CALL_ALL)
    def normalize_score(self, task: int, scores: Floats, /) -> Floats:
        """The scores anew, one plugin after the other."""

    @_point(Combine.ALL)
    def reserve(self, task: int, node: int, /) -> str | None:
        """Why the pod may not have its place."""

    @_point(Combine.CALL_ALL)
    def unreserve(self, task: int, node: int, /) -> None:
        """Its place is taken back."""

    @_point(Combine.ALL)
    def permit(self, task: int, node: int, /) -> Permit:
        """Whether it is bound, waits, or goes back."""

    @_point(Combine.ALL)
    def pre_bind(self, task: int, node: int, /) -> str | None:
        """Why it may not be bound."""

    @_point(Combine.FIRST)
    def bind(self, task: int, node: int, /) -> bool | str:
        """True = bound, False = not mine, or why not."""

    @_point(Combine.CALL_ALL)
    def post_bind(self, task: int, node: int, /) -> None:
        """It is bound."""

    @_point(Combine.ALL)
    def job_problem(self, gang: int, /) -> str | None:
        """What is wrong with a gang as it is written."""

    @_point(Combine.FIRST)
    def quota_shortfall(self, gang: int, demand: Demand, empty: bool = False, /) -> Shortfall | None:
        """What its quota lacks now, or if nothing of it were in use."""

    @_point(Combine.ALL, "reclaimable")
    def reclaimer(self, gang: int, /) -> str | None:
        """Why a gang takes back from nobody."""

    @_point(Combine.FIRST)
    def service_type(self, gang: int, /) -> ServiceType:
        """What a gang is for."""

    @_point(Combine.FIRST)
    def quota_charge(self, cpu_milli: int, memory_mib: int, with_cards: bool, /) -> tuple[int, int]:
        """What of cpu and memory counts against a queue."""

    @_point(Combine.CALL_ALL)
    def sums_made(self, /) -> None:
        """The sums of the queues are made."""

    @_point(Combine.CALL_ALL)
    def overruled(self, gang: int, demand: Demand, /) -> None:
        """Another plugin refuses a gang that this one lets in (compatibility)."""

    @_point(Combine.CALL_ALL)
    def bind_notes(self, task: int, /) -> dict[str, str]:
        """Annotations that go with a bind."""

    @_point(Combine.ANY, "job_pipelined")
    def holds_partly(self, gang: int, /) -> bool:
        """A gang that cannot start with what it found keeps it."""

    @_point(Combine.FIRST)
    def queue_deserved(self, queue: int, /) -> Amount:
        """What a queue deserves, for the result."""

    @_point(Combine.FIRST)
    def queue_share(self, queue: int, /) -> float:
        """How much of that is in use, for the result."""


EXTENSION_POINTS: tuple[ExtensionPoint, ...] = tuple(
    method.extension_point for method in vars(ExtensionPoints).values() if hasattr(method, "extension_point")
)
# Names that are taken for one another.
_ALIKE = 0.8
_POINTS_OF: dict[type, tuple[ExtensionPoint, ...]] = {}
POINTS: dict[str, ExtensionPoint] = {point.name: point for point in EXTENSION_POINTS}


def points_of(plugin: type) -> tuple[ExtensionPoint, ...]:
    """The points at which a class of plugins takes part."""
    known = _POINTS_OF.get(plugin)
    if known is None:
        known = tuple(point for point in EXTENSION_POINTS if getattr(plugin, point.name) is not _method(point))
        _POINTS_OF[plugin] = known
    return known


def check_points(plugin: type) -> None:
    """Refuse a class of plugins that can only be a mistake.

    Raises:
        BadInput: a method is called nearly like one that plugins may have, or takes other arguments than it is given.
    """
    known = {name: getattr(base, name) for base in plugin.__mro__[1:] for name in dir(base) if not name.startswith("_")}
    known.update((point.name, _method(point)) for point in EXTENSION_POINTS)
    for name, method in vars(plugin).items():
        if name.startswith("_") or not inspect.isfunction(method):
            continue
        where = f"{plugin.__module__}.{plugin.__qualname__}"
        if name not in known:
            for near in get_close_matches(name, known, 1, _ALIKE):
                raise BadInput(
                    "unknown_extension_point",
                    f"{where} has a method {name}, which no plugin is asked for",
                    value=name,
                    hint=f"did you mean {near}? a name of your own begins with an underscore",
                )
            continue
        given = list(inspect.signature(known[name]).parameters)
        try:
            inspect.signature(method).bind(*given)
        except TypeError as error:
            raise BadInput(
                "bad_extension_point", f"{where}.{name}: {error}", value=name,
                hint=f"it is called with {', '.join(given[1:]) or 'nothing'}",
            ) from None  # fmt: skip


def _method(point: ExtensionPoint) -> Callable[..., Any]:
    method: Callable[..., Any] = vars(ExtensionPoints)[point.name]
    return method


# As written in a policy file -> (switch, value when the file says nothing). Volcano spells some `enabledX`.
SWITCHES: dict[str, tuple[str, bool]] = {
    "enableJobOrder": ("job_order", True),
    "enableTaskOrder": ("task_order", True),
    "enableQueueOrder": ("queue_order", True),
    "enableJobReady": ("job_ready", True),
    "enableJobPipelined": ("job_pipelined", True),
    "enableJobStarving": ("job_starving", True),
    "enableJobEnqueued": ("job_enqueued", True),
    "enablePreemptable": ("preemptable", True),
    "enableReclaimable": ("reclaimable", True),
    "enablePreemptive": ("preemptive", True),
    "enablePredicate": ("predicate", True),
    "enableNodeOrder": ("node_order", True),
    "enableBestNode": ("best_node", True),
    "enableTargetJob": ("target_job", True),
    "enableReservedNodes": ("reserved_nodes", True),
    "enabledVictim": ("victim", True),
    "enabledOverused": ("overused", True),
    "enabledAllocatable": ("allocatable", True),
    "enabledHyperNodeOrder": ("hyper_node_order", True),
    "enabledHyperNodeGradient": ("hyper_node_gradient", True),
    "enabledSubJobReady": ("sub_job_ready", True),
    "enabledSubJobPipelined": ("sub_job_pipelined", True),
    "enabledSubJobOrder": ("sub_job_order", True),
    "enableHierarchy": ("hierarchy", False),
    "enabledClusterOrder": ("cluster_order", False),
}
