"""Who belongs to a tenant, and as what."""

from __future__ import annotations

from django.db import transaction

from tidesched_web.accounts.models import Membership, Tenant, TenantRole, User
from tidesched_web.audit import services as audit
from tidesched_web.common.errors import DomainError
from tidesched_web.common.locking import lock_row


@transaction.atomic
def set_membership(*, user: User, tenant: Tenant, role: str, actor: str, reason: str = "") -> Membership:
    """Give ``user`` a role in ``tenant``; the same role again changes nothing and writes no entry."""
    if role not in TenantRole.values:
        raise DomainError.for_field("/role", f"Unknown role {role!r}. Known: {', '.join(TenantRole.values)}.")
    lock_row(Tenant, tenant.pk)
    membership = Membership.objects.filter(user=user, tenant=tenant).first()
    before = membership.role if membership else None
    if membership is not None and before == role:
        return membership
    membership = membership or Membership(user=user, tenant=tenant)
    membership.role = role
    membership.save()
    audit.append(
        chain=audit.PLATFORM_CHAIN,
        actor=actor,
        action="membership.set",
        object_type="membership",
        object_id=membership.pk,
        object_label=f"{user.username} in {tenant.slug}",
        tenant_ids=[tenant.pk],
        reason=reason,
        before=None if before is None else {"role": before},
        after={"role": role},
    )
    return membership


@transaction.atomic
def remove_membership(*, membership: Membership, actor: str, reason: str = "") -> None:
    """Take a user out of a tenant."""
    pk, user, tenant, role = membership.pk, membership.user, membership.tenant, membership.role
    membership.delete()
    audit.append(
        chain=audit.PLATFORM_CHAIN,
        actor=actor,
        action="membership.remove",
        object_type="membership",
        object_id=pk,
        object_label=f"{user.username} in {tenant.slug}",
        tenant_ids=[tenant.pk],
        reason=reason,
        before={"role": role},
    )
