"""Telling the cluster how gangs and queues stand: PodGroup status, events, Queue status.

These are levels, not acts: what was not told is decided anew from what the cluster shows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tidesched_web.clusters.kubernetes.outcomes import Outcome as Answer
from tidesched_web.engine.model import MIB, Event, QueueOutcome, Result, Snapshot
from tidesched_web.scheduling.models import Decision, DecisionKind, DecisionState
from tidesched_web.scheduling.pipeline import planning, timing
from tidesched_web.scheduling.pipeline.decisions import Draft, Outcome
from tidesched_web.scheduling.pipeline.sending import BATCH, Route, outcome_of, split_name

MOST_EVENTS = 200
# Figures of a queue move in every session; nobody watches them that closely.
FIGURES_SECONDS = 5.0


def send(drafts: Sequence[Draft], route: Route) -> int:
    """Write PodGroup statuses and events; returns how many went wrong.

    Raises:
        LeaseLost, Paused: what was not sent yet stays open.
    """
    failed = 0
    for batch in planning.batches([[draft] for draft in drafts], BATCH):
        flat = [unit[0] for unit in batch]
        route.begin(flat)
        answers = route.send([_call(draft, route) for draft in flat])
        outcomes = [
            # Unknown ends are of no consequence here: the next session compares with what it sees.
            outcome_of(draft, answer) or Outcome(draft.id, DecisionState.SUPERSEDED, "No answer; decided anew.")
            for draft, answer in zip(flat, answers, strict=True)
        ]
        failed += sum(outcome.state is DecisionState.FAILED for outcome in outcomes)
        route.finish(flat, outcomes)
    return failed


def _call(draft: Draft, route: Route) -> Callable[[], Answer]:
    namespace, name = split_name(draft.target)
    detail = draft.detail
    if draft.kind is DecisionKind.STATUS:
        return lambda: route.writes.patch_podgroup_status(
            namespace, name, uid=draft.uid, phase=detail["phase"], conditions=detail["conditions"]
        )
    return lambda: route.writes.create_event(
        kind=detail["kind"],
        namespace=namespace,
        name=name,
        uid=draft.uid,
        type_=detail["type"],
        reason=detail["reason"],
        message=detail["message"],
        now=route.now.timestamp(),
    )


class EventBook:
    """One event for each reason until it changes: remembers which were told in the last session."""

    def __init__(self, *, cluster_id: int) -> None:
        self.cluster_id = cluster_id
        self._told: set[tuple[str, str, str]] = set()

    def load(self) -> None:
        """Take the newest events that were written as told, so that a new process does not repeat them."""
        rows = (
            Decision.objects.filter(cluster_id=self.cluster_id, kind=DecisionKind.EVENT)
            .order_by("-id")
            .values_list("detail__kind", "target", "detail__reason")[:2000]
        )
        self._told = {(kind, target, reason) for kind, target, reason in rows}

    def new(self, events: Iterable[Event]) -> list[Event]:
        """The events that were not told in the last session; call once a session that sends."""
        now = {(event.kind, event.name, event.reason): event for event in events}
        fresh = [event for key, event in now.items() if key not in self._told]
        told = fresh[:MOST_EVENTS]
        self._told = (self._told & now.keys()) | {(event.kind, event.name, event.reason) for event in told}
        return told


class QueueStatusBook:
    """Writes ``status`` of the cluster's queues where it moved: a new state at once, figures every few seconds."""

    def __init__(self) -> None:
        self._told: dict[str, dict[str, Any]] = {}
        self._told_at = float("-inf")

    def send(self, result: Result, snapshot: Snapshot, route: Route) -> int:
        """Bring the queues' statuses to what the session saw; returns how many were written.

        Raises:
            LeaseLost: the rest waits for the next holder.
        """
        phases: dict[str, Counter[str]] = {}
        for gang in result.podgroups:
            phases.setdefault(gang.queue, Counter())[str(gang.phase).lower()] += 1
        there = {queue.name for queue in snapshot.queues if not queue.made}
        wanted = {
            queue.name: _queue_status(queue, phases.get(queue.name, Counter()))
            for queue in result.queues
            if queue.name in there
        }
        due = timing.monotonic() - self._told_at >= FIGURES_SECONDS
        moved = [
            name
            for name, status in wanted.items()
            if self._told.get(name, {}).get("state") != status["state"] or (due and self._told[name] != status)
        ]
        if due:
            self._told_at = timing.monotonic()
        answers = route.send([_patch(route, name, wanted[name]) for name in moved])
        for name, answer in zip(moved, answers, strict=True):
            if answer.done:
                self._told[name] = wanted[name]
        return len(moved)


def _patch(route: Route, name: str, status: dict[str, Any]) -> Callable[[], Answer]:
    return lambda: route.writes.patch_queue_status(name, status)


def _queue_status(queue: QueueOutcome, phases: Counter[str]) -> dict[str, Any]:
    allocated = {"cpu": f"{queue.allocated.cpu_milli}m", "memory": str(queue.allocated.memory_mib * MIB)}
    return {
        "state": queue.state,
        "pending": phases["pending"],
        "inqueue": phases["inqueue"],
        "running": phases["running"],
        "unknown": phases["unknown"],
        "completed": phases["completed"],
        "allocated": allocated,
    }
