"""One row for each object until its drift ends; the live objects come from the caller, so no list is asked for here."""

import datetime as dt
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from tidesched_web.audit import services as audit
from tidesched_web.clusters.models import Cluster, ClusterMode
from tidesched_web.common import live as events
from tidesched_web.common.errors import DomainError, need_reason
from tidesched_web.common.permissions import Access, require_administrator
from tidesched_web.quota.drift_fields import FieldDrift, as_json, compare, digest, fields_of, live_state
from tidesched_web.quota.drift_selectors import (
    CLASS,
    QUEUE,
    Intended,
    Key,
    intended,
    managed_names,
    pushed_objects,
    refused_names,
)
from tidesched_web.quota.models import (
    Drift,
    DriftEnd,
    DriftLook,
    DriftState,
    DriftWhat,
    PriorityClass,
    PushedObject,
    Queue,
    SyncState,
)
from tidesched_web.quota.names import OWN_OF_VOLCANO
from tidesched_web.waking import wake_push

# Ended drift is kept so many rows a cluster, for the page's history; the audit log has what people did.
KEEP_ENDED = 500
_MODELS: tuple[tuple[str, type[Queue] | type[PriorityClass]], ...] = ((QUEUE, Queue), (CLASS, PriorityClass))
# What a comparison may write to a row that is there.
_COMPARED = ("what", "fields", "live", "digest", "refusal", "state", "changed_at", "asked")


@dataclass(frozen=True)
class Live:
    part: Mapping[str, Any]
    managed: list[Mapping[str, Any]] = field(default_factory=list)


@dataclass(frozen=True)
class Seen:
    differs: Mapping[Key, tuple[DriftWhat, list[FieldDrift]]]
    looked_at: Collection[Key]
    intents: Mapping[Key, Intended]
    pushed: Mapping[Key, PushedObject]


def compared(cluster: Cluster, live: Mapping[Key, Live], names: Collection[Key] | None) -> Seen:
    intents, pushed = intended(cluster, names), pushed_objects(cluster, names)
    differs: dict[Key, tuple[DriftWhat, list[FieldDrift]]] = {}
    for key, wanted in intents.items():
        told = pushed.get(key)
        found = live.get(key)
        if found is None:
            fields = told.fields if told is not None else {}
            rows = [FieldDrift(name, value, fields.get(name), None) for name, value in wanted.fields.items()]
            if told is not None:
                differs[key] = (DriftWhat.MISSING, rows)
            elif wanted.refused:  # what was never sent cannot be missed, but it can have been refused
                differs[key] = (DriftWhat.REFUSED, rows)
            continue
        state = live_state(found.part, wanted.state) if wanted.state else ""
        rows = compare(
            wanted.fields, told.fields if told else None, fields_of(found.part, state=state), list(found.managed)
        )
        if rows:
            differs[key] = (DriftWhat.CHANGED, rows)
        elif wanted.refused and (rows := compare(wanted.fields, None, fields_of(found.part, state=state))):
            sent = told.fields if told else {}
            differs[key] = (DriftWhat.REFUSED, [replace(row, pushed=sent.get(row.field)) for row in rows])
    return Seen(differs, {*(names if names is not None else ()), *intents, *pushed}, intents, pushed)


@transaction.atomic
def record(*, cluster: Cluster, seen: Seen, live: Mapping[Key, Live]) -> int:
    now = timezone.now()
    rows = {
        (row.kind, row.name): row
        for row in Drift.objects.select_for_update()
        .filter(cluster=cluster)
        .exclude(state=DriftState.RESOLVED)
        .order_by("pk")
    }
    fresh, again = list[Drift](), list[Drift]()
    for key, (what, fields) in sorted(seen.differs.items()):
        row, intent, found = rows.get(key), seen.intents[key], live.get(key)
        values: dict[str, Any] = {"what": what, "fields": as_json(fields), "live": dict(found.part) if found else None}
        values |= {"digest": digest(fields), "refusal": intent.refused}
        if row is None:
            made = Drift(cluster=cluster, kind=key[0], name=key[1], queue_id=intent.queue_id, **values)
            made.found_at = made.changed_at = now
            fresh.append(made)
        elif _differs(row, values, now):
            again.append(row)
    over = {key: row for key, row in rows.items() if key in seen.looked_at and key not in seen.differs}
    Drift.objects.bulk_create(fresh)
    _mark(cluster, fresh, drifted=True)
    Drift.objects.bulk_update(again, _COMPARED, batch_size=200)
    if over:
        _end(cluster, {row: _how_it_ended(row, key, seen) for key, row in over.items()}, now)
    changed = len(fresh) + len(again) + len(over)
    orphans = [row.pk for key, row in seen.pushed.items() if key not in seen.intents and key not in live]
    if orphans:
        PushedObject.objects.filter(pk__in=orphans).delete()
    if changed:
        _announce(cluster.pk)
    return changed


