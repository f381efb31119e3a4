import datetime as dt
from collections.abc import Iterable
from typing import Any, Final

from django.db import transaction
from django.utils import timezone

from tidesched_web.audit import services as audit
from tidesched_web.audit.services import Fact
from tidesched_web.changes.models import ChangeState, QuotaChange
from tidesched_web.common import live
from tidesched_web.common.locking import require_transaction
from tidesched_web.common.permissions import Access

# Of a change that was approved, and is edited after that.
NOT_APPROVED: Final = {"approved_by": "", "approver": None, "approved_at": None, "approved_reason": ""}


def agreed_by(access: Access, at: dt.datetime, reason: str = "") -> dict[str, Any]:
    return {
        "approved_by": access.actor[:200],
        "approver_id": access.user_id,
        "approved_at": at,
        "approved_reason": reason.strip(),
    }


def locked(change: QuotaChange) -> QuotaChange:
    require_transaction()
    rows = QuotaChange.objects.select_for_update(no_key=True, of=("self",)).select_related("cluster")
    return rows.get(pk=change.pk)


def move(change: QuotaChange, state: ChangeState | None = None, **fields: Any) -> None:
    if state is not None:
        fields["state"] = state
    for name, value in fields.items():
        setattr(change, name, value)
    change.version += 1
    change.updated_at = timezone.now()
    change.save(update_fields=[*fields, "version", "updated_at"])
    announce(change)


def about_change(change: QuotaChange, what: str) -> live.About:
    """A change, for those who see it: its author, and members of all the tenants that it touches."""
    whose: frozenset[int] = frozenset() if change.platform_wide else frozenset(change.tenant_ids)
    return live.About("quota-change", str(change), what, whose, change.author_id)


def announce(change: QuotaChange) -> None:
    pk, version, cluster_id = change.pk, change.version, change.cluster_id
    about = about_change(change, str(change.state))
    transaction.on_commit(lambda: live.publish("changes", pk, version, cluster_id=cluster_id, about=about), robust=True)


def tell(change: QuotaChange, verb: str, *, actor: str, reason: str = "", facts: Iterable[Fact] = ()) -> None:
    """Append an act on a change to the cluster's chain, behind the facts of what it did. The last step of all."""
    audit.append_all(
        [*facts, act_fact(change, verb)],
        chain=audit.cluster_chain(change.cluster_id),
        actor=actor,
        cluster_id=change.cluster_id,
        reason=reason or change.reason,
    )


def act_fact(change: QuotaChange, verb: str) -> Fact:
    return Fact(
        action=f"quota_change.{verb}",
        object_type="quota_change",
        object_id=change.pk,
        object_label=str(change),
        tenant_ids=change.tenant_ids,
        after={
            "state": change.state,
            "created_by": change.created_by,
            "approved_by": change.approved_by,
            "apply_at": change.apply_at,
            "objects": len(change.edits),
        },
    )
