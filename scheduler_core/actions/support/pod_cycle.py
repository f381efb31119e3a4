"""The per-pod cycle: one pod after the other through filter, score, reserve, permit and bind.

Used by action ``allocate`` where a plugin sorts pods (point ``queue_sort``). Gangs are not kept together here but by
what plugins permit. Any failure after reserve is unreserved; a pod that waits keeps its place until its plugin's
deadline, over sessions too (a reservation in Memory).

Source: document 001, 2.2.3 and 3.2; points in :mod:`scheduler_core.framework.pod_points`."""

import enum
import hashlib
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import msgspec
import numpy as np

from scheduler_core.actions.support.assumed_pods import assume
from scheduler_core.actions.support.attempt import Attempt, record
from scheduler_core.actions.support.dry_run import DryRun
from scheduler_core.actions.support.placement import allowed_options
from scheduler_core.actions.support.single_places import SinglePlaces
from scheduler_core.actions.support.victims import Victims
from scheduler_core.algorithms.victims import Unit
from scheduler_core.algorithms.zones import interleaved
from scheduler_core.framework.pod_points import APPROVE, Approve, Deny, Nomination, Permit, Wait
from scheduler_core.framework.scheduling_queue import SchedulingQueue
from scheduler_core.framework.session import Session
from scheduler_core.model.memory import Reservation
from scheduler_core.model.pod import Pod
from scheduler_core.model.podgroup import GangPhase
from scheduler_core.model.queued_pod import Where
from scheduler_core.model.reason import ReasonCode
from scheduler_core.model.rules import Rule
from scheduler_core.state.cluster import Place
from scheduler_core.state.status import CHARGED, PENDING, PIPELINED, Ints

# How long room that preemption makes stays promised: longer than any usual grace period and controller delay.
_NOMINATION_SECONDS = 120.0
_ZONE = "topology.kubernetes.io/zone"


