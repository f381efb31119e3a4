"""One session: the tables, the policy's functions and what has been decided so far."""

import math
import weakref
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from scheduler_core.algorithms.selectors import NodeIndex
from scheduler_core.algorithms.service_type import service_type
from scheduler_core.framework.candidates import Candidates
from scheduler_core.framework.combine import Hooks
from scheduler_core.framework.demand import Demand
from scheduler_core.framework.gang_columns import GangColumns
from scheduler_core.framework.messages import meant
from scheduler_core.framework.own_plugins import function_at
from scheduler_core.framework.plugin import Plugin
from scheduler_core.framework.pod_cache import PodCache
from scheduler_core.framework.promises import Promises
from scheduler_core.framework.scheduling_queue import SchedulingQueue
from scheduler_core.framework.statement import Operation, Statement
from scheduler_core.framework.trace import Trace
from scheduler_core.model.memory import Election, Memory, Reservation
from scheduler_core.model.pod import ServiceType
from scheduler_core.model.podgroup import PodGroup
from scheduler_core.model.policy import Policy
from scheduler_core.model.queue import QueueState
from scheduler_core.model.reason import ReasonCode
from scheduler_core.model.resources import MILLI
from scheduler_core.model.snapshot import Snapshot
from scheduler_core.state.cluster import Cluster
from scheduler_core.state.phases import PHASE_PENDING, PHASE_RUNNING, PHASE_UNKNOWN, Codes, Phases
from scheduler_core.state.status import ALLOCATED, BOUND, FAILED, GATED, PENDING, PIPELINED, RUNNING, SUCCEEDED
from scheduler_core.state.task_class import TaskClass
from scheduler_core.state.workspace import Workspace

# Members for which nothing has to be found any more, or not yet.
NOT_TO_COME = (PIPELINED, ALLOCATED, BOUND, RUNNING, SUCCEEDED, GATED)

Tiers = Sequence[Sequence[tuple[Plugin, dict[str, bool]]]]


