"""Why a gang waits: the closed list of codes, tried in order, the first that holds wins. Source: contracts 1 (reason
codes and numbers)."""

from functools import cached_property

import msgspec
import numpy as np

from scheduler_core.framework.cluster_reasons import ClusterReasons, Found
from scheduler_core.framework.demand import Demand, Shortfall
from scheduler_core.framework.holders import Holders
from scheduler_core.framework.messages import meant_card, sentence
from scheduler_core.framework.quota_room import quota_room
from scheduler_core.framework.session import Session
from scheduler_core.model.memory import Reservation
from scheduler_core.model.pod import ServiceType
from scheduler_core.model.podgroup import GangPhase
from scheduler_core.model.queue import QueueState
from scheduler_core.model.reason import Reason, ReasonCode, ReasonNumbers
from scheduler_core.model.resources import MILLI, quota_unit
from scheduler_core.state.axes import CPU, LEDGER_CARDS, MEMORY
from scheduler_core.state.status import PIPELINED, RELEASING, TaskStatus

# Not a defect of the pod: the controller that set a gate removes it, and then the pod is scheduled.
GATES = "spec.schedulingGates"
_ROWS = {"cpu": CPU, "memory": MEMORY}

_NO_BACKFILL = "Not looked at: pods that ask for nothing are placed by action backfill, which the policy does not have."

Finding = tuple[ReasonCode, ReasonNumbers, str]


