"""All of a change or nothing, under one lock of its tree; what remains to be done stands in rows."""

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import F
from django.utils import timezone
from django.utils.translation import gettext as _
from psycopg.errors import ForeignKeyViolation

from tidesched_web.accounts.selectors import access_of, user_actor
from tidesched_web.audit.services import Fact
from tidesched_web.changes.acts import Act, agrees_by_applying, require_act
from tidesched_web.changes.authority import require_writer
from tidesched_web.changes.ceiling_requests import require_granted
from tidesched_web.changes.models import CarryAct, CarryState, ChangeObject, ChangeState, QuotaChange
from tidesched_web.changes.object_differences import ObjectDifference
from tidesched_web.changes.second_person import is_author
from tidesched_web.changes.services.drafting import new_change, next_revision, require_room_for_open
from tidesched_web.changes.services.known_plan import known_impact
from tidesched_web.changes.services.planning import Plan, require_fresh, require_sound, work_out
from tidesched_web.changes.services.recording import NOT_APPROVED, act_fact, agreed_by, announce, locked, move, tell
from tidesched_web.changes.services.reviewed import Reviewed, require_reviewed, require_versions
from tidesched_web.changes.services.reviewing import require_same_impact
from tidesched_web.changes.services.writing import Gone, write_documents
from tidesched_web.clusters.models import Cluster, ClusterMode
from tidesched_web.common import live, request_context
from tidesched_web.common.actors import SYSTEM
from tidesched_web.common.errors import DomainError
from tidesched_web.common.locking import lock_tree
from tidesched_web.common.permissions import Access
from tidesched_web.quota.events import about_queue
from tidesched_web.quota.models import PriorityClass, Queue, QuotaTree
from tidesched_web.waking import wake_changes

_TOLD_SINGLY = 20


def apply(
    *,
    change: QuotaChange,
    access: Access,
    at: dt.datetime | None = None,
    reason: str | None = None,
    base_version: int | None = None,
    seen: Reviewed | None = None,
) -> QuotaChange:
    """Apply a change now or at a set time; where approval is due it waits for that first. Once applied: no effect."""
    require_writer(access)
    if change.state != ChangeState.WAITING and (at is None or at <= timezone.now()):
        require_same_impact(change, access, seen)
    with transaction.atomic():
        version = lock_tree(change.cluster_id)
        change = locked(change)
        done = change.committed_at is not None or change.state == ChangeState.WAITING
        require_reviewed(change, seen, done=done)
        if change.state == ChangeState.WAITING:
            _require_as_sent(change, at, reason)
        if done:
            return change
        require_act(change, access, Act.APPLY)
        if base_version is not None and base_version != change.base_version:
            text = _("You looked at a plan on version %(seen)d of the tree; this one is based on version %(base)d.")
            figures = {"seen": base_version, "base": change.base_version}
            raise DomainError("conflict", text % figures, {"tree_version": version})
        asking = change.asks_beyond or (is_author(change, access) and not access.administers)
        plan = work_out(change.cluster, change.edits, access=access, base=change.base, version=version, asking=asking)
        _go(change, plan, access=access, at=at, reason=reason)
    return change


def carry_out(
    *,
    cluster: Cluster,
    edits: Mapping[str, Any],
    access: Access,
    reason: str,
    source: str = "console",
    apply_at: dt.datetime | None = None,
    versions: Mapping[str, int] | None = None,
) -> QuotaChange:
    """What refuses it leaves nothing behind; edits that change nothing make no change (no key, applied)."""
    require_writer(access)
    with transaction.atomic():
        version = lock_tree(cluster.pk)
        require_versions(cluster, versions or {})
        plan = work_out(cluster, edits, access=access, version=version, asking=not access.administers)
        require_sound(plan, access=access, asked=True)
        if not plan.fields:
            return QuotaChange(cluster=cluster, state=ChangeState.APPLIED, base_version=version, edits=plan.edits)
        change = new_change(cluster, plan, access=access, reason=reason, source=source)
        _go(change, plan, access=access, at=apply_at, reason=None, kept=True)
    return change


