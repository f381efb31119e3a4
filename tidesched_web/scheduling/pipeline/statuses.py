"""These are levels, not acts: what was not sent is decided anew from what the cluster shows."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from tidesched_web.clusters.kubernetes.client import KubernetesClient, Unreachable
from tidesched_web.clusters.kubernetes.installation_lease import InstallationLease
from tidesched_web.clusters.kubernetes.manifests import rfc3339
from tidesched_web.clusters.kubernetes.outcomes import Outcome as Answer
from tidesched_web.clusters.kubernetes.outcomes import OutcomeKind
from tidesched_web.clusters.kubernetes.paths import QUEUE
from tidesched_web.clusters.kubernetes.writes import ClusterWrites
from tidesched_web.engine.model import MIB, QueueOutcome, Result, Snapshot
from tidesched_web.scheduling.models import DecisionKind, DecisionState
from tidesched_web.scheduling.pipeline import planning, timing
from tidesched_web.scheduling.pipeline.decisions import Draft, Outcome
from tidesched_web.scheduling.pipeline.sending import BATCH, Route, outcome_of, split_name

# Figures of a queue move in every session; they are not watched that closely.
FIGURES_SECONDS = 5.0


def send(drafts: Sequence[Draft], route: Route, *, told: Callable[[Sequence[Draft]], None]) -> int:
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
        told([draft for draft, answer in zip(flat, answers, strict=True) if answer.kind is not OutcomeKind.UNREACHABLE])
        route.finish(flat, outcomes)
    return failed


def _call(draft: Draft, route: Route) -> Callable[[], Answer]:
    namespace, name = split_name(draft.target)
    detail = draft.detail
    if draft.kind is DecisionKind.STATUS:
        # As Volcano writes them: the session that saw the change, and when.
        since = {"transitionID": str(route.session_id), "lastTransitionTime": rfc3339(route.now.timestamp())}
        conditions = [{**condition, **since} for condition in detail["conditions"]]
        return lambda: route.writes.patch_podgroup_status(
            namespace, name, uid=draft.uid, phase=detail["phase"], conditions=conditions
        )
    return lambda: route.writes.write_event(
        kind=detail["kind"],
        namespace=namespace,
        name=name,
        uid=draft.uid,
        type_=detail["type"],
        reason=detail["reason"],
        message=detail["message"],
        now=route.now.timestamp(),
        first=detail["first"],
        count=detail["count"],
    )


_COUNTS = ("pending", "inqueue", "running", "unknown", "completed")


def clear_queue_figures(client: KubernetesClient, lease: InstallationLease) -> int:
    """Stale figures would stay for ever: gangs hold a deletion, and allocated pods forbid child queues."""
    writes, cleared = ClusterWrites(client, lease=lease), 0
    for queue in client.get(QUEUE.path())["items"]:
        status, metadata = queue.get("status") or {}, queue["metadata"]
        if not status.get("allocated") and not any(status.get(count) for count in _COUNTS):
            continue
        nothing: dict[str, Any] = {**dict.fromkeys(_COUNTS, 0), "allocated": None}
        answer = writes.patch_queue_status(metadata["name"], nothing)
        if answer.kind is OutcomeKind.UNREACHABLE:
            raise Unreachable(answer.message, maybe_done=answer.maybe_done)
        cleared += answer.done
    return cleared


class QueueStatusBook:
    """The state belongs to what opens and closes queues; only one that has none yet is said to be open."""

    def __init__(self) -> None:
        self._told: dict[str, dict[str, Any]] = {}
        self._told_at = float("-inf")

    def send(
        self, result: Result, snapshot: Snapshot, route: Route, *, stateless: Mapping[str, int], but: Collection[str]
    ) -> int:
        """``stateless``: queues without a state, and the version that they were seen at. ``but``: not these queues."""
        if timing.monotonic() - self._told_at < FIGURES_SECONDS:
            return 0
        self._told_at = timing.monotonic()
        phases: dict[str, Counter[str]] = {}
        for gang in result.podgroups:
            phases.setdefault(gang.queue, Counter())[str(gang.phase).lower()] += 1
        there = {queue.name for queue in snapshot.queues if not queue.made}
        resources = {card.name: card.resource for card in snapshot.card_types}
        wanted = {
            queue.name: _queue_status(queue, phases.get(queue.name, Counter()), resources)
            for queue in result.queues
            if queue.name in there and queue.name not in but
        }
        moved = [name for name, status in wanted.items() if name in stateless or self._told.get(name) != status]
        answers = route.send([_patch(route, name, wanted[name], stateless.get(name)) for name in moved])
        for name, answer in zip(moved, answers, strict=True):
            if answer.done:
                self._told[name] = wanted[name]
        return len(moved)


def _patch(route: Route, name: str, status: dict[str, Any], stateless: int | None) -> Callable[[], Answer]:
    if stateless is None:
        return lambda: route.writes.patch_queue_status(name, status)
    return lambda: route.writes.patch_queue_status(name, {**status, "state": "Open"}, version=stateless)


def _queue_status(queue: QueueOutcome, phases: Counter[str], resources: Mapping[str, str]) -> dict[str, Any]:
    """``resources``: by which resource each card type is counted; one that is not used now is shown as none."""
    milli = dict.fromkeys(sorted(set(resources.values())), 0)
    for card, amount in queue.allocated.cards.items():
        milli[resources.get(card, card)] = milli.get(resources.get(card, card), 0) + amount
    return {
        "pending": phases["pending"],
        "inqueue": phases["inqueue"],
        "running": phases["running"],
        "unknown": phases["unknown"],
        "completed": phases["completed"],
        "allocated": {
            "cpu": f"{queue.allocated.cpu_milli}m",
            "memory": str(queue.allocated.memory_mib * MIB),
            **{name: f"{amount}m" if amount % 1000 else str(amount // 1000) for name, amount in milli.items()},
        },
    }
