from collections.abc import Collection
from typing import Any
from uuid import uuid4

from django.contrib.auth import hashers
from django.contrib.auth.hashers import UNUSABLE_PASSWORD_PREFIX
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from tidesched_web.accounts.models import AccessLink, Density, PlatformRole, SignInSettings, User
from tidesched_web.accounts.names import refuse_misleading
from tidesched_web.accounts.selectors import account_version, authenticators_of, usernames
from tidesched_web.accounts.services.tokens import end_all_tokens
from tidesched_web.audit import services as audit
from tidesched_web.common.actors import SYSTEM
from tidesched_web.common.errors import DomainError, need_reason
from tidesched_web.common.locking import lock_row
from tidesched_web.common.validation import check_fields


def check_password(password: str, user: User, pointer: str) -> None:
    try:
        validate_password(password, user)
    except ValidationError as error:
        raise DomainError.for_field(pointer, " ".join(error.messages), code="weak_password") from None


def create_user(
    *,
    username: str,
    password: str | None,
    actor: str,
    email: str = "",
    platform_role: str = PlatformRole.NONE,
    must_change_password: bool = False,
    by: int | None = None,
    rehearsed_among: Collection[str] | None = None,
) -> User:
    """``rehearsed_among``: tried out; a name taken out of these names' sight answers like a free one."""
    if platform_role not in PlatformRole.values:
        known = ", ".join(role for role in PlatformRole.values if role)
        raise DomainError.for_field("/platform_role", f"Unknown role {platform_role!r}. Known: {known}.")
    user = User(
        username=User.normalize_username(username),
        email=email,
        platform_role=platform_role,
        must_change_password=must_change_password,
        invited_by_id=by,
        role_given_by_id=by if platform_role else None,
        role_given_at=timezone.now() if platform_role else None,
    )
    try:
        user.clean_fields(exclude=["password"])
    except ValidationError as error:
        raise DomainError.for_field("/username", " ".join(error.messages)) from None
    refuse_misleading(user.username, usernames() if rehearsed_among is None else rehearsed_among)
    if rehearsed_among is not None and user.username not in rehearsed_among:
        user.username = uuid4().hex
    if password is None:
        user.set_unusable_password()
    else:
        check_password(password, user, "/password")
        user.set_password(password)
    try:
        with transaction.atomic():
            user.save()
            facts = {"username": user.username, "platform_role": user.platform_role, "email": user.email}
            _audit(user, actor=actor, action="user.create", after=facts)
    except IntegrityError:
        raise DomainError.for_field(
            "/username", f"There is a user {username!r} already.", code="already_exists"
        ) from None
    return user


def ensure_admin(*, username: str, password: str, actor: str = SYSTEM) -> bool:
    if User.objects.filter(username=username).exists():
        return False
    try:
        create_user(username=username, password=password, actor=actor, platform_role=PlatformRole.ADMIN)
    except DomainError as error:
        if error.code == "already_exists":  # another process was faster
            return False
        raise
    return True


def change_password(
    *, user: User, old_password: str | None, new_password: str, actor: str, end_tokens: bool = False
) -> None:
    """Passwords are hashed before the transaction: nothing is locked, and no connection is held, meanwhile."""
    seen = User.objects.get(pk=user.pk)
    if old_password is not None and not hashers.check_password(old_password, seen.password):
        raise DomainError.for_field("/old_password", _("That is not the present password."), code="wrong_password")
    check_password(new_password, seen, "/new_password")
    hashed = hashers.make_password(new_password)
    with transaction.atomic():
        user = lock_row(User, user.pk)
        if old_password is not None and user.password != seen.password:  # changed elsewhere at the same moment
            raise DomainError.for_field("/old_password", _("That is not the present password."), code="wrong_password")
        user.password, user.must_change_password = hashed, False
        user.save(update_fields=["password", "must_change_password"])
        ended = end_all_tokens(user) if end_tokens else 0
        _audit(user, actor=actor, action="user.change_password", after={"tokens_revoked": ended} if ended else None)


def set_preferences(*, user: User, language: str, time_zone: str) -> None:
    User.objects.filter(pk=user.pk).update(language=language, time_zone=time_zone)


def set_density(*, user: User, density: str) -> None:
    """How dense a person wants lists to be; what is no density changes nothing. Not an act for the audit log."""
    if density in Density.values:
        User.objects.filter(pk=user.pk).update(density=density)


def _set_role(user: User, role: str) -> None:
    if role not in PlatformRole.values:
        known = ", ".join(role for role in PlatformRole.values if role)
        raise DomainError.for_field("/platform_role", f"Unknown role {role!r}. Known: {known}.")
    user.platform_role = PlatformRole(role)