def _go(
    change: QuotaChange, plan: Plan, *, access: Access, at: dt.datetime | None, reason: str | None, kept: bool = False
) -> None:
    """An approval holds for its reason, and for its hour where one was approved: without, it may be applied at any.
    ``kept``: its row has this plan."""
    require_fresh(plan)
    said = (change.reason if reason is None else reason).strip()
    now = timezone.now()
    when = _hour(change, at, now)
    agreed = (
        change.state == ChangeState.APPROVED
        and change.approver_id is not None  # none was asked when it got its hour, but it may be now
        and said == change.reason
        and change.apply_at in (None, when)
    )
    agrees = bool(plan.approval) and not agreed and agrees_by_applying(change, access)
    submits = bool(plan.approval) and not agreed and not agrees
    require_sound(plan, access=access, asked=submits)
    if not said:
        text = _("Say why: the reason goes into the audit log.")
        raise DomainError.for_field("/reason", text, code="reason_required")
    common: dict[str, Any] = {"reason": said, "apply_at": when, "error": "", "failure": None}
    if not kept:
        common["plan"] = _kept(change, plan)
    common |= {"platform_only": plan.platform_only, "asks_beyond": change.asks_beyond or bool(plan.asked)}
    if agrees:
        common |= agreed_by(access, now)
    elif not agreed:
        # Also where none is due now: it would count for another hour or reason once one is due again.
        common |= NOT_APPROVED
    if kept and (submits or when > now):
        require_room_for_open(access, beside=change.pk)
    if (submits or when > now) and (change.state != ChangeState.DRAFT or change.apply_at is not None):
        common |= next_revision(change, common)
    if submits:
        move(change, ChangeState.WAITING, submitted_at=now, **common)
        tell(change, "submit", actor=access.actor)
    elif when > now:
        move(change, ChangeState.APPROVED, **common)
        tell(change, "schedule", actor=access.actor, facts=[act_fact(change, "approve")] if agrees else ())
    else:
        for name, value in common.items():
            setattr(change, name, value)
        agreement = [act_fact(change, "approve")] if agrees else []
        _commit(change, plan, actor=access.actor, fields=[*common], acts=agreement)


def _require_as_sent(change: QuotaChange, at: dt.datetime | None, reason: str | None) -> None:
    """A change that waits is decided about as it was sent: asked for anew with the same, it waits."""
    if _hour(change, at, timezone.now()) != change.apply_at or (reason or "").strip() not in ("", change.reason):
        text = _("It waits for approval with another hour or reason. Edit it first: it is a draft again then.")
        raise DomainError("conflict", text)


def _hour(change: QuotaChange, at: dt.datetime | None, now: dt.datetime) -> dt.datetime:
    """When to apply it. An hour that has come is as good as another one that has come: the change keeps its own."""
    kept = change.apply_at
    if at is None or (kept is not None and at <= now and kept <= now):
        return kept or now
    return at


def _kept(change: QuotaChange, plan: Plan) -> dict[str, Any]:
    document = plan.kept(base_version=change.base_version)
    return document | {"impact": known_impact(change, document)}


def _commit(change: QuotaChange, plan: Plan, *, actor: str, fields: list[str], acts: Sequence[Fact] = ()) -> None:
    """In the transaction that holds the tree. ``acts``: what the caller did with the change before, for the log."""
    require_granted(change, plan.asked)
    cluster, now = change.cluster, timezone.now()
    try:
        facts = write_documents(cluster=cluster, reading=plan.reading, after=plan.after, keys=plan.edits)
    except Gone:
        raise DomainError("conflict", _shared_meanwhile()) from None
    except IntegrityError as error:
        # Tenants and their kind are shared by all clusters: another tree's lock does not hold them. Nothing is asked of
        # the database any more before the caller's transaction (or savepoint) is rolled back.
        text = _("Another write was faster; look at the plan again.")
        if isinstance(error.__cause__, ForeignKeyViolation):
            text = _shared_meanwhile()
        raise DomainError("conflict", text, {"reason": str(error).partition("\n")[0]}) from None
    QuotaTree.objects.filter(cluster=cluster).update(version=plan.tree_version + 1)
    sent = bool(plan.objects) and cluster.mode != ClusterMode.OBSERVE
    rows = _rows_of(plan, cluster)
    _queue_objects(change, plan, rows, sent=sent)
    change.committed_at, change.tree_version = now, plan.tree_version + 1
    change.applied_at = None if sent else now
    change.request_id = request_context.current().request_id
    known = {
        name: getattr(change, name) for name in (*fields, "committed_at", "tree_version", "applied_at", "request_id")
    }
    move(change, ChangeState.APPLYING if sent else ChangeState.APPLIED, **known)
    if change.rolls_back_id is not None:
        undone = QuotaChange.objects.filter(pk=change.rolls_back_id, committed_at__isnull=False)
        undone.update(state=ChangeState.ROLLED_BACK, version=F("version") + 1, updated_at=now)
        assert change.rolls_back is not None
        announce(change.rolls_back)
    _announce_queues(rows, cluster)
    if sent:
        transaction.on_commit(wake_changes, robust=True)
    tell(change, "apply", actor=actor, facts=[*acts, *facts])


