"""Write accounts, memberships and tokens. Each write is audited in its own transaction."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext as _

from tidesched_web.accounts.models import ApiToken, Membership, PlatformRole, Tenant, TenantRole, User
from tidesched_web.accounts.tokens import PREFIX_LENGTH, new_token, parse_scopes, token_hash
from tidesched_web.audit import services as audit
from tidesched_web.common.errors import DomainError
from tidesched_web.common.locking import lock_row

# A token in steady use writes its time of use at most this often.
LAST_USED_STEP = dt.timedelta(minutes=1)


def _check_password(password: str, user: User, pointer: str) -> None:
    try:
        validate_password(password, user)
    except ValidationError as error:
        raise DomainError.for_field(pointer, " ".join(error.messages), code="weak_password") from None


@transaction.atomic
def create_user(
    *,
    username: str,
    password: str | None,
    actor: str,
    email: str = "",
    platform_role: str = PlatformRole.NONE,
    must_change_password: bool = False,
) -> User:
    """Make an account; without a password it can only act through tokens (a service account)."""
    if platform_role not in PlatformRole.values:
        known = ", ".join(role for role in PlatformRole.values if role)
        raise DomainError.for_field("/platform_role", f"Unknown role {platform_role!r}. Known: {known}.")
    user = User(
        username=User.normalize_username(username),
        email=email,
        platform_role=platform_role,
        must_change_password=must_change_password,
    )
    try:
        user.clean_fields(exclude=["password"])
    except ValidationError as error:
        raise DomainError.for_field("/username", " ".join(error.messages)) from None
    if password is None:
        user.set_unusable_password()
    else:
        _check_password(password, user, "/password")
        user.set_password(password)
    try:
        with transaction.atomic():
            user.save()
    except IntegrityError:
        raise DomainError.for_field(
            "/username", f"There is a user {username!r} already.", code="already_exists"
        ) from None
    audit.append(
        chain=audit.PLATFORM_CHAIN,
        actor=actor,
        action="user.create",
        object_type="user",
        object_id=user.pk,
        object_label=user.username,
        after={"username": user.username, "platform_role": user.platform_role, "email": user.email},
    )
    return user


def ensure_admin(*, username: str, password: str, actor: str = "system") -> bool:
    """Make the first platform admin of an installation; returns False where the account is there already."""
    if User.objects.filter(username=username).exists():
        return False
    try:
        create_user(username=username, password=password, actor=actor, platform_role=PlatformRole.ADMIN)
    except DomainError as error:
        if error.code == "already_exists":  # another process was faster
            return False
        raise
    return True


@transaction.atomic
def change_password(*, user: User, old_password: str | None, new_password: str, actor: str) -> None:
    """Set a new password; ``old_password`` is None where an operator does it. Other sessions of the user end."""
    user = lock_row(User, user.pk)
    if old_password is not None and not user.check_password(old_password):
        raise DomainError.for_field("/old_password", _("That is not the present password."), code="wrong_password")
    _check_password(new_password, user, "/new_password")
    user.set_password(new_password)
    user.must_change_password = False
    user.save(update_fields=["password", "must_change_password"])
    audit.append(
        chain=audit.PLATFORM_CHAIN,
        actor=actor,
        action="user.change_password",
        object_type="user",
        object_id=user.pk,
        object_label=user.username,
    )


def set_preferences(*, user: User, language: str, time_zone: str) -> None:
    """How a person wants pages to be; empty = as the browser says. Not an act for the audit log."""
    User.objects.filter(pk=user.pk).update(language=language, time_zone=time_zone)


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


@transaction.atomic
def create_token(
    *,
    user: User,
    scopes: Iterable[str],
    actor: str,
    name: str = "",
    expires_at: dt.datetime | None = None,
    tenant: Tenant | None = None,
) -> tuple[ApiToken, str]:
    """Make a token; returns it with its text, which nobody can read again afterwards."""
    wanted = parse_scopes(scopes)
    if expires_at is not None and expires_at <= timezone.now():
        raise DomainError.for_field("/expires_at", "A token cannot expire in the past.")
    if tenant is not None and not user.sees_everything and not user.memberships.filter(tenant=tenant).exists():
        raise DomainError.for_field(
            "/tenant", f"{user.username} is not a member of {tenant.slug}.", code="unknown_tenant"
        )
    plain = new_token()
    token = ApiToken.objects.create(
        user=user,
        name=name,
        prefix=plain[:PREFIX_LENGTH],
        token_hash=token_hash(plain),
        scopes=wanted,
        tenant=tenant,
        expires_at=expires_at,
    )
    audit.append(
        chain=audit.PLATFORM_CHAIN,
        actor=actor,
        action="token.create",
        object_type="token",
        object_id=token.pk,
        object_label=f"{token.prefix}… of {user.username}",
        tenant_ids=[tenant.pk] if tenant else (),
        after={"name": name, "scopes": wanted, "expires_at": expires_at, "tenant": tenant.slug if tenant else None},
    )
    return token, plain


@transaction.atomic
def revoke_token(*, token: ApiToken, actor: str, reason: str = "") -> bool:
    """End a token now; returns False where somebody ended it before."""
    if not ApiToken.objects.filter(ApiToken.LIVE, pk=token.pk).update(revoked_at=timezone.now()):
        return False
    audit.append(
        chain=audit.PLATFORM_CHAIN,
        actor=actor,
        action="token.revoke",
        object_type="token",
        object_id=token.pk,
        object_label=f"{token.prefix}… of {token.user.username}",
        tenant_ids=[token.tenant_id] if token.tenant_id else (),
        reason=reason,
    )
    return True


def note_token_use(token: ApiToken) -> None:
    """Remember that a token was used; a steady caller costs one write a minute, not one a request."""
    now = timezone.now()
    if token.last_used_at is not None and now - token.last_used_at < LAST_USED_STEP:
        return
    stale = Q(last_used_at__isnull=True) | Q(last_used_at__lt=now - LAST_USED_STEP)
    ApiToken.objects.filter(stale, pk=token.pk).update(last_used_at=now)