def _keep_an_admin(user: User) -> None:
    """The rows of all admins are locked, so that two cannot both go; asked of all: one may be the only admin by now."""
    if SignInSettings.objects.filter(local_accounts=False, break_glass=user).exists():
        text = _("%(user)s is who comes in when the provider is down. Choose another one under Sign-in first.")
        raise DomainError("last_admin", text % {"user": user.username})
    admins = User.objects.filter(is_active=True, platform_role=PlatformRole.ADMIN).order_by("pk")
    found = list(admins.select_for_update(no_key=True))
    others = [one for one in found if one.pk != user.pk and not one.password.startswith(UNUSABLE_PASSWORD_PREFIX)]
    if not others and any(one.pk == user.pk for one in found):
        raise DomainError(
            "last_admin",
            _("%(user)s is the last active platform admin. Make another account one first.") % {"user": user.username},
        )


def _audit(user: User, *, actor: str, action: str, **facts: Any) -> None:
    audit.append(
        chain=audit.PLATFORM_CHAIN,
        actor=actor,
        action=action,
        object_type="user",
        object_id=user.pk,
        object_label=user.username,
        **facts,
    )


def _require_seen(user: User, version: int | None) -> None:
    """Refuse a write that was made looking at another state of the account; call it under the row's lock."""
    now = account_version(user)
    if version is not None and version != now:
        text = _("The account %(user)s was changed since you looked at it.") % {"user": user.username}
        raise DomainError("stale", text, {"version": now})


@transaction.atomic
def update_user(
    *,
    user: User,
    actor: str,
    first_name: str | None = None,
    last_name: str | None = None,
    email: str | None = None,
    platform_role: str | None = None,
    reason: str = "",
    by: int | None = None,
    version: int | None = None,
) -> bool:
    if platform_role is not None and platform_role != PlatformRole.ADMIN:
        _keep_an_admin(user)
    user = lock_row(User, user.pk)
    _require_seen(user, version)
    wanted = {
        name: value
        for name, value in (
            ("first_name", first_name),
            ("last_name", last_name),
            ("email", email),
            ("platform_role", platform_role),
        )
        if value is not None and value != getattr(user, name)
    }
    if not wanted:
        return False
    before = {name: getattr(user, name) for name in wanted}
    for name, value in wanted.items():
        if name == "platform_role":
            _set_role(user, value)
            user.role_given_by_id, user.role_given_at = by, timezone.now()
        else:
            setattr(user, name, value)
    check_fields(user)
    given = ("role_given_by", "role_given_at") if "platform_role" in wanted else ()
    user.save(update_fields=[*wanted, *given])
    _audit(user, actor=actor, action="user.update", reason=reason, before=before, after=wanted)
    return True


@transaction.atomic
def deactivate_user(*, user: User, actor: str, reason: str, version: int | None = None) -> bool:
    """It cannot sign in, its tokens and links are dead. False where it was off already."""
    reason = need_reason(reason)
    _keep_an_admin(user)
    _require_seen(lock_row(User, user.pk), version)
    if not User.objects.filter(pk=user.pk, is_active=True).update(is_active=False):
        return False
    AccessLink.objects.filter(AccessLink.LIVE, user=user).update(revoked_at=timezone.now())
    _audit(user, actor=actor, action="user.deactivate", reason=reason, before={"active": True}, after={"active": False})
    return True


@transaction.atomic
def activate_user(*, user: User, actor: str, reason: str = "", version: int | None = None) -> bool:
    """With the rights and tokens that it had. False where it was on already."""
    _require_seen(lock_row(User, user.pk), version)
    if not User.objects.filter(pk=user.pk, is_active=False).update(is_active=True):
        return False
    _audit(user, actor=actor, action="user.activate", reason=reason, before={"active": False}, after={"active": True})
    return True


@transaction.atomic
def reset_mfa(*, user: User, actor: str, by: int, reason: str) -> None:
    """For one who has lost the phone and the recovery codes; their own each person changes under Profile."""
    reason = need_reason(reason)
    if user.pk == by:
        raise DomainError("conflict", _("This is your own account: change its two-step sign-in under Profile."))
    rows = authenticators_of(lock_row(User, user.pk))
    methods = sorted({row.type for row in rows})
    if not methods:
        raise DomainError("conflict", _("%(user)s has no two-step sign-in.") % {"user": user.username})
    rows.delete()
    _audit(user, actor=actor, action="user.mfa_reset", reason=reason, before={"methods": methods})
