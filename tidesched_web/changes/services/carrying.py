"""No transaction is open while the cluster is asked; every step may be done twice, and a claim that ran out is free."""

import datetime as dt
from collections import Counter
from collections.abc import Iterable

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from tidesched_web.changes.models import CarryAct, CarryState, ChangeObject, ChangeState, QuotaChange
from tidesched_web.changes.services.recording import announce, locked, move, tell
from tidesched_web.clusters.credentials import UNUSABLE
from tidesched_web.clusters.kubernetes.client import KubernetesClient
from tidesched_web.clusters.kubernetes.installation_lease import lease_of
from tidesched_web.clusters.kubernetes.outcomes import Outcome, OutcomeKind
from tidesched_web.clusters.kubernetes.writes import ClusterWrites
from tidesched_web.clusters.models import Cluster, ClusterMode
from tidesched_web.common.actors import SYSTEM
from tidesched_web.quota.models import PriorityClass, Queue, SyncState
from tidesched_web.quota.services import push
from tidesched_web.workloads.selectors import live_gangs

CLAIM = dt.timedelta(seconds=60)
# So many objects are sent before the pages hear how far it is.
BATCH = 250
QUEUE, CLASS = "Queue", "PriorityClass"
_OPEN = (CarryState.QUEUED, CarryState.APPLYING)


def carry(pk: int) -> bool:
    now = timezone.now()
    free = Q(claimed_until__isnull=True) | Q(claimed_until__lt=now)
    if not QuotaChange.objects.filter(free, pk=pk, state=ChangeState.APPLYING).update(claimed_until=now + CLAIM):
        return False
    change = QuotaChange.objects.select_related("cluster").get(pk=pk)
    try:
        if change.cluster.mode == ClusterMode.OBSERVE:
            _mark(_waiting(change), CarryState.SKIPPED, "mode observe")
        elif change.cluster.disconnected_at is not None:
            # Connecting it again lets it go on; a pod's own token would still open the door.
            _mark(_waiting(change), CarryState.QUEUED, "the cluster is disconnected")
        else:
            _send(change)
    finally:
        _settle(pk)
    return True


def _waiting(change: QuotaChange) -> list[ChangeObject]:
    return list(ChangeObject.objects.filter(change=change, state__in=_OPEN).order_by("kind", "name"))


def _send(change: QuotaChange) -> None:
    waiting = _waiting(change)
    try:
        client = KubernetesClient.for_cluster(change.cluster)
    except UNUSABLE as error:
        _mark(waiting, CarryState.QUEUED, str(error))
        return
    try:
        for start in range(0, len(waiting), BATCH):
            batch = waiting[start : start + BATCH]
            _mark(batch, CarryState.APPLYING)
            QuotaChange.objects.filter(pk=change.pk).update(claimed_until=timezone.now() + CLAIM)
            with transaction.atomic():
                announce(change)
            unreachable = _send_batch(change.cluster, client, batch)
            if unreachable:
                _mark(waiting[start:], CarryState.QUEUED, unreachable, only=_OPEN)
                return
    finally:
        client.close()


def _send_batch(cluster: Cluster, client: KubernetesClient, batch: list[ChangeObject]) -> str:
    writes = ClusterWrites(client, lease=lease_of(cluster.pk, cluster.api_url))
    for row in batch:
        if row.act == CarryAct.REPLACE:
            outcome = _remove_other_value(cluster, writes, row.name)
            if outcome is not None and outcome.kind is OutcomeKind.UNREACHABLE:
                return _words(outcome)
    kept = [row for row in batch if row.act != CarryAct.DELETE]
    report = push.push_cluster(
        cluster=cluster,
        queues_named=[row.name for row in kept if row.kind == QUEUE],
        classes_named=[row.name for row in kept if row.kind == CLASS],
        client=client,
    )
    _read_back(cluster, kept)
    if report.unreachable:
        return report.unreachable
    for row in batch:
        if row.act == CarryAct.DELETE:
            outcome = _delete(cluster, writes, row)
            if outcome.kind is OutcomeKind.UNREACHABLE:
                return _words(outcome)
            _note(row, outcome)
    return ""


def _remove_other_value(cluster: Cluster, writes: ClusterWrites, name: str) -> Outcome | None:
    """The first half of replacing a class: the live one goes where its value is another. Pods keep what they have."""
    wanted = PriorityClass.objects.filter(cluster=cluster, name=name).values_list("value", flat=True).first()
    found = writes.get_priority_class(name)
    if found.body is None or wanted is None or found.body.get("value") == wanted:
        return found if found.kind is OutcomeKind.UNREACHABLE else None
    return writes.delete_priority_class(name, uid=found.body["metadata"]["uid"])