def _differs(row: Drift, values: Mapping[str, Any], now: dt.datetime) -> bool:
    if all(getattr(row, name) == value for name, value in values.items() if name != "live"):
        return False
    # What was decided about it was about something else.
    again = row.digest != values["digest"] or row.what != values["what"]
    for name, value in values.items():
        setattr(row, name, value)
    if again:
        row.state, row.changed_at, row.asked = DriftState.OPEN, now, ""
    return True


def _how_it_ended(row: Drift, key: Key, seen: Seen) -> DriftEnd:
    if key not in seen.intents:
        return DriftEnd.LEFT
    if row.asked:
        return DriftEnd(row.asked)
    told = seen.pushed.get(key)
    return DriftEnd.PUSHED if told is not None and told.pushed_at > row.changed_at else DriftEnd.REVERTED


def _end(cluster: Cluster, rows: Mapping[Drift, DriftEnd], now: dt.datetime) -> None:
    for end in sorted(set(rows.values())):
        of_this = [row.pk for row, how in rows.items() if how == end]
        Drift.objects.filter(pk__in=of_this).update(state=DriftState.RESOLVED, end=end, ended_at=now)
    _mark(cluster, rows, drifted=False)
    ended = Drift.objects.filter(cluster=cluster, state=DriftState.RESOLVED).order_by("-pk")
    edge = ended.values_list("pk", flat=True)[KEEP_ENDED : KEEP_ENDED + 1].first()
    if edge is not None:
        ended.filter(pk__lte=edge).delete()


def _mark(cluster: Cluster, rows: Collection[Drift], *, drifted: bool) -> None:
    """Let the objects' own rows say so; what waits to be pushed, or was refused, stays as it is."""
    before, after = (SyncState.IN_STEP, SyncState.DRIFTED) if drifted else (SyncState.DRIFTED, SyncState.IN_STEP)
    for kind, model in _MODELS:
        if names := [row.name for row in rows if row.kind == kind]:
            told = model._base_manager.filter(cluster=cluster, name__in=names, sync_state=before)
            told.update(sync_state=after)


def note_look(*, cluster: Cluster, live: Collection[Key]) -> None:
    managed = managed_names(cluster)
    unmanaged = sorted(
        name for kind, name in live if kind == QUEUE and name not in OWN_OF_VOLCANO and (kind, name) not in managed
    )
    # Kubernetes keeps its own itself.
    classes = sorted(
        name for kind, name in live if kind == CLASS and not name.startswith("system-") and (kind, name) not in managed
    )
    before = DriftLook.objects.filter(cluster=cluster).values_list("unmanaged", "unmanaged_classes").first()
    DriftLook.objects.update_or_create(
        cluster=cluster,
        defaults={
            "looked_at": timezone.now(),
            "objects_compared": len(managed.intersection(live)),
            "unmanaged": unmanaged,
            "unmanaged_classes": classes,
        },
    )
    if before is not None and before != (unmanaged, classes):
        transaction.on_commit(lambda: events.publish("drift", events.EVERYTHING, cluster_id=cluster.pk), robust=True)


def unresolved(cluster: Cluster) -> set[Key]:
    """Objects that drift now, or were refused: compared each time, since their begin or end comes from any side."""
    rows = Drift.objects.filter(cluster=cluster).exclude(state=DriftState.RESOLVED)
    return {*rows.values_list("kind", "name"), *refused_names(cluster)}