class PodCycle:
    """All pods of the session that are due, one cycle each. ``values``: arguments of action ``allocate``."""

    def __init__(self, session: Session, values: Mapping[str, Any]) -> None:
        self._session, self._now = session, session.now
        self._assume_seconds = float(values["assumeSeconds"])
        self._rank: Ints | None = None
        if values["interleaveZones"]:
            self._rank = interleaved([node.labels.get(_ZONE, "") for node in session.snapshot.nodes])
        memory = session.memory
        self.queue = SchedulingQueue(
            initial=float(values["podInitialBackoffSeconds"]), most=float(values["podMaxBackoffSeconds"]),
            leftover=float(values["podMaxInUnschedulableSeconds"]), entries=memory.queue, cycle=memory.cycle,
            move_cycle=memory.move_cycle,
        )  # fmt: skip
        self._slots: dict[str, int] = {}
        self._freed = False
        # Gangs that ran out of time in this session, and how.
        self._late: dict[int, str] = {}

    def run(self) -> None:
        """O(pods x nodes)."""
        session = self._session
        self._reconsider()
        self._read_queue()
        tried: set[str] = set()
        while due := [p for p in self.queue.pending(Where.ACTIVE) if p in self._slots and p not in tried]:
            tried.update(due)
            for task in sorted((self._slots[pod] for pod in due), key=self._sort_key):
                if session.tasks.status[task] == PENDING and self.queue.active(session.tasks.keys[task]):
                    self._cycle(task)
        for entry in self.queue.entries():
            if entry.timed_out and entry.pod in self._slots:
                gang = int(session.tasks.gang[self._slots[entry.pod]])
                session.stated[gang] = (ReasonCode.TIMED_OUT, entry.timed_out)
        for entry in self.queue.entries():
            if entry.pod not in self._slots or entry.where is Where.ACTIVE:
                continue
            text = f"{entry.pod} is tried again in {self.queue.ready_at(entry.pod) - self._now:.0f} s"
            if entry.where is Where.UNSCHEDULABLE:
                seconds = entry.tried + self.queue.leftover - self._now
                text = f"{entry.pod} is tried again when something changes, in {seconds:.0f} s at the latest"
            session.stated.setdefault(int(session.tasks.gang[self._slots[entry.pod]]), (ReasonCode.BACKING_OFF, text))
        session.scheduling_queue = self.queue

    def _sort_key(self, task: int) -> tuple[Any, ...]:
        pod = self._session.tasks.pod(task)
        return (*self._session.hooks.key("queue_sort", task), pod.created, pod.key)

    def _read_queue(self) -> None:
        """Bring the queue up to the snapshot: who is new, gone, changed, and whether anything happened."""
        session, queue = self._session, self.queue
        others: dict[str, None] = {}
        for gang in session.gangs.with_tasks_to_place():
            if session.group(gang).elsewhere:
                others.update((session.tasks.keys[task], None) for task in session.gangs.members(gang))
            if session.phase[gang] is GangPhase.PENDING or not session.schedulable(gang):
                continue
            for task in session.gangs.with_status(gang, PENDING):
                self._slots[session.tasks.keys[task]] = task
        for entry in queue.entries():
            if entry.pod not in self._slots and entry.pod not in others:
                queue.delete(entry.pod)
        of_gang: dict[int, str] = {}
        for pod, task in self._slots.items():
            gang = int(session.tasks.gang[task])
            if gang not in of_gang:
                of_gang[gang] = gang_digest(session, gang)
            digest = _digest(session.tasks.pod(task), of_gang[gang])
            if pod not in queue:
                queue.add(pod, digest)
            elif queue[pod].digest != digest:
                queue.update(pod, digest, self._now)
            if gang in self._late:
                queue.rest(pod, self._now, self._late[gang])
        before, now = session.memory.events, cluster_events(session)
        happened = {event for event, digest in now.items() if before.get(event) != digest}
        if self._freed:
            happened.add(Event.POD)
        if happened:
            queue.move_all(self._now, lambda pod: not happened.isdisjoint(self._waits_for(pod)))
        queue.flush(self._now)

    def _waits_for(self, pod: str) -> frozenset[str]:
        return waits_for(self._session.tasks.pod(self._slots[pod])) if pod in self._slots else frozenset()

    @cached_property
    def _places(self) -> SinglePlaces:
        return SinglePlaces(self._session)

    # One pod ----------------------------------------------------------------------------------------------------

    def _cycle(self, task: int) -> None:
        session, pod = self._session, self._session.tasks.keys[task]
        self.queue.take(pod)
        cycle = self.queue.cycle
        failure = session.hooks.refusal("pre_filter", task)
        if failure is None:
            if not self._place(task):
                self._post_filter(task, cycle)
                return
            if self._bind(task):
                self.queue.delete(pod)
                return
        elif isinstance(failure, Deny):
            self._denied(task, failure)
        late = self._late.get(int(session.tasks.gang[task]), "")
        self.queue.add_unschedulable(pod, cycle, self._now, timed_out=late)

    def _place(self, task: int) -> bool:
        """Filter and score: allocate on the best node where the pod fits now."""
        hooks = self._session.hooks
        if self._rank is None and not hooks.flat("pre_score") and not hooks.flat("normalize_score"):
            return self._places.best(task)
        node = self._best_node(task)
        return node >= 0 and self._places.on(task, node)

    def _best_node(self, task: int) -> int:
        """The best node where plugins have a word about all scores, or zones take turns; -1 = none."""
        session = self._session
        cls = session.cluster.class_of(task)
        options, _ = allowed_options(session, session.queue_of(int(session.tasks.gang[task])), cls)
        if not any(options):
            return -1
        nodes, scores = session.candidates.feasible(cls, options, task)
        if not nodes.any() or session.hooks.refusal("pre_score", task, nodes) is not None:
            return -1
        for _, call in session.hooks.flat("normalize_score"):
            scores = call(task, scores)
        scores = np.where(nodes, scores, -np.inf)
        best = int(scores.argmax())
        if self._rank is not None:
            equal = np.flatnonzero(scores == scores[best])
            best = int(equal[self._rank[equal].argmin()])
        return best

    def _bind(self, task: int) -> bool:
        """Reserve, permit, bind; True when the pod has its place, be it as one that waits."""
        session, node = self._session, int(self._session.tasks.node[task])
        if session.hooks.refusal("reserve", task, node) is not None:
            return self._unreserve(task, node)
        answer = self._permit(task, node)
        if isinstance(answer, Deny):
            self._denied(task, answer)
            return self._unreserve(task, node)
        if isinstance(answer, Wait):
            self._places.give_back(task, promise=True)
            self._hold(task, answer)
            return True
        if not self._binding(task, node):
            return self._unreserve(task, node)
        assume(session, task, self._assume_seconds)
        self._reconsider(int(session.tasks.gang[task]))
        return True

    def _permit(self, task: int, node: int) -> Permit:
        """The first refusal; else the longest wait; else approval."""
        longest: Wait | None = None
        for _, call in self._session.hooks.flat("permit"):
            answer: Permit = call(task, node)
            if isinstance(answer, Deny):
                return answer
            if isinstance(answer, Wait) and (longest is None or answer.until > longest.until):
                longest = answer
        return longest or APPROVE

    def _binding(self, task: int, node: int) -> bool:
        hooks = self._session.hooks
        if hooks.refusal("pre_bind", task, node) is not None:
            return False
        for _, call in hooks.flat("bind"):
            answer = call(task, node)
            if isinstance(answer, str):
                return False
            if answer:
                break
        hooks.call_all("post_bind", task, node)
        return True

    def _unreserve(self, task: int, node: int) -> bool:
        """Take everything back, in reverse order; always False."""
        self._call_unreserve(task, node)
        self._places.give_back(task)
        return False

    def _call_unreserve(self, task: int, node: int) -> None:
        for _, call in reversed(self._session.hooks.flat("unreserve")):
            call(task, node)

    # Pods that wait for others ----------------------------------------------------------------------------------

    def _hold(self, task: int, answer: Wait) -> None:
        session = self._session
        place, pod = session.cluster.place_of(task), session.tasks.keys[task]
        gang = int(session.tasks.gang[task])
        session.reservations[pod] = Reservation(
            pod=pod, gang=session.gangs.names[gang], node=session.axes.nodes[place.node],
            card=session.axes.cards[place.card] if place.card >= 0 else "", card_indices=place.indices, made=self._now,
            expires=answer.until, attempts=self.queue.attempts(pod),
        )  # fmt: skip

    def _reconsider(self, only: int = -1) -> None:
        """Ask permission again for pods that keep a place: of one gang, or of all."""
        session = self._session
        for gang in [only] if only >= 0 else session.gangs.with_tasks_to_place():
            if not session.gangs.waiting(gang) or session.group(gang).elsewhere:
                continue
            for task in session.pending_tasks(gang, PIPELINED):
                if session.tasks.status[task] != PIPELINED:
                    # It was let go with the rest of its group.
                    continue
                reservation = session.reservations.get(session.tasks.keys[task])
                if reservation is None or reservation.victims:
                    self._take_promised(task)
                else:
                    self._ask_again(task, reservation)

    def _ask_again(self, task: int, reservation: Reservation) -> None:
        session = self._session
        place = session.cluster.place_of(task)
        answer = self._permit(task, place.node)
        if isinstance(answer, Wait) and self._now < reservation.expires:
            return
        if isinstance(answer, Approve):
            if not self._retake(task, place):
                return
            if self._binding(task, place.node):
                assume(session, task, self._assume_seconds)
                session.reservations.pop(reservation.pod, None)
                self.queue.delete(reservation.pod)
                return
        self._places.give_back(task)
        session.reservations.pop(reservation.pod, None)
        if not isinstance(answer, Deny):
            waited = reservation.expires - reservation.made
            answer = Deny(f"its group was not complete {waited:g} s after it had a place", timed_out=True)
        self._call_unreserve(task, place.node)
        self._lose(reservation, answer.reason if answer.timed_out else "")
        self._denied(task, answer, lost=True)

    def _retake(self, task: int, place: Place) -> bool:
        """Allocate the place that was promised, where it is free and the quota still allows it."""
        self._places.give_back(task)
        if self._places.on(task, place.node, place.card):
            return True
        statement = self._session.statement()
        statement.pipeline(task, place.node, place.card, place.indices)
        self._session.commit(statement)
        return False

    def _take_promised(self, task: int) -> None:
        """Place a pod on room that preemption has made, if it is there by now; permission is needed as everywhere."""
        session, pod = self._session, self._session.tasks.keys[task]
        if self._retake(task, session.cluster.place_of(task)):
            session.reservations.pop(pod, None)
            if self._bind(task):
                self.queue.delete(pod)

    def _denied(self, task: int, answer: Deny, *, lost: bool = False) -> None:
        """A group that timed out lets go of every place that it keeps, and none of it takes them again before others
        had their turn."""
        session, gang = self._session, int(self._session.tasks.gang[task])
        if not answer.timed_out:
            return
        self._late[gang] = answer.reason
        for other in session.pending_tasks(gang, PIPELINED):
            reservation = session.reservations.pop(session.tasks.keys[other], None)
            if other != task and reservation is not None:
                node = int(session.tasks.node[other])
                self._places.give_back(other)
                self._call_unreserve(other, node)
                self._lose(reservation, answer.reason)
                lost = True
        for other in session.gangs.with_status(gang, PENDING) if lost else ():
            self.queue.rest(session.tasks.keys[other], self._now, answer.reason)

    def _lose(self, reservation: Reservation, timed_out: str) -> None:
        """A pod gives its place up: it backs off, and others are tried on it in this very session."""
        self.queue.put_back(reservation.pod, reservation.attempts, self._now, timed_out=timed_out)
        self._freed = True
        self.queue.move_all(self._now, lambda pod: Event.POD in self._waits_for(pod))

    # Preemption -------------------------------------------------------------------------------------------------

    def _post_filter(self, task: int, cycle: int) -> None:
        session, pod = self._session, self._session.tasks.keys[task]
        nomination: Nomination | None = None
        for _, call in session.hooks.flat("post_filter"):
            nomination = call(task, DryRun(session, task))
            if nomination is not None:
                break
        if nomination is None or not self._nominate(task, nomination):
            self.queue.add_unschedulable(pod, cycle, self._now)
            return
        # A pod leaves: that may help others as well.
        self.queue.add_unschedulable(pod, cycle, self._now, nominated=session.axes.nodes[nomination.node])
        self.queue.move_all(self._now)

    def _nominate(self, task: int, nomination: Nomination) -> bool:
        """Evict the victims and promise their room; False, and nothing has happened, where it would not do."""
        session, gang = self._session, int(self._session.tasks.gang[task])
        attempt = Attempt(gang, session.statement())
        leaving = self._with_siblings(nomination.victims)
        for victim in leaving:
            attempt.statement.evict(victim)
        cls = session.cluster.class_of(task)
        options, _ = allowed_options(session, session.queue_of(gang), cls)
        spot = session.candidates.spot_on(cls, nomination.node, options, now=False) if any(options) else None
        if spot is None:
            attempt.statement.discard()
            return False
        attempt.statement.pipeline(task, spot.node, spot.card, spot.indices)
        attempt.placed, attempt.backed = [task], [task]
        work = Victims(session)
        lost = {victim: work.work_lost(victim) for victim in leaving}
        attempt.units = [_unit(session, victim, lost[victim]) for victim in leaving]
        session.commit(attempt.statement)
        record(session, "preempt", attempt, lost, rule=Rule.POD_PREEMPTS.text(), verb="preempts for")
        place, pod = session.cluster.place_of(task), session.tasks.keys[task]
        session.reservations[pod] = Reservation(
            pod=pod,
            gang=session.gangs.names[gang],
            node=session.axes.nodes[place.node],
            card=session.axes.cards[place.card] if place.card >= 0 else "",
            card_indices=place.indices,
            victims=tuple(sorted(session.tasks.keys[victim] for victim in leaving)),
            made=self._now,
            expires=self._now + _NOMINATION_SECONDS,
        )
        return True

    def _with_siblings(self, victims: tuple[int, ...]) -> list[int]:
        """The victims, and all members that are evicted with them, by name."""
        session = self._session
        leaving: dict[int, None] = dict.fromkeys(victims)
        for victim in victims:
            gang = int(session.tasks.gang[victim])
            if session.gangs_fall_whole or session.group(gang).evicted_policy.fells_gang:
                members = session.gangs.members(gang)
                leaving.update(dict.fromkeys(t for t in members if CHARGED[session.tasks.status[t]]))
        return sorted(leaving, key=session.tasks.keys.__getitem__)


