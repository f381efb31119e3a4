import datetime as dt
from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils.translation import gettext as _

from tidesched_web.changes.acts import Act, require_act
from tidesched_web.changes.authority import require_writer
from tidesched_web.changes.models import ChangeRevision, ChangeState, QuotaChange
from tidesched_web.changes.selectors import open_draft
from tidesched_web.changes.services.known_plan import known_plan
from tidesched_web.changes.services.planning import Plan, plan_of, require_form, require_sound, work_out
from tidesched_web.changes.services.recording import NOT_APPROVED, announce, locked, move
from tidesched_web.changes.services.reviewed import Reviewed, require_reviewed, require_versions
from tidesched_web.changes.tree_document import as_known, base_of
from tidesched_web.clusters.models import Cluster
from tidesched_web.common.errors import require_room, stored_reason
from tidesched_web.common.locking import lock_tree
from tidesched_web.common.permissions import Access

KEEP: Any = object()


def draft(
    *,
    cluster: Cluster,
    edits: Mapping[str, Any],
    access: Access,
    reason: str = "",
    source: str = "console",
    apply_at: dt.datetime | None = None,
    rolls_back: QuotaChange | None = None,
    known: Mapping[str, Any] | None = None,
    versions: Mapping[str, int] | None = None,
    well_formed: bool = False,
    sound: bool = False,
    once: bool = False,
) -> QuotaChange:
    """The edits may still be wrong. ``known``: a patch with what the author saw; ``sound``: only what could be sent is
    kept; ``once``: a draft of the author's own that says the same is the answer.
    """
    require_writer(access)
    with transaction.atomic():
        version = lock_tree(cluster.pk)
        require_versions(cluster, versions or {})
        require_room_for_open(access)
        plan = work_out(cluster, edits, access=access, version=version, asking=not access.administers)
        if well_formed:
            require_form(plan, access=access)
        if sound:
            require_sound(plan, access=access, asked=True)
        if once and (same := open_draft(access, cluster, plan.edits, rolls_back=rolls_back)) is not None:
            return same
        change = new_change(
            cluster,
            plan,
            access=access,
            reason=reason,
            source=source,
            apply_at=apply_at,
            rolls_back=rolls_back,
            known=known,
        )
        announce(change)
    return change


def require_room_for_open(access: Access, *, beside: int | None = None) -> None:
    if access.user_id is None:
        return
    states = (*QuotaChange.OPEN, ChangeState.FAILED)
    rows = QuotaChange.objects.filter(author_id=access.user_id, state__in=states, committed_at=None)
    text = _("%(limit)d changes of yours are open, the most that one person may have: apply or cancel some of them.")
    require_room(rows.exclude(pk=beside or 0), settings.KEPT_OPEN_CHANGES, text)


def new_change(
    cluster: Cluster,
    plan: Plan,
    *,
    access: Access,
    reason: str,
    source: str,
    apply_at: dt.datetime | None = None,
    rolls_back: QuotaChange | None = None,
    known: Mapping[str, Any] | None = None,
) -> QuotaChange:
    return QuotaChange.objects.create(
        cluster=cluster,
        base_version=plan.tree_version,
        edits=plan.edits,
        base=as_known(base_of(plan.before, plan.edits), known or {}),
        plan=plan.kept(base_version=plan.tree_version),
        reason=stored_reason(reason),
        source=source,
        created_by=access.actor[:200],
        author_id=access.user_id,
        tenant_ids=plan.tenant_ids,
        platform_wide=plan.platform_wide,
        platform_only=plan.platform_only,
        asks_beyond=bool(plan.asked),
        apply_at=apply_at,
        rolls_back=rolls_back,
    )


def edit_draft(
    *,
    change: QuotaChange,
    access: Access,
    edits: Mapping[str, Any] | None = None,
    reason: str | None = None,
    apply_at: dt.datetime | None = KEEP,
    rebase: bool = False,
    known: Mapping[str, Any] | None = None,
    seen: Reviewed | None = None,
    well_formed: bool = False,
) -> QuotaChange:
    """It is a draft again, and an approval is taken back. ``rebase`` accepts what was changed meanwhile."""
    require_writer(access)
    with transaction.atomic():
        tree = lock_tree(change.cluster_id)
        change = locked(change)
        require_act(change, access, Act.EDIT)
        require_reviewed(change, seen)
        fields: dict[str, Any] = {"submitted_at": None, **NOT_APPROVED}
        if change.author_id is None:
            # Of no account, made by a command: who edits it is its author from now on, and not its second person.
            fields["author_id"] = access.user_id
        if edits is not None:
            require_room_for_open(access, beside=change.pk)  # it may become larger
        if edits is not None or rebase:
            chosen = change.edits if edits is None else edits
            base = None if rebase else change.base
            plan = work_out(
                change.cluster, chosen, access=access, base=base, version=tree, asking=not access.administers
            )
            if well_formed:
                require_form(plan, access=access)
            fields |= _planned(plan, base or {}, known or {}, base_version=tree if rebase else change.base_version)
        if reason is not None:
            fields["reason"] = stored_reason(reason)
        if apply_at is not KEEP:
            fields["apply_at"] = apply_at
        fields |= next_revision(change, fields)
        move(change, ChangeState.DRAFT, error="", failure=None, **fields)
    return change


def _planned(plan: Plan, base: Mapping[str, Any], known: Mapping[str, Any], *, base_version: int) -> dict[str, Any]:
    """A key that was touched before keeps the base that its editor knew."""
    documents = {key: base.get(key, document) for key, document in base_of(plan.before, plan.edits).items()}
    return {
        "edits": plan.edits,
        "base": as_known(documents, known),
        "base_version": base_version,
        "plan": plan.kept(base_version=base_version),
        "tenant_ids": plan.tenant_ids,
        "platform_wide": plan.platform_wide,
        "platform_only": plan.platform_only,
        "asks_beyond": bool(plan.asked),
    }


def next_revision(change: QuotaChange, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Once a change was sent, or has an hour, its reason and its hour are a part of what is reviewed."""
    counted = ["edits", "base"]
    if change.state != ChangeState.DRAFT or change.apply_at is not None:
        counted += ["reason", "apply_at"]
    if all(fields.get(name, getattr(change, name)) == getattr(change, name) for name in counted):
        return {}
    ChangeRevision.objects.create(
        change=change,
        number=change.revision,
        version=change.version,
        edits=change.edits,
        base=change.base,
        terms=change.terms,
    )
    # Who looked at one of those is shown what the change is now, not what differs.
    if change.revision > settings.KEPT_REVISIONS:
        ChangeRevision.objects.filter(change=change, number__lte=change.revision - settings.KEPT_REVISIONS).delete()
    return {"revision": change.revision + 1}


def plan(*, change: QuotaChange, access: Access) -> dict[str, Any]:
    """What the change would do now (or did, once it is written). Only reads; ``change`` has the newest plan then."""
    if change.committed_at is not None or change.state not in QuotaChange.OPEN:
        return dict(change.plan or {})
    document = known_plan(
        change, access, lambda: plan_of(change, access).document(base_version=change.base_version, access=access)
    )
    old = change.plan or {}
    kept = old.get("impact") if old.get("objects") == document["objects"] else None
    change.plan = document | {"impact": kept}
    return document
