"""Who may open a page that changes something; the services do not ask, so every such view asks here first."""

from __future__ import annotations

from dataclasses import dataclass, replace

from django.core.exceptions import PermissionDenied
from django.http import Http404
from django.utils.translation import gettext as _

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
    def __init__(self, limit: Limit | None) -> None:
        super().__init__()
        self.limit = limit


def need_admin_of(this: Page, tenant_id: int | None) -> None:
    if not manages(this.access, tenant_id):
        tenant = visible_tenants(this.access).filter(pk=tenant_id).first() if tenant_id is not None else None
        raise Refused(limit_of(this.access, "tenant", tenant))


def need_administrator(this: Page) -> None:
    if not this.access.administers:
        raise PermissionDenied


def need_whole_sight(this: Page) -> None:
    """Only for who sees everything; to others the page is not there."""
    if not this.access.everything:
        raise Http404


def writes(access: Access) -> bool:
    return access.administers or bool(access.admin_of)


def need_writer(this: Page) -> None:
    if writes(this.access):
        return
    limit, own = (
        limit_of(this.access, "writers"),
        visible_tenants(this.access).filter(pk__in=this.access.tenant_ids)[:2],
    )
    if limit is not None and len(own) == 1:  # whom a member of one tenant asks is known
        limit = replace(limit, tenant=own[0])
    raise Refused(limit)


@dataclass(frozen=True, slots=True)
class Limit:
    text: str
    tenant: Tenant | None = None


# What may become of a change in these states, and what is said of it where the reader may not.
_ACTS = {ChangeState.WAITING: Act.APPROVE, ChangeState.DRAFT: Act.APPLY, ChangeState.APPROVED: Act.APPLY}


def limit_of(access: Access, whose: str, tenant: Tenant | None = None) -> Limit | None:
    """``whose``: of a ``tenant``'s admins (none: platform), of ``writers`` (any tenant's), or of the ``platform``."""
    if access.administers:
        return None
    if whose == "writers":
        text = _("Ask a platform admin or an admin of your tenant to change this.")
        return None if access.admin_of else Limit(text)
    if whose == "platform" or tenant is None:
        return Limit(_("Ask a platform admin to change this."))
    text = _("Ask a platform admin or an admin of tenant %(tenant)s to change this.") % {"tenant": tenant.name}
    return None if manages(access, tenant.pk) else Limit(text, tenant)


def limit_of_change(access: Access, change: QuotaChange) -> Limit | None:
    refused = refusal(change, access, _ACTS.get(ChangeState(change.state), Act.ROLL_BACK))
    return Limit(refused.message) if refused is not None and refused.code == "permission_denied" else None