def open_rows(cluster: Cluster) -> list[tuple[str, str, str, str]]:
    rows = Drift.objects.filter(cluster=cluster, state=DriftState.OPEN).order_by("kind", "name")
    return list(rows.values_list("what", "kind", "name", "refusal"))


# -- what a person decides ---------------------------------------------------------------------------------------------


@transaction.atomic
def repush(*, drifts: Collection[Drift], access: Access, reason: str) -> int:
    """Send the intent of these objects again: the drift ends once the cluster has it. Returns how many are sent."""
    rows, reason = _decided(drifts, access, reason)
    for row in rows:
        if row.cluster.mode == ClusterMode.OBSERVE:
            said = _("%(cluster)s is in mode observe: nothing is written to it.")
            raise DomainError("conflict", said % {"cluster": row.cluster.name})
    _say(rows, access, reason, asked=DriftEnd.PUSHED, state=DriftState.OPEN)
    for kind, model in _MODELS:
        for cluster_id in sorted({row.cluster_id for row in rows}):
            names = [row.name for row in rows if (row.kind, row.cluster_id) == (kind, cluster_id)]
            model._base_manager.filter(cluster_id=cluster_id, name__in=names).update(sync_state=SyncState.PENDING)
    _audit(rows, "drift.repush", access, reason)
    transaction.on_commit(wake_push, robust=True)
    return len(rows)


@transaction.atomic
def ignore(*, drifts: Collection[Drift], access: Access, reason: str) -> int:
    rows, reason = _decided(drifts, access, reason)
    _say(rows, access, reason, asked="", state=DriftState.IGNORED)
    _audit(rows, "drift.ignore", access, reason)
    return len(rows)


def note_adoption(*, drifts: Collection[Drift], access: Access, reason: str, change_id: int | None) -> None:
    """These objects are being adopted by a change. In the transaction of the caller."""
    rows, reason = _decided(drifts, access, reason)
    _say(rows, access, reason, asked=DriftEnd.ADOPTED, state=DriftState.OPEN, change_id=change_id)
    _audit(rows, "drift.adopt", access, reason)


def _decided(drifts: Collection[Drift], access: Access, reason: str) -> tuple[list[Drift], str]:
    require_administrator(access)
    reason = need_reason(reason)
    ids = [row.pk for row in drifts]
    rows = list(
        Drift.objects.select_for_update(of=("self",))
        .select_related("cluster", "queue")
        .filter(pk__in=ids)
        .order_by("pk")
    )
    if not rows:
        raise DomainError("invalid", _("Choose at least one object."))
    for row in rows:
        if row.state == DriftState.RESOLVED:
            raise DomainError("conflict", _("The drift of %(name)s has ended meanwhile.") % {"name": row.name})
    return rows, reason


def _say(
    rows: Collection[Drift], access: Access, reason: str, *, asked: str, state: DriftState, change_id: int | None = None
) -> None:
    Drift.objects.filter(pk__in=[row.pk for row in rows]).update(
        decided_by=access.actor[:200], decided_at=timezone.now(), reason=reason, asked=asked, state=state,
        change_id=change_id,
    )  # fmt: skip


def _audit(rows: list[Drift], action: str, access: Access, reason: str) -> None:
    """Last in the transaction: it locks the head of the chain."""
    for cluster_id in sorted({row.cluster_id for row in rows}):
        facts = [_fact(row, action) for row in rows if row.cluster_id == cluster_id]
        chain = audit.cluster_chain(cluster_id)
        audit.append_all(facts, chain=chain, actor=access.actor, cluster_id=cluster_id, reason=reason)
        _announce(cluster_id)


def _fact(row: Drift, action: str) -> audit.Fact:
    return audit.Fact(
        action,
        "drift",
        row.pk,
        f"{row.kind} {row.name}",
        [row.queue.tenant_id] if row.queue and row.queue.tenant_id else [],
        {one["field"]: one["live"] for one in row.fields},
        {one["field"]: one["intent"] for one in row.fields} if action == "drift.repush" else None,
    )


def _announce(cluster_id: int) -> None:
    transaction.on_commit(lambda: events.publish("drift", events.EVERYTHING, cluster_id=cluster_id), robust=True)
    transaction.on_commit(lambda: events.publish("queues", events.EVERYTHING, cluster_id=cluster_id), robust=True)
