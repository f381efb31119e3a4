"""``--trace``: a line for each thing that happens to a pod, enough to compute every invariant again from outside."""

from typing import Any, BinaryIO

import msgspec

from scheduler_core.model.decision import Result
from scheduler_core.model.pod import Pod
from scheduler_core.model.resources import cards_to_json
from scheduler_core.simulator.changes import Cause, Change
from scheduler_core.simulator.objects import pod_name
from scheduler_core.simulator.workload import OwnerKind, WorkloadState
from scheduler_core.simulator.world import World


class TraceWriter:
    """Writes NDJSON; times are seconds from the start of the replay."""

    def __init__(self, world: World, out: BinaryIO) -> None:
        self._world, self._out, self._start = world, out, world.t
        self._encoder = msgspec.json.Encoder()
        self._reclaimers: dict[str, str] = {}
        self._leaving: set[str] = set()
        world.subscribe(self._heard)

    def decided(self, result: Result) -> None:
        self._reclaimers = {eviction.pod: eviction.reclaimer for eviction in result.evictions}

    def stepped(self) -> None:
        """Nothing of a session is left to write: the world has reported it all."""
        self._reclaimers = {}

    def _heard(self, change: Change) -> None:
        if isinstance(change.value, WorkloadState):
            if change.cause in (Cause.SUBMITTED, Cause.REQUEUED):
                self._workload("arrive" if change.cause is Cause.SUBMITTED else "requeue", change.value)
        elif change.kind == "Pod":
            self._pod(change)

    def _workload(self, event: str, state: WorkloadState) -> None:
        workload = state.workload
        job = workload.owner_kind is OwnerKind.JOB
        card = workload.template.card
        cards = {card.key: cards_to_json(card.milli)} if card is not None else {}
        for index in range(workload.replicas):
            self._write(
                event, f"{workload.namespace}/{pod_name(state, index)}", state, node=None, cards=cards,
                min_member=workload.min_member if job else 1,
            )  # fmt: skip

    def _pod(self, change: Change) -> None:
        pod, cause, key = change.value, change.cause, change.key
        if cause is Cause.BOUND:
            self._pod_line("bind", pod)
        elif cause is Cause.FINISHED:
            self._pod_line("finish", pod)
        elif cause in (Cause.EVICTED, Cause.KILLED):
            self._leaving.add(key)
            leaves = pod.deleted if pod.deleted is not None else self._world.t
            until = leaves + self._world.grace_seconds if pod.node and change.verb == "upsert" else leaves
            extra = {"until": round(until - self._start, 6), "reclaimer": self._reclaimers.get(key)}
            if not pod.finished:
                self._pod_line("evict", pod, **extra)
        elif change.verb == "delete" and pod.node and not pod.finished and key not in self._leaving:
            self._pod_line("finish", pod)
        if change.verb == "delete":
            self._leaving.discard(key)

    def _pod_line(self, event: str, pod: Pod, **extra: Any) -> None:
        state = self._world.workloads.get(pod.group_key)
        card, indices = self._world.placements.get(pod.key, ("", ()))
        cards = {card: cards_to_json(pod.card.milli)} if pod.card is not None and card else {}
        self._write(event, pod.key, state, node=pod.node or None, cards=cards, card_indices=list(indices), **extra)

    def _write(self, event: str, pod: str, state: WorkloadState | None, **rest: Any) -> None:
        workload = state.workload if state is not None else None
        line = {
            "t": round(self._world.t - self._start, 6),
            "event": event,
            "pod": pod,
            "gang": workload.key if workload is not None else None,
            "queue": workload.queue if workload is not None else None,
            "service_type": workload.service_type if workload is not None else None,
            **rest,
        }
        self._out.write(self._encoder.encode(line) + b"\n")
