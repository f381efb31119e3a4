"""Plugin ``capacity-card``: quota by card type, and the tide between inference and training.

Extension points: service_type, quota_charge, queue_order, job_enqueueable, allocatable, preemptive, reclaimable,
unified_evictable, preemptable (with ``tidePreempt``), node_order. Units: milli-cards, milli-cores, MiB.
Source: volcano-semantics 4.10 and 4.11, document 000, contracts 3.2 to 3.4 and 3.6.

On purpose different from upstream: every card is checked against the type of the node that is chosen (defect c);
promised choices count against their cards (d); an admission is noted by the action, after all votes (e); what an
admitted gang already holds is not counted twice (f); finished tasks need nothing (g); quotas guarantee nothing to
any gang (k); an unknown card in a choice leaves the others (i); a pod that names no card is misconfigured where its
queue counts cards (b); the flag cardUnlimitedCpuMemory holds from the first sum on (a); a task that was taken back is
free to take any of its cards (n); absent cpu or memory is no limit; a reclaimer of unknown service type takes from
no gang unless the argument says so. With ``compatibility: volcano`` as upstream in a to g, i, k, n, for absent cpu and
memory and for unknown reclaimers, see :mod:`scheduler_core.framework.upstream_cards`."""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from scheduler_core.framework.combine import Ballot, Opinion
from scheduler_core.framework.demand import Demand, Shortfall
from scheduler_core.framework.extension_points import Where
from scheduler_core.framework.forms import Ceilings, Claimants, Form, Limits, ShareKey, StaticKey, Suspects, Term
from scheduler_core.framework.gang_votes import GangOpinion
from scheduler_core.framework.kernels.terms import STATIC
from scheduler_core.framework.plugin import Argument, Plugin, number, switch
from scheduler_core.framework.quota import Book, HardwareUse, beyond_written, queue_book
from scheduler_core.framework.service_types import SERVICE_TYPES, service_codes
from scheduler_core.framework.session import Session
from scheduler_core.framework.upstream_cards import UpstreamCards
from scheduler_core.model.pod import ServiceType
from scheduler_core.model.reason import ReasonCode
from scheduler_core.model.rules import Rule
from scheduler_core.state.axes import CPU, LEDGER_CARDS, MEMORY
from scheduler_core.state.queue_ledger import NO_LIMIT
from scheduler_core.state.status import Bools, Floats
from scheduler_core.state.task_class import TaskClass


# The tide table: who may take back from whom. Source: document 000, volcano-semantics 4.11, contracts 3.2.
def may_reclaim(reclaimer: ServiceType, *, unknown_allowed: bool = False) -> bool:
    """True when a gang of this service type takes back from any other at all."""
    return reclaimer is ServiceType.INFERENCE or (unknown_allowed and reclaimer is ServiceType.UNKNOWN)


def refusal(reclaimer: ServiceType, victim: ServiceType, *, unknown_allowed: bool = False) -> str | None:
    """The rule that protects the victim, or None when it may be taken."""
    if not may_reclaim(reclaimer, unknown_allowed=unknown_allowed):
        return Rule.TIDE_TAKER.text(kind=reclaimer.value)
    if victim is not ServiceType.TRAINING:
        return Rule.TIDE_VICTIM.text(kind=victim.value)
    return None


_SERVICE_TYPES = (ServiceType.INFERENCE.value, ServiceType.TRAINING.value)


