"""Who may open a page that changes something; the services do not ask, so every such view asks here first.

And what a page says to a reader for whom it has no such button: who may do it, and where to see whom to ask.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from django.core.exceptions import PermissionDenied
from django.http import Http404
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy

from tidesched_web.accounts.models import Tenant
from tidesched_web.accounts.selectors import visible_tenants
from tidesched_web.changes.acts import Act, refusal
from tidesched_web.changes.models import ChangeState, QuotaChange
from tidesched_web.common.permissions import Access
from tidesched_web.console.page import Page


def manages(access: Access, tenant_id: int | None) -> bool:
    """Whether the reader is an admin of this tenant, or of the platform; what has no tenant is the platform's."""
    return access.administers or (tenant_id is not None and tenant_id in access.admin_of)


class Refused(PermissionDenied):
    """The page is not for this reader; its 403 says for whom it is."""

    def __init__(self, limit: Limit | None) -> None:
        super().__init__()
        self.limit = limit


def need_admin_of(this: Page, tenant_id: int | None) -> None:
    if not manages(this.access, tenant_id):
        tenant = visible_tenants(this.access).filter(pk=tenant_id).first() if tenant_id is not None else None
        raise Refused(limit_of(this.access, "page", tenant))


def need_administrator(this: Page) -> None:
    if not this.access.administers:
        raise PermissionDenied


def need_whole_sight(this: Page) -> None:
    """Only for who sees everything; to others the page is not there."""
    if not this.access.everything:
        raise Http404


def writes(access: Access) -> bool:
    return access.administers or bool(access.admin_of)


def need_writer(this: Page, what: str = "quota") -> None:
    """Only for who may change any quota; ``what`` is a key of the table of what is said to others."""
    if writes(this.access):
        return
    limit, own = limit_of(this.access, what), visible_tenants(this.access).filter(pk__in=this.access.tenant_ids)[:2]
    if limit is not None and len(own) == 1:  # whom a member of one tenant asks is known
        limit = replace(limit, tenant=own[0])
    raise Refused(limit)


@dataclass(frozen=True, slots=True)
class Limit:
    """Who may do what the reader may not. ``tenant``: the one whose admins may, too."""

    text: str
    tenant: Tenant | None = None


# What a tenant's admins may do beside platform admins; the second text is for what belongs to no tenant.
_OF_TENANT: dict[str, tuple[Promise, Promise]] = {
    "page": (
        gettext_lazy("Only a platform admin or an admin of tenant %(tenant)s can do this."),
        gettext_lazy("Only a platform admin can do this."),
    ),
    "queue": (
        gettext_lazy("Only a platform admin or an admin of tenant %(tenant)s can edit, close or delete this queue."),
        gettext_lazy("Only a platform admin can edit, close or delete this queue: it belongs to no tenant."),
    ),
    "project": (
        gettext_lazy("Only a platform admin or an admin of tenant %(tenant)s can edit this project and its queues."),
        gettext_lazy("Only a platform admin can edit this project."),
    ),
    "tenant": (
        gettext_lazy(
            "Only a platform admin or an admin of tenant %(tenant)s can edit the tenant, "
            "its projects, members and quota."
        ),
        gettext_lazy("Only a platform admin can edit tenants."),
    ),
    "members": (
        gettext_lazy(
            "Only a platform admin or an admin of tenant %(tenant)s can take in members and change their roles."
        ),
        gettext_lazy("Only a platform admin can change roles."),
    ),
    "own_quota": (
        gettext_lazy("Only a platform admin or an admin of tenant %(tenant)s can edit its quotas or ask for more."),
        gettext_lazy("Only a platform admin can edit quotas."),
    ),
}
# What is for platform admins and for the admins of any tenant.
_OF_WRITERS: dict[str, Promise] = {
    "quota": gettext_lazy("Only a platform admin, or an admin of the tenant that a quota belongs to, can edit quotas."),
    "queues": gettext_lazy("Only a platform admin or an admin of a tenant can make queues."),
    "inbox": gettext_lazy("Only a platform admin or an admin of a tenant can approve changes."),
}
# What is for platform admins alone.
_OF_PLATFORM: dict[str, Promise] = {
    "tide_plan": gettext_lazy(
        "Only a platform admin can edit this plan, switch it on or off, or take back what it lends."
    ),
    "tide_plans": gettext_lazy("Only a platform admin can make tide plans and edit them."),
    "delete_tenant": gettext_lazy("Only a platform admin can delete the tenant, or ask for approval of its changes."),
    "drift": gettext_lazy("Only a platform admin can push an object again, adopt what is live, or ignore it."),
    "alerts": gettext_lazy("Only a platform admin can acknowledge an alert or mark it as dealt with."),
}
# What may become of a change in these states, and what is said of it where the reader may not.
_ACTS = {ChangeState.WAITING: Act.APPROVE, ChangeState.DRAFT: Act.APPLY, ChangeState.APPROVED: Act.APPLY}


def limit_of(access: Access, what: str, tenant: Tenant | None = None) -> Limit | None:
    """What the reader may not do of ``what`` (a key of the tables above), and who may; None where they may."""
    if access.administers:
        return None
    if what in _OF_PLATFORM:
        return Limit(str(_OF_PLATFORM[what]))
    if what in _OF_WRITERS:
        return None if access.admin_of else Limit(str(_OF_WRITERS[what]))
    of_tenant, of_platform = _OF_TENANT[what]
    if tenant is None:
        return Limit(str(of_platform))
    return None if manages(access, tenant.pk) else Limit(str(of_tenant) % {"tenant": tenant.name}, tenant)


def limit_of_change(access: Access, change: QuotaChange) -> Limit | None:
    """Why the reader may neither apply, approve nor roll back a change: by the rule that refuses it, in its words."""
    refused = refusal(change, access, _ACTS.get(ChangeState(change.state), Act.ROLL_BACK))
    return Limit(refused.message) if refused is not None and refused.code == "permission_denied" else None