class Reasons:
    """Finds the reasons of all gangs at the end of a session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._holders = Holders(session)
        self._releasing: list[int] | None = None
        self._votes: dict[tuple[object, ...], Shortfall | None] = {}

    @cached_property
    def _cluster(self) -> ClusterReasons:
        return ClusterReasons(self._session, self._holders)

    @cached_property
    def _odd(self) -> list[bool]:
        """Gangs for which a plugin may give a reason; all others are as they should be."""
        found: list[bool] = self._session.columns.questionable.tolist()
        return found

    @cached_property
    def _incomplete(self) -> list[bool]:
        """The same, about their members."""
        found: list[bool] = self._session.columns.suspects("job_valid").tolist()
        return found

    def all(self) -> tuple[dict[int, Reason], dict[int, int]]:
        """Reason of each gang that still needs something, and its position in its queue."""
        session = self._session
        waiting = [gang for gang in session.gangs.in_need() if needs_something(session, gang)]
        positions = self._holders.positions(waiting)
        reasons = {}
        known: dict[tuple[object, ...], Reason] = {}
        for gang in waiting:
            kind = self._kind(gang)
            alike = None if kind is None else known.get(kind)
            if alike is not None:
                reasons[gang] = Reason(
                    podgroup=session.gangs.names[gang],
                    code=alike.code,
                    numbers=msgspec.structs.replace(alike.numbers, position=positions[gang]),
                    message=alike.message,
                )
                continue
            code, numbers, detail = self._find(gang, positions[gang])
            note = session.trace.notes.get(gang)
            message = sentence(code, numbers, session.group(gang).queue, detail)
            reasons[gang] = Reason(
                podgroup=session.gangs.names[gang], code=code, numbers=numbers,
                message=message if note is None else f"{message} {note}",
            )  # fmt: skip
            if kind is not None:
                known[kind] = reasons[gang]
        return reasons, positions

    def _kind(self, gang: int) -> tuple[object, ...] | None:
        """What makes gangs wait for the same reason with the same numbers; None for one that is like no other. Only
        gangs of which nothing is in place, with all members there: their equal members ask the same tables."""
        session, gangs, tasks = self._session, self._session.gangs, self._session.tasks
        group, members = gangs.groups[gang], gangs.member[gangs.start[gang] : gangs.start[gang + 1]]
        count, promised = len(members), gangs.waiting(gang)
        plain = count == gangs.pending(gang) + promised >= gangs.least[gang] and not group.min_task_member
        apart = gang in session.stated or gang in session.trace.notes
        if not plain or apart or group.suspended or group.problem or group.unsupported or group.backing_off:
            return None
        # Promised members wait for so many pods to leave, wherever that is.
        leaves = (tasks.status[members].tobytes(), self._leaving_for(gang)) if promised else None
        return (
            gangs.queue_list[gang],
            session.phase.codes[gang],
            group.namespace,
            gangs.least[gang],
            session.service_type(gang),
            None if (refusal := session.trace.enqueue_refusals.get(gang)) is None else refusal.code,
            session.problem(gang) if self._odd[gang] else None,
            session.hooks.refusal("job_valid", gang) if self._incomplete[gang] else None,
            tasks.cls[members].tobytes(),
            tasks.priority[members].tobytes(),
            leaves,
        )

    def _find(self, gang: int, position: int) -> Finding:
        place = ReasonNumbers(position=position)
        return (
            self._as_written(gang, place)
            or self._of_members(gang, place)
            or self._of_quota(gang, position)
            or self._of_cluster(gang, position)
            or (ReasonCode.PENDING_EVALUATION, place, "")
        )

    def _as_written(self, gang: int, place: ReasonNumbers) -> Finding | None:
        """Suspended, Misconfigured, NotSupported, NoMatchingCard, QueueClosed, ExceedsMaxQuota."""
        session, group = self._session, self._session.group(gang)
        if group.suspended:
            return ReasonCode.SUSPENDED, place, "its owner has suspended it"
        problem = session.problem(gang)
        if problem is not None:
            return ReasonCode.MISCONFIGURED, place, problem
        field = group.unsupported or (GATES if self._gates_hold(gang) else "")
        if field:
            gates = "its pods have scheduling gates and are scheduled once these are removed" if field == GATES else ""
            return ReasonCode.NOT_SUPPORTED, ReasonNumbers(field=field, position=place.position), gates
        stated = session.stated.get(gang)
        if stated is not None and stated[0] is ReasonCode.TIMED_OUT:
            return stated[0], place, stated[1]
        demand = self._demand(gang)
        for name, milli in sorted(demand.unknown.items()):
            numbers = ReasonNumbers(resource=name, requested=milli / MILLI, free=0.0, position=place.position)
            return ReasonCode.NO_MATCHING_CARD, numbers, meant_card(name, session.axes.cards)
        queue = session.ledger.queues[session.queue_of(gang)]
        if queue.state is not QueueState.OPEN:
            return ReasonCode.QUEUE_CLOSED, place, queue.state.value
        shortfall = session.hooks.first("quota_shortfall", gang, self._whole_minimum(gang), True)
        if shortfall is not None:
            shortfall = self._with_use(gang, shortfall)
            numbers = self._numbers(shortfall, gang, place.position)
            return ReasonCode.EXCEEDS_MAX_QUOTA, numbers, self._whose(shortfall, gang)
        return None

    def _gates_hold(self, gang: int) -> bool:
        """Nothing else of the gang waits than pods with scheduling gates, or it is too small without them."""
        gangs = self._session.gangs
        gated = gangs.count(gang, TaskStatus.GATED)
        if not gated:
            return False
        waits = gangs.pending(gang) or gangs.waiting(gang)
        return not waits or gangs.valid(gang) < gangs.least[gang] <= gangs.valid(gang) + gated

    def _with_use(self, gang: int, shortfall: Shortfall) -> Shortfall:
        """What exceeds an empty quota, beside what the others use of it and are promised: so much is short."""
        session = self._session
        now = self._vote_again(gang) if session.phase[gang] is GangPhase.PENDING else None
        if now is None or (now.resource, now.queue) != (shortfall.resource, shortfall.queue):
            now = session.hooks.first("quota_shortfall", gang, self._test_demand(gang))
        if now is None or now.resource != shortfall.resource:
            return shortfall
        own = shortfall.requested - now.requested
        return msgspec.structs.replace(
            shortfall, allocated=max(0, now.allocated - own), inqueue=now.inqueue, short=now.short
        )

    def _vote_again(self, gang: int) -> Shortfall | None:
        """What admission lacks for a gang by the tables at the end of the session; None where it lacks nothing."""
        session = self._session
        demand = session.minimum(gang)
        key: tuple[object, ...] = (gang,)
        if self._voters == {"capacity-card"}:
            parts = (*demand.cards.items(), None, *demand.unnamed.items(), None, *demand.unknown.items())
            key = (session.queue_of(gang), session.service_type(gang), demand.cpu_milli, demand.memory_mib, *parts)
        if key not in self._votes:
            answer = session.hooks.vote("job_enqueueable", gang, demand)
            self._votes[key] = answer if isinstance(answer, Shortfall) else None
        return self._votes[key]

    @cached_property
    def _voters(self) -> set[str]:
        return {name for name, _ in self._session.hooks.flat("job_enqueueable")}

    def _members_there(self, gang: int, position: int | None) -> ReasonNumbers:
        """How many members exist of those that must start together; no figures where only a role is short."""
        least, there = self._session.gangs.least[gang], self._session.gangs.valid(gang)
        if there >= least:
            return ReasonNumbers(position=position)
        return ReasonNumbers(requested=least, allocated=there, short=least - there, position=position)

    def _of_members(self, gang: int, place: ReasonNumbers) -> Finding | None:
        """GangIncomplete, WaitingForReclaim, NotAllowedInQueue."""
        session, group = self._session, self._session.group(gang)
        waits = group.waits_for_admission and session.phase[gang] is GangPhase.PENDING
        invalid = session.hooks.refusal("job_valid", gang) or self._members_lost(gang)
        least, there = session.gangs.least[gang], session.gangs.valid(gang)
        if invalid is None and there < least and (session.keeps_minimum or session.hooks.flat("permit")):
            invalid = f"{there} of {least} pods are there"
        if invalid is not None and not waits:
            return ReasonCode.GANG_INCOMPLETE, self._members_there(gang, place.position), invalid
        leaving = self._leaving_for(gang)
        if leaving:
            tasks = session.gangs.with_status(gang, PIPELINED)
            resource, requested, _ = self._cluster.room(gang, tasks).asked(tasks)
            numbers = ReasonNumbers(resource=resource, requested=requested, position=place.position)
            return (
                ReasonCode.WAITING_FOR_RECLAIM,
                numbers,
                f"{leaving} {'pod leaves' if leaving == 1 else 'pods leave'}",
            )
        if not session.ledger.queues[session.queue_of(gang)].admits(group.namespace):
            return ReasonCode.NOT_ALLOWED_IN_QUEUE, place, group.namespace
        return None

    def _members_lost(self, gang: int) -> str | None:
        """Why a gang of which nothing waits lacks members, also where no plugin asks for them."""
        gangs = self._session.gangs
        least, there, counts = gangs.least[gang], gangs.valid(gang), gangs.counts[:, gang]
        if there >= least or counts[TaskStatus.PENDING] or counts[TaskStatus.PIPELINED] or counts[TaskStatus.GATED]:
            return None
        return f"{there} of at least {least} members exist"

    def _leaving_for(self, gang: int) -> int:
        """How many pods leave for the gang: its own victims, or what leaves the nodes where it was promised room. The
        second is how a reclaim looks to a session that does not know of it; only who may take back counts."""
        session, tasks = self._session, self._session.tasks
        victims = {pod for reservation in self._reservations(gang) for pod in reservation.victims}
        there = session.cluster.workspace.slot_of
        present = [pod for pod in victims if pod in there]
        if present or not session.gangs.waiting(gang) or session.gangs.pending(gang):
            return len(present)
        if session.hooks.refusal("reclaimer", gang) is not None or "reclaim" not in session.policy.actions:
            return 0
        nodes = {int(tasks.node[task]) for task in session.gangs.with_status(gang, PIPELINED)}
        if self._releasing is None:
            at = np.flatnonzero(tasks.live & (tasks.status == RELEASING) & (tasks.node >= 0))
            self._releasing = tasks.node[at].tolist()
        return sum(1 for node in self._releasing if node in nodes)

    def _of_quota(self, gang: int, position: int) -> Finding | None:
        """WaitingForQuota, OverCommitted."""
        session = self._session
        refusal = session.trace.enqueue_refusals.get(gang)
        if refusal is not None and session.phase[gang] is GangPhase.PENDING:
            if "extender" not in self._voters:
                # Services outside are asked once; all others are asked by what the tables are now.
                # One that would be let in by now was kept out by what has gone since: that is all there is to say.
                refusal = self._vote_again(gang) or refusal
            return refusal.code, self._numbers(refusal, gang, position), self._whose(refusal, gang)
        test, shown = self._test_demand(gang), self._demand(gang)
        if session.hooks.first("quota_shortfall", gang, test) is not None:
            lacks = session.hooks.first("quota_shortfall", gang, shown)
            assert lacks is not None, "what one task lacks, all of them lack"
            return ReasonCode.WAITING_FOR_QUOTA, self._numbers(lacks, gang, position), self._whose(lacks, gang)
        return self._of_single_cards(gang, position)

    def _of_single_cards(self, gang: int, position: int) -> Finding | None:
        """WaitingForQuota where a choice of cards has quota in all, and no card of it enough for a task."""
        session, queue = self._session, self._session.queue_of(gang)
        if session.ledger.queues[queue].card_quota is None:
            return None
        wanted: dict[int, int] = {}
        for task in self._tasks(gang):
            cls = session.cluster.class_of(task)
            if len(cls.names or cls.implied) > 1 and len(cls.cards) > 1:
                wanted[cls.index] = wanted.get(cls.index, 0) + 1
        ledger = session.ledger
        for index, count in wanted.items():
            cls = session.cluster.classes[index]
            room, alone = quota_room(session, queue, cls, count)
            if room == count:
                continue
            rows = [LEDGER_CARDS + card for card in cls.cards]
            # All that go without a place on one card type, beside those that have one there: where that takes least.
            left = count - room
            needs = [
                ledger.in_use(queue, row) + (there + left) * cls.milli - ledger.limit(queue, row)
                for row, there in zip(rows, alone, strict=True)
            ]
            lacks = Shortfall(
                code=ReasonCode.WAITING_FOR_QUOTA,
                resource=cls.card_key,
                requested=count * cls.milli,
                limit=sum(ledger.limit(queue, row) for row in rows),
                allocated=sum(ledger.in_use(queue, row) for row in rows),
                short=min((need for need in needs if need > 0), default=left * cls.milli),
                queue=ledger.queues[queue].name,
            )
            whose = f"queue {lacks.queue}, where no card type alone has enough left,"
            return lacks.code, self._numbers(lacks, gang, position), whose
        return None

    def _of_cluster(self, gang: int, position: int) -> Finding | None:
        """WaitingForCards, NoNodeMatches, WaitingForResources, Fragmented, BehindHigherPriority, ReclaimForbidden,
        BackingOff."""
        session, tasks = self._session, self._tasks(gang)
        why = session.group(gang).backing_off
        if not tasks:
            return (ReasonCode.BACKING_OFF, ReasonNumbers(position=position), why) if why else None
        found = self._cluster.find(gang, tasks, position)
        rule = session.hooks.refusal("reclaimer", gang) if session.service_type(gang) is ServiceType.UNKNOWN else None
        if isinstance(found, Found):
            if rule is not None and found.together and found.code is ReasonCode.FRAGMENTED:
                return ReasonCode.RECLAIM_FORBIDDEN, found.numbers, rule
            return found.code, found.numbers, ""
        if self._needs_backfill(tasks):
            return ReasonCode.PENDING_EVALUATION, ReasonNumbers(position=position), _NO_BACKFILL
        behind = self._cluster.behind(gang, tasks, found, position)
        if behind is not None:
            return ReasonCode.BEHIND_HIGHER_PRIORITY, behind, ""
        resource, requested, free = self._cluster.room(gang, tasks).asked(tasks)
        numbers = ReasonNumbers(resource=resource, requested=requested, free=free, position=position)
        if rule is not None:
            return ReasonCode.RECLAIM_FORBIDDEN, numbers, rule
        if why:
            return ReasonCode.BACKING_OFF, numbers, why
        stated = session.stated.get(gang)
        if stated is not None and stated[0] is ReasonCode.BACKING_OFF:
            return stated[0], numbers, stated[1]
        return None

    def _needs_backfill(self, tasks: list[int]) -> bool:
        """Some of them ask for nothing, and no action of the policy places those."""
        session = self._session
        if "backfill" in session.policy.actions or session.hooks.flat("queue_sort"):
            return False
        return any(session.cluster.class_of(task).best_effort for task in tasks)

    # What the gang still needs ---------------------------------------------------------------------------------

    def _tasks(self, gang: int) -> list[int]:
        """The tasks it still needs: up to minMember, or all that wait once it runs."""
        session = self._session
        tasks = session.pending_tasks(gang)
        needed = session.needed(gang)
        # A gang whose tasks all have a promise waits for what was promised.
        return tasks[:needed] if needed else tasks or session.pending_tasks(gang, PIPELINED)

    def _demand(self, gang: int) -> Demand:
        session = self._session
        if session.needed(gang):
            return session.minimum(gang)
        return session.demand_of(session.pending_tasks(gang))

    def _test_demand(self, gang: int) -> Demand:
        """What decides: the whole minimum, or one more task of a gang that runs."""
        session = self._session
        if session.needed(gang):
            return session.minimum(gang)
        return session.demand_of(session.pending_tasks(gang)[:1])

    def _whole_minimum(self, gang: int) -> Demand:
        """The minimum as if the gang had nothing yet; one task of a gang that runs."""
        session = self._session
        needed = session.needed(gang)
        if not needed:
            return self._test_demand(gang)
        have = session.gangs.with_status(
            gang, TaskStatus.PIPELINED, TaskStatus.ALLOCATED, TaskStatus.BOUND, TaskStatus.RUNNING
        )
        if not have:
            return session.minimum(gang)
        return session.demand_of([*have, *session.pending_tasks(gang)[:needed]])

    def _reservations(self, gang: int) -> list[Reservation]:
        session = self._session
        keys = [session.tasks.keys[task] for task in session.gangs.with_status(gang, TaskStatus.PIPELINED)]
        return [session.reservations[key] for key in keys if key in session.reservations]

    def _numbers(self, shortfall: Shortfall, gang: int, position: int | None) -> ReasonNumbers:
        session, resource = self._session, shortfall.resource
        unit = quota_unit(resource)
        axes, cards = session.axes, tuple[int, ...]()
        if resource not in _ROWS:
            named = tuple(axes.card_index[name] for name in resource.split("|") if name in axes.card_index)
            cards = named or axes.cards_of_resource.get(resource, ())
        queue = session.queue_of(gang) if shortfall.queue else -1
        return ReasonNumbers(
            resource=resource,
            requested=shortfall.requested * unit,
            limit=shortfall.limit * unit,
            allocated=shortfall.allocated * unit,
            inqueue=shortfall.inqueue * unit,
            short=shortfall.short * unit,
            holders=self._holders.counted(resource, cards, but=gang, queue=queue) if cards or resource in _ROWS else (),
            position=position,
        )

    def _whose(self, shortfall: Shortfall, gang: int) -> str:
        """Whose limit it is, where it is not the gang's own queue's."""
        if shortfall.queue and shortfall.queue != self._session.group(gang).queue:
            return f"queue {shortfall.queue}"
        return shortfall.whose


def needs_something(session: Session, gang: int) -> bool:
    """True when a member waits or is missing; not for a gang that is done or on its way out."""
    if session.group(gang).elsewhere:
        return False
    counts = session.gangs.counts[:, gang]
    if counts[TaskStatus.PENDING] or counts[TaskStatus.PIPELINED] or counts[TaskStatus.GATED]:
        return True
    ready = session.gangs.ready(gang)
    if session.phase[gang] is GangPhase.COMPLETED or counts[TaskStatus.FAILED] or counts[TaskStatus.UNKNOWN]:
        return False
    # One of which all members leave is on its way out; one that keeps others lacks those that leave.
    if not ready and (counts[TaskStatus.RELEASING] or counts[TaskStatus.FOREIGN]):
        return False
    return ready < int(session.gangs.min_member[gang])
