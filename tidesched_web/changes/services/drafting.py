"""Drafts: made on the tree of now, edited by their author, planned as often as anybody looks."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any

from django.db import transaction

from tidesched_web.changes.acts import Act, require_act
from tidesched_web.changes.authority import require_writer
from tidesched_web.changes.models import ChangeRevision, ChangeState, QuotaChange
from tidesched_web.changes.selectors import sent_under
from tidesched_web.changes.services.planning import Plan, plan_of, require_form, work_out
from tidesched_web.changes.services.recording import announce, locked, move
from tidesched_web.changes.services.reviewed import Reviewed, require_reviewed
from tidesched_web.changes.tree_document import as_known, base_of
from tidesched_web.clusters.models import Cluster
from tidesched_web.common.locking import lock_tree
from tidesched_web.common.permissions import Access

SOURCES = ("console", "api", "import", "rollback", "adopt")
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
    mark: str = "",
    well_formed: bool = False,
) -> QuotaChange:
    """Keep edits as a draft. They may still be wrong (the plan says so), but not another's to make.

    ``known``: a patch with what the author saw in the edited figures; where that has moved the plan says so.
    ``mark``: a draft that came under it already is the answer. ``well_formed``: figures that no document can hold are
    refused at once (`planning.require_form`).
    """
    require_writer(access)
    with transaction.atomic():
        version = lock_tree(cluster.pk)
        if mark and (sent := sent_under(access, mark)) is not None:
            return sent
        plan = work_out(cluster, edits, access=access, version=version)
        if well_formed:
            require_form(plan, access=access)
        change = new_change(
            cluster,
            plan,
            access=access,
            reason=reason,
            source=source,
            apply_at=apply_at,
            rolls_back=rolls_back,
            known=known,
            mark=mark,
        )
        announce(change)
    return change


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
    mark: str = "",
) -> QuotaChange:
    """The row of a draft, under the lock of the tree that ``plan`` was worked out on."""
    if source not in SOURCES:
        raise ValueError(f"unknown source {source!r}")
    if mark and access.user_id is None:
        mark = ""
    return QuotaChange.objects.create(
        cluster=cluster,
        base_version=plan.tree_version,
        edits=plan.edits,
        base=as_known(base_of(plan.before, plan.edits), known or {}),
        mark=mark,
        plan=plan.document(base_version=plan.tree_version, access=access),
        reason=reason.strip(),
        source=source,
        created_by=access.actor[:200],
        author_id=access.user_id,
        tenant_ids=plan.tenant_ids,
        platform_wide=plan.platform_wide,
        platform_only=plan.platform_only,
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
    mark: str = "",
    seen: Reviewed | None = None,
    well_formed: bool = False,
) -> QuotaChange:
    """Change a draft of one's own; new edits take back an approval. ``rebase`` accepts what was changed meanwhile."""
    require_writer(access)
    with transaction.atomic():
        tree = lock_tree(change.cluster_id)
        change = locked(change)
        require_act(change, access, Act.EDIT)
        require_reviewed(change, seen)
        fields: dict[str, Any] = {}
        if edits is not None or rebase:
            chosen = change.edits if edits is None else edits
            base = None if rebase else change.base
            plan = work_out(change.cluster, chosen, access=access, base=base, version=tree)
            if well_formed:
                require_form(plan, access=access)
            old = {} if rebase else change.base
            fields |= {
                "edits": plan.edits,
                # A key that was touched before keeps the base that its editor knew.
                "base": as_known(
                    {key: old.get(key, document) for key, document in base_of(plan.before, plan.edits).items()},
                    known or {},
                ),
                "base_version": tree if rebase else change.base_version,
                "plan": plan.document(base_version=tree if rebase else change.base_version, access=access),
                "tenant_ids": plan.tenant_ids,
                "platform_wide": plan.platform_wide,
                "platform_only": plan.platform_only,
                "submitted_at": None,
                "approved_by": "",
                "approver": None,
                "approved_at": None,
                "approved_reason": "",
            }
            fields |= _next_revision(change, fields)
        if mark:
            fields["mark"] = mark
        if reason is not None:
            fields["reason"] = reason.strip()
        if apply_at is not KEEP:
            fields["apply_at"] = apply_at
        move(change, ChangeState.DRAFT, error="", failure=None, **fields)
    return change


def _next_revision(change: QuotaChange, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Keep what is about to be replaced, so that who looked at it can be shown what differs."""
    if fields["edits"] == change.edits and fields["base"] == change.base:
        return {}
    ChangeRevision.objects.create(
        change=change, number=change.revision, version=change.version, edits=change.edits, base=change.base
    )
    return {"revision": change.revision + 1}


def plan(*, change: QuotaChange, access: Access) -> dict[str, Any]:
    """What the change would do now (or did, once it is written). Only reads; ``change`` has the newest plan then."""
    if change.committed_at is not None or change.state not in QuotaChange.OPEN:
        return dict(change.plan or {})
    document = plan_of(change, None).document(base_version=change.base_version, access=access)
    old = change.plan or {}
    kept = old.get("impact") if old.get("objects") == document["objects"] else None
    change.plan = document | {"impact": kept}
    return document