class CapacityCard(Plugin):
    name: ClassVar[str] = "capacity-card"
    gangs_fall_whole: ClassVar[bool] = True
    guards: ClassVar[frozenset[str]] = frozenset({"preemptable", "reclaimable", "unified_evictable"})
    arguments: ClassVar[tuple[Argument, ...]] = (
        number("overCommitFactor", 1.0, (1.0, 1000.0), "enqueue also needs used + inqueue + minimum <= total x factor"),
        switch("cardUnlimitedCpuMemory", False, "tasks that ask for cards do not count against cpu and memory quotas"),
        number("nodeOrderWeight", 1.0, (0.0, 1_000_000.0), "weight of the preference for the card named first in A|B"),
        Argument(
            name="podOwnerReferenceToServiceType", type="map", default={}, choices=_SERVICE_TYPES,
            doc="service type by the kind of the pod's owner, where no annotation says it",
        ),
        Argument(
            name="unknownReclaimer", type="str", default="deny", choices=("deny", "allow"),
            doc="whether a gang of unknown service type may take back from training",
        ),
        switch("tidePreempt", False, "the tide table guards preempt as it guards reclaim"),
    )  # fmt: skip

    def open(self, session: Session) -> None:
        """Sum the hardware once."""
        super().open(session)
        self._hardware = HardwareUse(session)
        # int64 (D,): of each resource as much as may be in use and promised.
        self._most = self._hardware.times(self.values["overCommitFactor"])
        self._owners: dict[str, str] = self.values["podOwnerReferenceToServiceType"]
        self._fixed: dict[int, Floats] = {}
        self._upstream: UpstreamCards | None = None
        if session.compat:
            self._count_as_upstream()
            self._upstream = UpstreamCards(session)

    def sums_made(self) -> None:
        """Upstream reads the flag only now."""
        if self._upstream is not None and self.values["cardUnlimitedCpuMemory"]:
            self._upstream.count_before_the_flag()

    def _count_as_upstream(self) -> None:
        """No cpu or memory in a queue's capability means none of it; cards without a name count against no quota."""
        session = self.session
        capability, charge = session.ledger.capability, session.cluster.charge
        for row in (CPU, MEMORY):
            capability[row][capability[row] == NO_LIMIT] = 0
        for cls in session.cluster.classes.classes:
            if not cls.names:
                charge[2, cls.index] = 0

    # What counts ------------------------------------------------------------------------------------------------

    def service_type(self, gang: int) -> ServiceType:
        """By annotation, owner's kind and queue."""
        return self.session.base_service_type(gang, self._owners)

    def job_problem(self, gang: int) -> str | None:
        """Cards without a card name, in a queue that counts cards (contracts 3.6)."""
        if self.session.compat:
            return self._first_unknown(gang)
        queue = self.session.ledger.queues[self.session.queue_of(gang)]
        if queue.card_quota is None:
            return None
        for cls in self.session.classes_of(gang):
            if cls.milli and not cls.names and not cls.implied:
                return (
                    f"asks for {cls.resource}, which several cards offer, and queue {queue.name} has a card quota: "
                    "name the card type on the pod, by the annotation volcano.sh/card.name or by a nodeSelector on the "
                    "product label of the nodes"
                )
        return None

    def _first_unknown(self, gang: int) -> str | None:
        """Upstream counts a choice by its first card, and fails where no node has that one."""
        known = self.session.axes.card_index
        for cls in self.session.classes_of(gang):
            if len(cls.names) > 1 and cls.names[0] not in known:
                return f"names {cls.names[0]} first, which no node has"
        return None

    def quota_charge(self, cpu_milli: int, memory_mib: int, with_cards: bool) -> tuple[int, int]:
        """CPU and memory that count against the queue, the same wherever something is added or taken away."""
        if with_cards and self.values["cardUnlimitedCpuMemory"]:
            return 0, 0
        return cpu_milli, memory_mib

    def queue_order(self, queue: int) -> tuple[int, float]:
        """Higher priority first, then the smaller share of its quota in use."""
        return -self.session.ledger.queues[queue].priority, self.share(queue)

    def share(self, queue: int) -> float:
        """Largest used part of a limit of the queue; 1 where something is used of which nothing is allowed."""
        if self._upstream is not None:
            return self._upstream.share(queue)
        ledger = self.session.ledger
        share = 0.0
        used = (ledger.allocated[:, queue] + ledger.pipelined[:, queue]).tolist()
        for in_use, limit in zip(used, ledger.capability[:, queue].tolist(), strict=True):
            if in_use > 0 and limit < NO_LIMIT:
                share = max(share, in_use / limit if limit else 1.0)
        return share

    def compiled_form(self, point: str) -> Sequence[Form] | None:
        """Limits are those of the ledger; what changes in a session is only what is in use."""
        ledger, classes = self.session.ledger, self.session.cluster.classes.classes
        if self.session.compat and point not in ("reclaimer", "node_order"):
            return None
        if point == "queue_order":
            priorities = np.array([-queue.priority for queue in ledger.queues], dtype=np.int64)
            return [StaticKey(priorities), ShareKey(ledger.capability)]
        if point in ("allocatable", "preemptive"):
            named = np.array([bool(cls.names) for cls in classes], dtype=np.bool_)
            return [Limits(ledger.capability, named, self._counts_cards())]
        if point == "job_problem":
            unnamed = np.array([cls.milli > 0 and not (cls.names or cls.implied) for cls in classes], dtype=np.bool_)
            in_question = np.append(self._counts_cards(), False)[self.session.gangs.queue]
            return [Suspects(self.session.columns.with_waiting(unnamed) & in_question)]
        if point == "job_enqueueable":
            used = ledger.allocated + ledger.pipelined - ledger.elastic
            in_use = np.stack([self._hardware.in_use(back=False), self._hardware.in_use(back=True)])
            return [Ceilings(ledger.capability, used, self._most, in_use, self._may_take_back())]
        if point == "reclaimer":
            return [Claimants(self._claimants())]
        if point == "node_order":
            return [Term(STATIC, of_class=lambda cls: self._order_of(cls) if len(cls.names) > 1 else None)]
        return None

    def _counts_cards(self) -> Bools:
        """bool (Q,): queues with a card quota."""
        return np.array([queue.card_quota is not None for queue in self.session.ledger.queues], dtype=np.bool_)

    def _may_take_back(self) -> npt.NDArray[np.int8]:
        """int8 (G,): 1 for gangs for which what they could take back does not count as used."""
        if "reclaim" not in self.session.policy.actions:
            return np.zeros(len(self.session.gangs), dtype=np.int8)
        return self._claimants().astype(np.int8)

    def _claimants(self) -> Bools:
        """bool (G,): gangs that the tide table lets take back."""
        unknown_allowed = self._unknown_allowed()
        may = [may_reclaim(kind, unknown_allowed=unknown_allowed) for kind in SERVICE_TYPES]
        found: Bools = np.array(may, dtype=np.bool_)[service_codes(self.session, self._owners)]
        return found

    # Admission --------------------------------------------------------------------------------------------------

    def job_enqueueable(self, gang: int, demand: Demand) -> Ballot | Shortfall:
        """Room in the queue's quota and in the over-committed cluster for the gang's minimum."""
        session = self.session
        queue = session.queue_of(gang)
        if not session.queue_is_open(queue):
            return Shortfall(code=ReasonCode.QUEUE_CLOSED, resource="", requested=0)
        return self._over_quota(queue, demand, admission=True) or self._over_committed(gang, demand) or Ballot.PERMIT

    def overruled(self, gang: int, demand: Demand) -> None:
        """Another plugin refuses a gang that this one has let in."""
        if self._upstream is not None:
            self._upstream.keep_promise(gang, demand)

    def quota_shortfall(self, gang: int, demand: Demand, empty: bool = False) -> Shortfall | None:
        """What the queue's quota lacks for a demand now, or (``empty``) if none of it were in use."""
        return self._over_quota(self.session.queue_of(gang), demand, admission=False, empty=empty)

    def _over_quota(self, queue: int, demand: Demand, *, admission: bool, empty: bool = False) -> Shortfall | None:
        """Admission counts promises to others and lets what goes beyond minimums pass; placing does neither."""
        ledger = self.session.ledger
        # Upstream keeps promised choices under their own name, where they count against no card.
        book = queue_book(ledger, queue, admission=admission, empty=empty, choices=not self.session.compat)
        if self._upstream is not None and not empty:
            self._upstream.correct(book, queue, admission=admission)
        counts = ledger.queues[queue].card_quota is not None and not self.session.compat
        cards = demand.all_cards() if counts else demand.cards
        short = book.shortfall(demand.cpu_milli, demand.memory_mib, cards)
        return short or beyond_written(ledger.queues[queue], demand)

    def _over_committed(self, gang: int, demand: Demand) -> Shortfall | None:
        """used + inqueue + minimum <= total x factor; what the gang could take back does not count as used."""
        session = self.session
        ledger = session.ledger
        choices: dict[tuple[int, ...], int] = {}
        for of_queue in ledger.inqueue_choices:
            for choice, milli in of_queue.items():
                choices[choice] = choices.get(choice, 0) + milli
        back = "reclaim" in session.policy.actions and self.reclaimer(gang) is None
        book = Book(
            ReasonCode.OVER_COMMITTED, ledger.axes.cards, limits=self._most.tolist(),
            used=self._hardware.in_use(back=back).tolist(), promised=ledger.inqueue.sum(axis=1).tolist(),
            choices=choices,
        )  # fmt: skip
        short = book.shortfall(demand.cpu_milli, demand.memory_mib, demand.all_cards())
        if short is None and demand.unknown:
            # Of a card that no node has there are none, whatever the factor.
            name, milli = min(demand.unknown.items())
            return Shortfall(code=ReasonCode.OVER_COMMITTED, resource=name, requested=milli, short=milli)
        return short

    # Allocation -------------------------------------------------------------------------------------------------

    def allocatable(self, queue: int, cls: TaskClass, card: int) -> Shortfall | None:
        """Room in the quota for one task of the class on a card of one type (-1: it asks for none)."""
        session = self.session
        if not session.queue_is_open(queue):
            return Shortfall(code=ReasonCode.QUEUE_CLOSED, resource="", requested=0)
        ledger, charge = session.ledger, session.cluster.charge
        for row, label in ((CPU, "cpu"), (MEMORY, "memory")):
            asked = int(charge[row, cls.index])
            if asked > 0:
                used = ledger.in_use(queue, row) if self._upstream is None else self._upstream.in_use(queue, row)
                short = used + asked - ledger.limit(queue, row)
                if short > 0:
                    return self._short(queue, row, label, asked, short)
        if card >= 0 and (cls.names or (ledger.queues[queue].card_quota is not None and not session.compat)):
            row = LEDGER_CARDS + card
            used = ledger.in_use(queue, row)
            if self._upstream is not None:
                if len(cls.names) > 1:
                    if self._upstream.room(queue, cls):
                        return None
                    row = LEDGER_CARDS + self._upstream.asked_as(card)
                used = self._upstream.in_use(queue, row)
            short = used + cls.milli - ledger.limit(queue, row)
            if short > 0:
                return self._short(queue, row, session.axes.cards[card], cls.milli, short)
        return None

    preemptive = allocatable

    def _short(self, queue: int, row: int, label: str, asked: int, short: int) -> Shortfall:
        ledger = self.session.ledger
        return Shortfall(
            code=ReasonCode.WAITING_FOR_QUOTA, resource=label, requested=asked, limit=ledger.limit(queue, row),
            allocated=ledger.in_use(queue, row), short=short, queue=ledger.queues[queue].name,
        )  # fmt: skip

    def node_order(self, cls: TaskClass, where: Where) -> Floats:
        """100 x 0.5^index x weight for the leftmost card of ``A|B`` that the node has; float64."""
        return self._order_of(cls)[where]

    def _order_of(self, cls: TaskClass) -> Floats:
        fixed = self._fixed.get(cls.index)
        if fixed is None:
            fixed = np.zeros(len(self.session.nodes), dtype=np.float64)
            if len(cls.names) > 1:
                axes, count = self.session.axes, self.session.cards.count
                for place in range(len(cls.names) - 1, -1, -1):
                    card = axes.card_index.get(cls.names[place])
                    if card is not None:
                        fixed[count[card] > 0] = 100.0 * 0.5**place * float(self.values["nodeOrderWeight"])
            self._fixed[cls.index] = fixed
        return fixed

    # Tide -------------------------------------------------------------------------------------------------------

    def _unknown_allowed(self) -> bool:
        return bool(self.values["unknownReclaimer"] == "allow") or self.session.compat

    def reclaimer(self, gang: int) -> str | None:
        """Why the gang takes back from no other, or None."""
        kind = self.session.service_type(gang)
        if may_reclaim(kind, unknown_allowed=self._unknown_allowed()):
            return None
        return Rule.TIDE_TAKER.text(kind=kind.value)

    def reclaimable(self, reclaimer: int, candidates: Sequence[int]) -> Opinion:
        """The tide table: inference takes from training, and nothing else is taken."""
        session, unknown_allowed = self.session, self._unknown_allowed()
        kind = session.service_type(int(session.tasks.gang[reclaimer]))
        allowed, refused = [], {}
        for task in candidates:
            other = session.service_type(int(session.tasks.gang[task]))
            rule = refusal(kind, other, unknown_allowed=unknown_allowed)
            if rule is None:
                allowed.append(task)
            else:
                refused[task] = rule
        return Opinion(frozenset(allowed), refused)

    def reclaimable_gangs(self, reclaimer: int, candidates: Bools) -> GangOpinion:
        """The same, for whole gangs."""
        unknown_allowed = self._unknown_allowed()
        kind = self.session.service_type(reclaimer)
        rules = [refusal(kind, other, unknown_allowed=unknown_allowed) for other in SERVICE_TYPES]
        codes = service_codes(self.session, self._owners)
        allowed: Bools = np.array([rule is None for rule in rules], dtype=np.bool_)[codes]
        return GangOpinion(allowed, lambda gang: rules[codes[gang]] or "")

    def unified_evictable(self, taker: int, candidates: Sequence[int]) -> Opinion:
        """The tide table between queues, inside one only where ``tidePreempt`` asks for it; upstream: no opinion."""
        session = self.session
        own = session.queue_of(int(session.tasks.gang[taker]))
        across = any(session.queue_of(int(session.tasks.gang[task])) != own for task in candidates)
        if session.compat or not (across or self.values["tidePreempt"]):
            return Opinion(None)
        return self.reclaimable(taker, candidates)

    def preemptable(self, preemptor: int, candidates: Sequence[int]) -> Opinion:
        """The tide table where ``tidePreempt`` asks for it, else no opinion."""
        return self.reclaimable(preemptor, candidates) if self.values["tidePreempt"] else Opinion(None)
