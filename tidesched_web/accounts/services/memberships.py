from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from tidesched_web.accounts.models import Membership, Tenant, TenantRole, User
from tidesched_web.audit import services as audit
from tidesched_web.common.errors import DomainError
from tidesched_web.common.locking import lock_row


@transaction.atomic
def set_membership(
    *,
    user: User,
    tenant: Tenant,
    role: str,
    actor: str,
    by: int | None = None,
    reason: str = "",
    version: int | None = None,
) -> Membership:
    """The same role again writes no entry. ``by``: the actor's account, then no independent approver with ``user``."""
    if role not in TenantRole.values:
        raise DomainError.for_field("/role", f"Unknown role {role!r}. Known: {', '.join(TenantRole.values)}.")
    lock_row(Tenant, tenant.pk)
    membership = Membership.objects.filter(user=user, tenant=tenant).first()
    _require_version(membership, version)
    before = membership.role if membership else None
    if membership is not None and before == role:
        return membership
    membership = membership or Membership(user=user, tenant=tenant)
    if membership.pk is not None:
        membership.version += 1
    membership.role, membership.given_by_id, membership.given_at = role, by, timezone.now()
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
def remove_membership(*, membership: Membership, actor: str, reason: str = "", version: int | None = None) -> None:
    lock_row(Tenant, membership.tenant_id)
    _require_version(Membership.objects.filter(pk=membership.pk).first(), version)
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


def _require_version(membership: Membership | None, seen: int | None) -> None:
    now = membership.version if membership is not None else None
    if seen is not None and seen != now:
        text = _("This membership was changed since you looked at it.")
        raise DomainError("stale", text, {} if now is None else {"etag": f'"{now}"'})
