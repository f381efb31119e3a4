"""The secret of a link is shown once and stored as a hash; the next link of the same account ends it."""

import datetime as dt
from collections.abc import Collection, Mapping

from django.conf import settings
from django.contrib.auth.hashers import make_password
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from tidesched_web.accounts.identity_selectors import may_use_password
from tidesched_web.accounts.models import AccessLink, LinkKind, Membership, PlatformRole, Tenant, User
from tidesched_web.accounts.selectors import live_link, never_used_invited_by, only_invited_to, user_actor
from tidesched_web.accounts.services.memberships import set_membership
from tidesched_web.accounts.services.tokens import end_all_tokens
from tidesched_web.accounts.services.users import check_password, create_user
from tidesched_web.accounts.tokens import new_link_secret, token_hash
from tidesched_web.audit import services as audit
from tidesched_web.common.errors import DomainError, require_room
from tidesched_web.common.locking import lock_row

LIFETIME = {LinkKind.INVITE: dt.timedelta(days=7), LinkKind.RESET: dt.timedelta(hours=24)}


@transaction.atomic
def invite_user(
    *,
    username: str,
    actor: str,
    email: str = "",
    platform_role: str = PlatformRole.NONE,
    memberships: Mapping[Tenant, str] | None = None,
    of_tenant: Tenant | None = None,
    by: int | None = None,
    rehearsed_among: Collection[str] | None = None,
) -> tuple[User, AccessLink, str]:
    """``of_tenant``: an admin of that tenant invites, into the tenant. ``rehearsed_among``: see `create_user`."""
    if by is not None:
        text = _(
            "%(limit)d people whom you invited have not used their invitation, the most that may wait: a platform "
            "admin switches off the accounts that are not needed."
        )
        require_room(never_used_invited_by(by), settings.KEPT_INVITATIONS, text)
    user = create_user(
        username=username, password=None, email=email, platform_role=platform_role, actor=actor, by=by,
        rehearsed_among=rehearsed_among,
    )  # fmt: skip
    for tenant, role in (memberships or {}).items():
        set_membership(user=user, tenant=tenant, role=role, actor=actor, by=by)
    link, secret = make_link(user=user, kind=LinkKind.INVITE, actor=actor, of_tenant=of_tenant, by=by)
    return user, link, secret


@transaction.atomic
def invite_again(*, membership: Membership, actor: str, by: int | None = None) -> tuple[AccessLink, str]:
    """The holder of a link becomes its person: an account that was used, or has rights elsewhere, gets none."""
    user = lock_row(User, membership.user_id)
    if not only_invited_to(user, membership.tenant_id):
        text = _("The account of %(user)s is in use or has rights elsewhere; a platform admin makes its links.")
        raise DomainError("conflict", text % {"user": user.username})
    return make_link(user=user, kind=LinkKind.INVITE, actor=actor, of_tenant=membership.tenant, by=by)


@transaction.atomic
def make_link(
    *, user: User, kind: str, actor: str, of_tenant: Tenant | None = None, by: int | None = None
) -> tuple[AccessLink, str]:
    """A new link and its secret, which cannot be read again; earlier links of the account end. The password stays."""
    user = lock_row(User, user.pk)
    if not user.is_active:
        text = _("%(user)s is switched off; switch the account on first.")
        raise DomainError("conflict", text % {"user": user.username})
    if user.issuer:
        text = _("%(user)s signs in through a provider: there is no password to set.")
        raise DomainError("conflict", text % {"user": user.username})
    now = timezone.now()
    AccessLink.objects.filter(AccessLink.LIVE, user=user).update(revoked_at=now)
    secret = new_link_secret()
    link = AccessLink.objects.create(
        user=user,
        kind=kind,
        tenant=of_tenant,
        link_hash=token_hash(secret),
        created_by=actor[:200],
        made_by_id=by,
        expires_at=now + LIFETIME[LinkKind(kind)],
    )
    audit.append(
        chain=audit.PLATFORM_CHAIN,
        actor=actor,
        action=f"user.{kind}_link",
        object_type="user",
        object_id=user.pk,
        object_label=user.username,
        tenant_ids=[of_tenant.pk] if of_tenant else [],
        after={"expires_at": link.expires_at},
    )
    return link, secret


def use_link(*, secret: str, new_password: str) -> User:
    """Of two people one wins. A reset ends the tokens too: more than the password may be lost."""
    link = live_link(secret)
    if link is None:
        raise _dead()
    if not may_use_password(link.user):
        text = _("Accounts with a password are switched off here: sign in through your provider.")
        raise DomainError("permission_denied", text)
    check_password(new_password, link.user, "/new_password")
    hashed = make_password(new_password)  # before the transaction: no connection is held meanwhile
    with transaction.atomic():
        user = lock_row(User, link.user_id)
        if link.tenant_id is not None and not only_invited_to(user, link.tenant_id):
            raise _dead()
        now = timezone.now()
        live = AccessLink.objects.filter(AccessLink.LIVE, pk=link.pk, expires_at__gt=now)
        if not user.is_active or not live.update(used_at=now):
            raise _dead()
        user.password, user.must_change_password = hashed, False
        user.save(update_fields=["password", "must_change_password"])
        ended = end_all_tokens(user) if link.kind == LinkKind.RESET else 0
        audit.append(
            chain=audit.PLATFORM_CHAIN,
            actor=user_actor(user),
            action=f"user.use_{link.kind}_link",
            object_type="user",
            object_id=user.pk,
            object_label=user.username,
            after={"tokens_revoked": ended} if ended else None,
        )
    return user


def _dead() -> DomainError:
    return DomainError("link_is_dead", _("This link has been used, has expired or was replaced by a newer one."))