def _shared_meanwhile() -> str:
    return _(
        "A tenant, project or business line that this change names was deleted meanwhile, or one that it deletes is "
        "used meanwhile. All clusters share them, so the tree of another cluster decides too: look at the plan again."
    )


def _rows_of(plan: Plan, cluster: Cluster) -> dict[tuple[str, str], tuple[int, int]]:
    found: dict[tuple[str, str], tuple[int, int]] = {}
    for kind, model in (("Queue", Queue), ("PriorityClass", PriorityClass)):
        names = [difference.name for difference in plan.objects if difference.kind == kind]
        rows = model._base_manager.filter(cluster=cluster, name__in=names) if names else model._base_manager.none()
        found |= {(kind, name): (pk, version) for name, pk, version in rows.values_list("name", "pk", "version")}
    return found


def _queue_objects(
    change: QuotaChange, plan: Plan, rows: Mapping[tuple[str, str], tuple[int, int]], *, sent: bool
) -> None:
    """One row for each object that has to get to the cluster; in mode observe it says that it will not."""

    def act(found: ObjectDifference) -> CarryAct:
        if found.after is None:
            return CarryAct.DELETE
        return CarryAct.REPLACE if found.replaced else CarryAct.APPLY

    ChangeObject.objects.bulk_create(
        [
            ChangeObject(
                change=change,
                kind=found.kind,
                name=found.name,
                act=act(found),
                wanted_version=rows.get((found.kind, found.name), (0, 0))[1],
                state=CarryState.QUEUED if sent else CarryState.SKIPPED,
                reason="" if sent else "mode observe",
            )
            for found in plan.objects
        ],
        batch_size=1000,
    )


def _announce_queues(rows: Mapping[tuple[str, str], tuple[int, int]], cluster: Cluster) -> None:
    told = [row for (kind, _name), row in rows.items() if kind == "Queue"]
    told = told if len(told) <= _TOLD_SINGLY else [(0, 0)]
    shown = Queue.objects.in_bulk([pk for pk, _version in told if pk])

    def publish() -> None:
        for pk, version in told:
            about = about_queue(shown[pk], "quota") if pk in shown else None
            live.publish("queues", pk or live.EVERYTHING, version, cluster_id=cluster.pk, about=about)

    if told:
        transaction.on_commit(publish, robust=True)


def apply_due(pk: int) -> QuotaChange | None:
    """In the name of its author, who has to be allowed to do it still. None where another worker has it or had it."""
    cluster_id = QuotaChange.objects.filter(pk=pk).values_list("cluster_id", flat=True).first()
    if cluster_id is None:
        return None
    with transaction.atomic():
        version = lock_tree(cluster_id)
        due = QuotaChange.objects.filter(
            pk=pk, state=ChangeState.APPROVED, apply_at__lte=timezone.now(), committed_at__isnull=True
        )
        rows = due.select_related("cluster", "author").select_for_update(skip_locked=True, of=("self",), no_key=True)
        change = rows.first()
        if change is None:
            return None
        context = request_context.RequestContext(request_id=change.request_id or f"change-{change.pk}")
        with request_context.carried(context):
            try:
                with transaction.atomic():
                    access = access_of(change.author) if change.author is not None else None
                    # Its author asked for the time; an account that is gone leaves the name that the change keeps.
                    author = user_actor(change.author) if change.author is not None else change.created_by
                    asking = change.asks_beyond or (access is not None and not access.administers)
                    plan = work_out(
                        change.cluster, change.edits, access=access, base=change.base, version=version, asking=asking
                    )
                    require_fresh(plan)
                    require_sound(plan, access=plan.readers)
                    change.plan = _kept(change, plan)
                    if plan.approval and change.approver_id is None and not plan.asked:
                        # No approval was due when it got its hour; there is one now.
                        waiting = {"submitted_at": timezone.now(), "plan": change.plan, **NOT_APPROVED}
                        move(change, ChangeState.WAITING, **waiting)
                        tell(change, "submit", actor=author)
                        return change
                    _commit(change, plan, actor=author, fields=["plan"])
            except DomainError as error:
                change = locked(change)
                failure = {"code": error.code, "detail": error.message, **error.extra}
                move(change, ChangeState.FAILED, error=error.message, failure=failure)
                tell(change, "fail", actor=SYSTEM, reason=error.message)
    return change
