from dataclasses import dataclass

from django.db.models import Q

from tidesched_web.accounts.models import Membership, Scope, Tenant
from tidesched_web.accounts.selectors import visible_tenants
from tidesched_web.changes.models import ChangeState, QuotaChange
from tidesched_web.changes.second_person import People, approval_refusal, decides_about, rights_of
from tidesched_web.changes.selectors import visible_changes
from tidesched_web.common.permissions import Access

# More than a person looks through; the list of changes has them all.
_MOST = 200
# Every page counts what waits, and what one change says may be megabytes.
_LONG = ("edits", "base", "plan", "failure")


@dataclass(frozen=True)
class Inbox:
    """``waiting``: what the reader may approve, the longest waiting first; ``closed``: their own that others closed."""

    waiting: list[QuotaChange]
    closed: list[QuotaChange]

    def __len__(self) -> int:
        return len(self.waiting) + len(self.closed)


def inbox_of(access: Access) -> Inbox:
    if not (access.administers or access.admin_of) or not access.has_scope((Scope.QUOTA_WRITE,)):
        return Inbox([], [])
    rows = _others_waiting_own_closed(access)
    found = [change for change in rows if change.state == ChangeState.WAITING and decides_about(change, access)]
    people = People({access.user_id, *(change.author_id for change in found)} if found else ())
    waiting = [change for change in found if approval_refusal(change, access, people) is None]
    return Inbox(waiting, [change for change in rows if change.state != ChangeState.WAITING])


def inbox_to_be_read(access: Access) -> Inbox:
    found = inbox_of(access)
    changes = [*found.waiting, *found.closed]
    rows = QuotaChange.objects.filter(pk__in=[change.pk for change in changes])
    said = {pk: (edits, plan) for pk, edits, plan in rows.values_list("pk", "edits", "plan")}
    for change in changes:
        change.edits, change.plan = said.get(change.pk, ({}, None))
    return found


def _others_waiting_own_closed(access: Access) -> list[QuotaChange]:
    mine = Q(author_id=access.user_id) if access.user_id is not None else Q(pk__in=[])
    rows = visible_changes(access).filter((Q(state=ChangeState.WAITING) & ~mine) | (Q(closed_unseen=True) & mine))
    return list(rows.defer(*_LONG).order_by("state", "submitted_at", "id")[:_MOST])


@dataclass(frozen=True)
class Approvers:
    names: list[str]
    others: bool

    def __bool__(self) -> bool:
        return bool(self.names) or self.others


def approvers_of(change: QuotaChange, access: Access) -> Approvers:
    people = People([change.author_id])
    shown = None
    if not access.everything:
        shown = set(Membership.objects.filter(tenant_id__in=access.tenant_ids).values_list("user_id", flat=True))
    names, others = [], False
    for one in people.candidates(change):
        if approval_refusal(change, rights_of(one), people) is not None:
            continue
        if shown is None or one.user_id in shown:
            names.append(one.username)
        else:
            others = True
    return Approvers(sorted(names), others)


def tenants_of(changes: list[QuotaChange], access: Access) -> dict[int, Tenant]:
    touched = {pk for change in changes for pk in change.tenant_ids}
    return visible_tenants(access).only("slug", "name").in_bulk(touched) if touched else {}
