"""The changes that wait for an approval: those that a reader may decide about, and who may decide about one."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from tidesched_web.accounts.independence_selectors import approver_candidates, standing_of, standings_of
from tidesched_web.accounts.models import Membership, Scope, Tenant
from tidesched_web.changes.acts import approval_refusal, decides_about
from tidesched_web.changes.models import ChangeState, QuotaChange
from tidesched_web.changes.selectors import visible_changes
from tidesched_web.common.permissions import Access
from tidesched_web.common.prepared_query import Prepared

# More than a person looks through; the list of changes has them all.
_MOST = 200


def waiting_for(access: Access) -> list[QuotaChange]:
    """What the caller may approve, the longest waiting first. One query as long as nothing waits."""
    if not (access.administers or access.admin_of) or not access.has_scope((Scope.QUOTA_WRITE,)):
        return []
    rights = (access.everything, access.tenant_ids, access.user_id, access.limited_to)
    found = [change for change in _prepared_waiting(*rights).rows() if decides_about(change, access)]
    standing = standing_of(access.user_id) if found and access.user_id is not None else None
    return [change for change in found if approval_refusal(change, access, standing) is None]


@lru_cache(maxsize=128)
def _prepared_waiting(
    everything: bool,
    tenant_ids: frozenset[int],
    user_id: int | None,
    limited_to: int | None,
) -> Prepared[QuotaChange]:
    """The changes of others that wait and that a caller of these rights sees: every page counts them."""
    access = Access(actor="", everything=everything, tenant_ids=tenant_ids, user_id=user_id, limited_to=limited_to)
    rows = visible_changes(access).filter(state=ChangeState.WAITING).exclude(author_id=user_id)
    return Prepared(rows.defer("base", "failure").order_by("submitted_at", "id")[:_MOST])


@dataclass(frozen=True)
class Approvers:
    """Who can approve a change: names that the reader may see, and whether others can whom they do not see."""

    names: list[str]
    others: bool

    def __bool__(self) -> bool:
        return bool(self.names) or self.others


def approvers_of(change: QuotaChange, access: Access) -> Approvers:
    """Who is a second person for a waiting change."""
    standings = standings_of(approver_candidates(change.tenant_ids, platform_only=change.platform_only))
    shown = None
    if not access.everything:
        shown = set(Membership.objects.filter(tenant_id__in=access.tenant_ids).values_list("user_id", flat=True))
    names, others = [], False
    for pk, standing in standings.items():
        admin_of = frozenset(standing.admin_since)
        who = Access(
            actor=standing.username,
            administers=standing.platform_since is not None,
            tenant_ids=admin_of,
            admin_of=admin_of,
            user_id=pk,
        )
        if not decides_about(change, who) or approval_refusal(change, who, standing) is not None:
            continue
        if shown is None or pk in shown:
            names.append(standing.username)
        else:
            others = True
    return Approvers(sorted(names), others)


def tenants_of(changes: list[QuotaChange]) -> dict[int, str]:
    """The names of the tenants whose objects these changes touch, by id."""
    return dict(
        Tenant.objects.filter(pk__in={pk for change in changes for pk in change.tenant_ids}).values_list("pk", "name")
    )