def _delete(cluster: Cluster, writes: ClusterWrites, row: ChangeObject) -> Outcome:
    if row.kind == CLASS:
        if PriorityClass.objects.filter(cluster=cluster, name=row.name).exists():
            return Outcome(OutcomeKind.DONE, "MadeAnew")
        found = writes.get_priority_class(row.name)
        if found.body is None:
            return found
        return writes.delete_priority_class(row.name, uid=found.body["metadata"]["uid"])
    found = _unwanted(cluster, writes, row.name)
    if found.body is None:
        return found
    status, metadata = found.body.get("status") or {}, found.body["metadata"]
    uid, version = metadata["uid"], metadata["resourceVersion"]
    told = sum(int(status.get(count) or 0) for count in ("pending", "inqueue", "running", "unknown"))
    # What the status counts may be behind, or no controller may count at all: what the sessions see has a say too.
    gangs = max(told, live_gangs(cluster, [row.name]).get(row.name, 0))
    if status.get("state") != "Closed":
        by_command = cluster.mode == ClusterMode.QUOTA
        closed = writes.close_queue(row.name, drained=not gangs, by_command=by_command, version=version)
        if not closed.done:
            return closed
    if gangs:
        return Outcome(OutcomeKind.CONFLICT, "Draining", f"{gangs} gangs are still in it")
    if status.get("state") != "Closed":
        # Volcano, where it is asked to close a queue, does so in its own time.
        found = _unwanted(cluster, writes, row.name)
        if found.body is None:
            return found
        if (found.body.get("status") or {}).get("state") != "Closed":
            return Outcome(OutcomeKind.CONFLICT, "Closing", "Volcano has not closed it yet")
        version = found.body["metadata"]["resourceVersion"]
    return writes.delete_queue(row.name, uid=uid, version=version)


def _unwanted(cluster: Cluster, writes: ClusterWrites, name: str) -> Outcome:
    """Read before the intent is asked: what makes it anew afterwards writes it, so that it is of another version."""
    found = writes.get_queue(name)
    wanted = found.body is not None and Queue.objects.filter(cluster=cluster, name=name).exists()
    return Outcome(OutcomeKind.DONE, "MadeAnew") if wanted else found


def _note(row: ChangeObject, outcome: Outcome) -> None:
    if outcome.kind in (OutcomeKind.DONE, OutcomeKind.GONE):
        _mark([row], CarryState.APPLIED)
    elif outcome.kind is OutcomeKind.CONFLICT:
        _mark([row], CarryState.QUEUED, _words(outcome))
    else:
        _mark([row], CarryState.FAILED, _words(outcome))


def _words(outcome: Outcome) -> str:
    return f"{outcome.reason}: {outcome.message}" if outcome.message else outcome.reason


def _read_back(cluster: Cluster, rows: list[ChangeObject]) -> None:
    """What the push wrote of each object. Who pushed it does not matter, nor that it was of a later version."""
    queues = _sync_of(Queue.objects.filter(cluster=cluster, name__in=[row.name for row in rows if row.kind == QUEUE]))
    classes = _sync_of(
        PriorityClass.objects.filter(cluster=cluster, name__in=[row.name for row in rows if row.kind == CLASS])
    )
    for row in rows:
        known = queues if row.kind == QUEUE else classes
        state, error, pushed = known.get(row.name, (SyncState.IN_STEP, "", row.wanted_version))
        if row.name not in known:
            _mark([row], CarryState.SKIPPED, "it was deleted since")
        elif pushed >= row.wanted_version and state != SyncState.FAILED:
            _mark([row], CarryState.APPLIED)
        elif state == SyncState.FAILED:
            _mark([row], CarryState.FAILED, error)
        else:
            _mark([row], CarryState.QUEUED, error)


def _sync_of(rows: Iterable[Queue] | Iterable[PriorityClass]) -> dict[str, tuple[str, str, int]]:
    return {row.name: (row.sync_state, row.sync_error, row.pushed_version) for row in rows}


def _mark(
    rows: list[ChangeObject], state: CarryState, reason: str = "", only: tuple[CarryState, ...] | None = None
) -> None:
    chosen = ChangeObject.objects.filter(pk__in=[row.pk for row in rows])
    if only is not None:
        chosen = chosen.filter(state__in=only)
    chosen.update(state=state, reason=reason[:2000], changed_at=timezone.now())


def _settle(pk: int) -> None:
    with transaction.atomic():
        change = locked(QuotaChange(pk=pk))
        if change.state != ChangeState.APPLYING:
            return
        rows = list(ChangeObject.objects.filter(change=change).order_by("kind", "name"))
        count = Counter(row.state for row in rows)
        refused = next((row for row in rows if row.state == CarryState.FAILED), None)
        if count[CarryState.QUEUED] or count[CarryState.APPLYING]:
            waits = next((row.reason for row in rows if row.state == CarryState.QUEUED and row.reason), "")
            move(change, claimed_until=None, error=waits)
        elif refused is not None:
            text = f"{refused.kind} {refused.name}: {refused.reason}"
            failure = {
                "code": "refused",
                "detail": text,
                "objects": [
                    {"kind": row.kind, "name": row.name, "reason": row.reason}
                    for row in rows
                    if row.state == CarryState.FAILED
                ],
            }
            move(change, ChangeState.FAILED, error=text, failure=failure, claimed_until=None)
            tell(change, "fail", actor=SYSTEM, reason=text)
        else:
            move(change, ChangeState.APPLIED, applied_at=timezone.now(), error="", failure=None, claimed_until=None)
