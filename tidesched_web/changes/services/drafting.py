"""Drafts: made on the tree of now, edited by their author, planned as often as anybody looks."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from tidesched_web.changes.authority import require_writer
from tidesched_web.changes.models import ChangeState, QuotaChange
from tidesched_web.changes.services.planning import Plan, plan_of, work_out
from tidesched_web.changes.services.recording import announce, locked, move, require_state
from tidesched_web.changes.tree_document import base_of
from tidesched_web.clusters.models import Cluster
from tidesched_web.common.errors import DomainError
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
) -> QuotaChange:
    """Keep edits as a draft. They may still be wrong (the plan says so), but not somebody else's to make."""
    require_writer(access)
    with transaction.atomic():
        version = lock_tree(cluster.pk)
        plan = work_out(cluster, edits, access=access, version=version)
        change = new_change(
            cluster, plan, access=access, reason=reason, source=source, apply_at=apply_at, rolls_back=rolls_back
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
) -> QuotaChange:
    """The row of a draft, under the lock of the tree that ``plan`` was worked out on."""
    if source not in SOURCES:
        raise ValueError(f"unknown source {source!r}")
    return QuotaChange.objects.create(
        cluster=cluster,
        base_version=plan.tree_version,
        edits=plan.edits,
        base=base_of(plan.before, plan.edits),
        plan=plan.document(base_version=plan.tree_version, access=access),
        reason=reason.strip(),
        source=source,
        created_by=access.actor[:200],
        author_id=access.user_id,
        tenant_ids=plan.tenant_ids,
        platform_wide=plan.platform_wide,
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
    version: int | None = None,
) -> QuotaChange:
    """Change a draft of one's own; new edits take back an approval. ``rebase`` accepts what was changed meanwhile."""
    require_writer(access)
    with transaction.atomic():
        tree = lock_tree(change.cluster_id)
        change = locked(change)
        require_author(change, access)
        require_state(change, ChangeState.DRAFT, ChangeState.WAITING, ChangeState.APPROVED, ChangeState.FAILED)
        if change.committed_at is not None:
            raise DomainError("conflict", _("What is written can only be rolled back."), {"state": change.state})
        if version is not None and version != change.version:
            text = _("Somebody else edited this draft meanwhile.")
            raise DomainError("stale", text, {"etag": f'"{change.version}"'})
        fields: dict[str, Any] = {}
        if edits is not None or rebase:
            chosen = change.edits if edits is None else edits
            base = None if rebase else change.base
            plan = work_out(change.cluster, chosen, access=access, base=base, version=tree)
            known = {} if rebase else change.base
            fields |= {
                "edits": plan.edits,
                # A key that was touched before keeps the base that its editor knew.
                "base": {key: known.get(key, document) for key, document in base_of(plan.before, plan.edits).items()},
                "base_version": tree if rebase else change.base_version,
                "plan": plan.document(base_version=tree if rebase else change.base_version, access=access),
                "tenant_ids": plan.tenant_ids,
                "platform_wide": plan.platform_wide,
                "approved_by": "",
                "approver": None,
                "approved_at": None,
            }
        if reason is not None:
            fields["reason"] = reason.strip()
        if apply_at is not KEEP:
            fields["apply_at"] = apply_at
        move(change, ChangeState.DRAFT, error="", failure=None, **fields)
    return change


def plan(*, change: QuotaChange, access: Access) -> dict[str, Any]:
    """What the change would do now (or did, once it is written); an open one keeps the newest plan."""
    if change.committed_at is not None or change.state not in QuotaChange.OPEN:
        return dict(change.plan or {})
    document = plan_of(change, None).document(base_version=change.base_version, access=access)
    if {**(change.plan or {}), "impact": None} != document:
        _store(change, document)
    return document


@transaction.atomic
def _store(change: QuotaChange, document: dict[str, Any]) -> None:
    """Keep a newer plan, with the impact that is there now: another request may have stored one meanwhile."""
    stored = locked(change)
    if stored.committed_at is None and stored.version == change.version:
        kept = (stored.plan or {}).get("impact") if _same(stored.plan, document) else None
        QuotaChange.objects.filter(pk=change.pk).update(plan=document | {"impact": kept})


def _same(old: dict[str, Any] | None, new: dict[str, Any]) -> bool:
    """Whether an impact that was worked out for one plan holds for another."""
    return old is not None and old.get("objects") == new["objects"]


def require_author(change: QuotaChange, access: Access) -> None:
    """Refuse everybody but the author (and, for changes without one, platform admins)."""
    own = access.user_id is not None and change.author_id == access.user_id
    if not own and not (access.administers and change.author_id is None):
        raise DomainError("permission_denied", _("Only its author may edit a draft; make one of your own."))