class Session:
    """Tables and hooks of one run; actions change it through statements only.

    Attributes:
        snapshot, policy, now, seed, memory: the input.
        cluster: the tables; ``nodes``, ``cards``, ``tasks``, ``gangs``, ``ledger`` are its parts.
        hooks: the plugins' functions, combined by tier.
        columns: what is asked of one gang after another, for all gangs at once.
        node_index: masks over nodes by label, name and taint.
        candidates: where a task class fits, and which node is best.
        phase: current phase of each gang, see :class:`Phases`.
        compat: the policy asks for upstream's decisions wherever ours differ on purpose.
        gangs_fall_whole: tide rules hold, so a gang is taken whole or not at all.
        keeps_minimum: a plugin keeps gangs from starting with fewer members than minMember; without one each member
            starts on its own.
        promised: what the ledger's ``inqueue`` holds for each admitted gang.
        reservations: promises that outlive the session, by pod.
        election: the gang that nodes are kept for, by actions elect and reserve.
        stated: reasons that an action gives itself, by gang.
        stale_cards: with ``compat`` the card of tasks that were placed and taken back. asked_task: with ``compat`` the
            task whose quota is asked for at the moment, -1 = any of its class.
        scheduling_queue: pods that wait, where the per-pod cycle runs. pod_cache: those that it has bound and that the
            cluster has not shown yet.
        trace: decisions and refusals, for the result."""

    def __init__(
        self, snapshot: Snapshot, policy: Policy, tiers: Tiers, *, now: float, seed: int, memory: Memory,
        workspace: Workspace,
    ) -> None:  # fmt: skip
        self.snapshot, self.policy, self.now, self.seed = snapshot, policy, now, seed
        self.cluster = Cluster(snapshot, workspace)
        self.memory = memory
        self.nodes, self.cards, self.tasks = self.cluster.nodes, self.cluster.cards, self.cluster.tasks
        self.gangs, self.ledger, self.axes = self.cluster.gangs, self.cluster.ledger, self.cluster.axes
        self.compat = policy.compatibility == "volcano"
        self.hooks = Hooks(tiers, compat=self.compat, function_at=partial(function_at, nodes=len(self.nodes)))
        self.trace = Trace()
        self.promised = Promises(len(self.gangs))
        self.reservations: dict[str, Reservation] = {}
        self.election: Election | None = memory.election if "reserve" in policy.actions else None
        self.stated: dict[int, tuple[ReasonCode, str]] = {}
        self.stale_cards: dict[int, int] = {}
        self.asked_task = -1
        self.scheduling_queue: SchedulingQueue | None = None
        self.pod_cache = PodCache()
        self._class_demands: dict[tuple[int, int], Demand] = {}
        self._problems: dict[int, str | None] = {}
        self._queue_keys: dict[int, tuple[int, tuple[Any, ...]]] = {}
        self._task_keys: dict[int, tuple[Any, ...]] = {}
        self._service_types: dict[tuple[str, str, str], ServiceType] = {}
        self._service: dict[int, ServiceType] = {}
        self._open_queue = [queue.state is QueueState.OPEN and not queue.problem for queue in snapshot.queues]
        self.phase = Phases(self._phases_now())
        self.candidates = Candidates(self.cluster, self.hooks, tiers)
        # Plugins see the session without keeping it: one that is over goes at once, tables and all.
        seen: Session = weakref.proxy(self)
        self.columns = GangColumns(seen)
        whole = any(plugin.gangs_fall_whole for tier in tiers for plugin, _ in tier)
        self.gangs_fall_whole = whole and not self.compat
        self.keeps_minimum = any(
            plugin.keeps_minimum and switches.get("job_ready", True) for tier in tiers for plugin, switches in tier
        )
        self.node_index = _node_index(self.cluster.workspace, snapshot)
        for tier in tiers:
            for plugin, switches in tier:
                plugin.switches = switches
                plugin.open(seen)
        # Where queues are compared by trees, the place of one changes with what the others use.
        self.keeps_queue_keys = not any(plugin.compares_queues for tier in tiers for plugin, _ in tier)
        for cls in self.cluster.classes.classes:
            charge = self.hooks.first("quota_charge", cls.cpu_milli, cls.memory_mib, cls.milli > 0)
            if charge is not None:
                self.cluster.charge[0, cls.index], self.cluster.charge[1, cls.index] = charge
        self.cluster.load_ledger()
        self.hooks.call_all("sums_made")

    # Gangs -----------------------------------------------------------------------------------------------------

    def group(self, gang: int) -> PodGroup:
        return self.gangs.groups[gang]

    def queue_of(self, gang: int) -> int:
        """Position of the gang's queue, -1 when there is none of that name."""
        return self.gangs.queue_list[gang]

    def queue_is_open(self, queue: int) -> bool:
        """True when the queue takes new work."""
        return queue >= 0 and self._open_queue[queue]

    def service_type(self, gang: int) -> ServiceType:
        """What the gang is for, by the policy's rule where a plugin has one."""
        known = self._service.get(gang)
        if known is None:
            answer = self.hooks.first("service_type", gang)
            known = self.base_service_type(gang, {}) if answer is None else answer
            self._service[gang] = known
        return known

    def base_service_type(self, gang: int, by_owner: dict[str, str]) -> ServiceType:
        """Annotation, owner's kind and queue, see :func:`scheduler_core.algorithms.service_type.service_type`."""
        queue = self.queue_of(gang)
        bound = self.ledger.queues[queue].service_type if queue >= 0 else ""
        key = (self.group(gang).service_type, self.gangs.owner_kind(gang), bound)
        known = self._service_types.get(key)
        if known is None:
            known = self._service_types[key] = service_type(*key, by_owner)
        return known

    def waiting_since(self, gang: int) -> float:
        """The time that counts for the gang's place in the queue."""
        group, kept = self.gangs.groups[gang], self.memory.submitted
        since = group.created if group.submitted is None else group.submitted
        return min(since, kept.get(self.gangs.lasting[gang], math.inf)) if kept else since

    def promised_since(self, gang: int) -> float:
        """When an admitted gang was admitted, as far as earlier sessions know."""
        known = self.memory.admitted.get(self.gangs.names[gang])
        return self.now if known is None else known

    def schedulable(self, gang: int) -> bool:
        """False for a gang that is left alone: suspended, backing off, unusable as written, or without a queue."""
        group, queue = self.group(gang), self.queue_of(gang)
        if (
            group.suspended
            or group.backing_off
            or group.unsupported
            or not self.queue_is_open(queue)
            or self.problem(gang) is not None
        ):
            return False
        return self.ledger.queues[queue].admits(group.namespace)

    def problem(self, gang: int) -> str | None:
        """Why the gang cannot be scheduled as it is written, or None."""
        if gang not in self._problems:
            self._problems[gang] = self._find_problem(gang)
        return self._problems[gang]

    def _find_problem(self, gang: int) -> str | None:
        group, queue = self.group(gang), self.queue_of(gang)
        if group.problem:
            return group.problem
        if queue < 0:
            hint = meant(group.queue, [known.name for known in self.ledger.queues])
            return f"queue {group.queue} does not exist{hint and '; ' + hint}"
        if self.ledger.queues[queue].problem:
            return f"queue {group.queue}: {self.ledger.queues[queue].problem}"
        for cls in self.classes_of(gang):
            if cls.oversize_share:
                return f"asks for {cls.milli / 1000:g} of one card; a share is at most one card"
        problem: str | None = self.hooks.refusal("job_problem", gang)
        return problem

    def classes_of(self, gang: int) -> list[TaskClass]:
        """Classes of its members that wait, each once."""
        tasks = self.tasks
        waiting = {int(tasks.cls[t]): None for t in self.gangs.members(gang) if tasks.status[t] == PENDING}
        return [self.cluster.classes[index] for index in sorted(waiting)]

    def needed(self, gang: int) -> int:
        """How many more members it takes to reach minMember, promised ones counted as there."""
        return max(0, self.gangs.least[gang] - self.gangs.ready(gang) - self.gangs.waiting(gang))

    def short_of_start(self, gang: int) -> int:
        """How many more members it takes to start: those of minMember, where a plugin keeps it. With ``compat`` the
        plugin's word is all: members that ask for nothing count as in place, and may come later."""
        return self.needed(gang) if self.keeps_minimum and not self.compat else 0

    def is_ready(self, gang: int) -> bool:
        """All plugins agree that the gang may run as it is."""
        return self.hooks.all_true("job_ready", gang)

    def is_pipelined(self, gang: int) -> bool:
        """The gang could run once what leaves has left."""
        return self.hooks.vote("job_pipelined", gang) is None

    # Orders ----------------------------------------------------------------------------------------------------

    def queue_key(self, queue: int) -> tuple[Any, ...]:
        """Sort key of a queue; a total order. Kept until what the queue uses changes."""
        version = int(self.ledger.versions[queue])
        known = self._queue_keys.get(queue)
        if known is None or known[0] != version or not self.keeps_queue_keys:
            spec = self.ledger.queues[queue]
            known = (version, (*self.hooks.key("queue_order", queue), spec.created, spec.name))
            self._queue_keys[queue] = known
        return known[1]

    def job_key(self, gang: int) -> tuple[Any, ...]:
        """Sort key of a gang inside its queue; a total order."""
        return (*self.hooks.key("job_order", gang), self.waiting_since(gang), self.gangs.names[gang])

    def task_key(self, task: int) -> tuple[Any, ...]:
        """Sort key of a task inside its gang; a total order (semantics 1.4: index in the name, creation, name)."""
        known = self._task_keys.get(task)
        if known is None:
            known = self._task_keys[task] = self._task_key(task)
        return known

    def _task_key(self, task: int) -> tuple[Any, ...]:
        pod = self.tasks.pod(task)
        parts = pod.name.rsplit("-", 2)
        number = int(parts[2]) if len(parts) == 3 and parts[2].isdecimal() else math.inf
        return (*self.hooks.key("task_order", task), number, pod.created, pod.key)

    def pending_tasks(self, gang: int, *statuses: int) -> list[int]:
        """Its tasks that wait (or are in one of ``statuses``), in task order."""
        found = self.gangs.with_status(gang, *(statuses or (PENDING,)))
        if len(found) > 1:
            found.sort(key=self.task_key)
        return found

    # Changes ---------------------------------------------------------------------------------------------------

    def statement(self) -> Statement:
        return Statement(self.cluster)

    def commit(self, statement: Statement) -> tuple[Operation, ...]:
        return statement.commit()

    def let_go(self) -> None:
        """Drop the tables once the result is there: what is read of it later needs only gangs, queues and phases."""
        self.cluster.workspace.take_back(self.nodes, self.cards)
        del self.nodes, self.cards, self.tasks, self.candidates
        del self.cluster.nodes, self.cluster.cards, self.cluster.tasks

    # Demands ---------------------------------------------------------------------------------------------------

    def demand_of(self, tasks: Sequence[int]) -> Demand:
        """What the tasks ask for together, as it counts against a quota."""
        cpu = memory = 0
        cards: dict[tuple[int, ...], int] = {}
        unnamed: dict[tuple[int, ...], int] = {}
        unknown: dict[str, int] = {}
        charge = self.cluster.charge
        for task in tasks:
            cls = self.cluster.class_of(task)
            cpu += int(charge[0, cls.index])
            memory += int(charge[1, cls.index])
            if cls.cards:
                part = cards if cls.names else unnamed
                part[cls.cards] = part.get(cls.cards, 0) + cls.milli
            elif cls.milli:
                unknown[cls.card_key] = unknown.get(cls.card_key, 0) + cls.milli
        return Demand(cpu, memory, cards, unnamed, unknown)

    def demand_of_class(self, index: int, count: int) -> Demand:
        """What several tasks of one class ask for."""
        known = self._class_demands.get((index, count))
        if known is None:
            cls, charge = self.cluster.classes[index], self.cluster.charge
            asked = {cls.cards: cls.milli * count} if cls.cards else {}
            known = self._class_demands[index, count] = Demand(
                int(charge[0, index]) * count,
                int(charge[1, index]) * count,
                asked if cls.names else {},
                {} if cls.names else asked,
                {cls.card_key: cls.milli * count} if cls.milli and not cls.cards else {},
            )
        return known

    def minimum(self, gang: int) -> Demand:
        """What the gang needs beyond what it has, to reach minMember.

        The larger of what existing tasks ask for and what the PodGroup's ``minResources`` and ``card.request`` say,
        less what members in place, finished ones and those behind a scheduling gate ask for (upstream: all of it, again
        and again). Nothing for a gang whose missing members nobody makes any more."""
        count = self.needed(gang)
        if not count or self.orphaned(gang):
            return Demand()
        group, alike = self.group(gang), self.columns.waiting_class(gang)
        if alike is not None and alike[1] >= count:
            seen = self.demand_of_class(alike[0], count)
        else:
            seen = self.demand_of(self.pending_tasks(gang)[:count])
        if group.min_resources is None and not group.card_request:
            return seen
        whole = self.declared(group)
        stands = () if self.compat else self.gangs.with_status(gang, *NOT_TO_COME)
        return seen.at_least(whole.less(self.demand_of(stands)) if stands else whole)

    def orphaned(self, gang: int) -> bool:
        """Fewer members are there than it takes, one has ended, and no controller owns the gang to make others."""
        counts, group = self.gangs.counts[:, gang], self.group(gang)
        there = int(counts[[*NOT_TO_COME, PENDING]].sum())
        ended = bool(counts[SUCCEEDED] + counts[FAILED])
        return ended and there < group.min_member and not group.owner_kind and not group.waits_for_admission

    def never_starts(self, gang: int) -> bool:
        """As it is written, as long as that stays so."""
        return bool(self.group(gang).unsupported) or self.problem(gang) is not None or self.orphaned(gang)

    def declared(self, group: PodGroup) -> Demand:
        """What ``minResources`` and ``card.request`` of a PodGroup ask for."""
        resources = group.min_resources
        cards: dict[tuple[int, ...], int] = {}
        unknown: dict[str, int] = {}
        for name, milli in sorted(group.card_request.items()):
            known = tuple(self.axes.card_index[n] for n in name.split("|") if n in self.axes.card_index)
            if known:
                cards[known] = cards.get(known, 0) + milli
            else:
                unknown[name] = unknown.get(name, 0) + milli
        cpu, memory = (resources.cpu_milli, resources.memory_mib) if resources else (0, 0)
        unnamed = self._unnamed_cards(group, cards)
        charge = self.hooks.first("quota_charge", cpu, memory, bool(cards or unknown or unnamed))
        if charge is not None:
            cpu, memory = charge
        return Demand(cpu, memory, cards, unnamed, unknown)

    def _unnamed_cards(self, group: PodGroup, named: dict[tuple[int, ...], int]) -> dict[tuple[int, ...], int]:
        """Milli-cards that ``minResources`` asks for by their resource, where ``card.request`` does not name them."""
        axes, found = self.axes, dict[tuple[int, ...], int]()
        counted = {axes.resources[choice[0]] for choice in named}
        for resource, count in sorted(group.min_scalars.items()):
            choice = axes.cards_of_resource.get(resource)
            if choice and count and resource not in counted:
                found[choice] = count * MILLI
        return found

    def _phases_now(self) -> Codes:
        """int8 (G,): what the members bear out; a PodGroup that lost its pods starts again as Pending."""
        gangs = self.gangs
        written = self.cluster.workspace.facts.phase.copy()
        enough = gangs.scheduled_count >= gangs.min_member
        unsettled = (written == PHASE_PENDING) | (written == PHASE_UNKNOWN)
        lost = ~enough & ((written == PHASE_RUNNING) | (written == PHASE_UNKNOWN))
        written[enough & unsettled & (np.diff(gangs.start) > 0)] = PHASE_RUNNING
        written[lost] = PHASE_PENDING
        return written


def _node_index(workspace: Workspace, snapshot: Snapshot) -> NodeIndex:
    """Masks over the nodes, made once for as long as no node changes."""
    index = workspace.masks.get("node_index")
    if not isinstance(index, NodeIndex):
        index = NodeIndex(snapshot.nodes)
        workspace.masks["node_index"] = index
    return index