def _unit(session: Session, victim: int, work: int) -> Unit:
    name = session.gangs.names[int(session.tasks.gang[victim])]
    pod = session.tasks.keys[victim]
    return Unit(name=pod, gang=name, level=(0, 0), work=work, size=0, members=(victim,), spare=1)


class Event(enum.StrEnum):
    """What may have happened since the session before, as far as it can help a pod that waits."""

    NODE = "node"  # came, or has more room
    LABEL = "label"
    TAINT = "taint"  # or cordoned
    POD = "pod"  # came, went or gave its place up
    COMPANY = "company"  # labels of pods that run
    VOLUME = "volume"  # volume, claim, class
    QUEUE = "queue"
    POLICY = "policy"


_ANY = frozenset({Event.NODE, Event.TAINT, Event.POD, Event.QUEUE, Event.POLICY})


def waits_for(pod: Pod) -> frozenset[str]:
    """Which events can help a pod. What it does not ask for keeps it from nothing."""
    found = set(_ANY)
    if pod.node_selector or pod.required_nodes or pod.relations or pod.claims:
        found.add(Event.LABEL)
    if pod.relations:
        found.add(Event.COMPANY)
    if pod.claims:
        found.add(Event.VOLUME)
    return frozenset(found)


def cluster_events(session: Session) -> dict[str, str]:
    """Digests of what each event changes. O(nodes + pods + volumes)."""
    snapshot, nodes, cards = session.snapshot, session.nodes, session.cards
    running = [(pod.key, pod.node, pod.labels) for pod in snapshot.pods if pod.node and pod.labels]
    # What those that run keep others away from.
    apart = [(pod.key, pod.relations) for pod in snapshot.pods if pod.node and pod.relations]
    parts: dict[str, tuple[Any, ...]] = {
        Event.NODE: (session.axes.nodes, nodes.allocatable.tobytes(), cards.count.tobytes()),
        Event.LABEL: ([(node.name, node.labels) for node in snapshot.nodes],),
        Event.TAINT: ([(node.name, node.taints, node.unschedulable) for node in snapshot.nodes],),
        Event.POD: (nodes.used.tobytes(), nodes.releasing.tobytes(), cards.used.tobytes(), apart),
        Event.COMPANY: (running, snapshot.namespaces),
        Event.VOLUME: (snapshot.claims, snapshot.volumes, snapshot.storage_classes),
        Event.QUEUE: (snapshot.queues,),
        Event.POLICY: (session.policy.source or session.policy,),
    }
    return {event: _hash(part) for event, part in parts.items()}


def gang_digest(session: Session, gang: int) -> str:
    """What the chances of a gang's pods depend on beside the cluster: its minimums and who its members are."""
    group = session.group(gang)
    members = sorted(session.tasks.keys[task] for task in session.gangs.members(gang))
    return _hash((group.queue, group.min_member, sorted(group.min_task_member.items()), group.annotations, members))


def _digest(pod: Pod, of_gang: str) -> str:
    """What decides where a pod may be; another value means that it was changed."""
    parts = (
        pod.priority, pod.cpu_milli, pod.memory_mib, sorted(pod.scalars.items()), pod.card, pod.labels, pod.annotations,
        pod.node_selector, pod.required_nodes, pod.preferred_nodes, pod.tolerations, pod.host_ports, pod.relations,
    )  # fmt: skip
    return _hash((*parts, of_gang))


def _hash(parts: object) -> str:
    return hashlib.blake2b(msgspec.msgpack.encode(parts), digest_size=8).hexdigest()
