"""Every ``visible_…`` function takes its caller's `Access`: an object out of sight is a 404, never a 403."""

import zlib
from collections.abc import Iterable

from allauth.mfa.models import Authenticator
from django.contrib.auth.hashers import UNUSABLE_PASSWORD_PREFIX
from django.contrib.auth.models import AnonymousUser
from django.contrib.postgres.fields import ArrayField
from django.db.models import Count, Exists, JSONField, OuterRef, Prefetch, QuerySet, Subquery
from django.db.models.expressions import RawSQL
from django.db.models.fields.json import KT
from django.db.models.functions import Coalesce, Now

from tidesched_web.accounts.identity_selectors import sign_in_settings
from tidesched_web.accounts.models import (
    AccessLink,
    ApiToken,
    BusinessLine,
    Membership,
    PlatformRole,
    Project,
    SignInSettings,
    Tenant,
    TenantRole,
    User,
)
from tidesched_web.accounts.tokens import PREFIX_LENGTH, token_hash
from tidesched_web.common.actors import ANONYMOUS, Actor, ActorKind
from tidesched_web.common.permissions import Access


def user_actor(user: User) -> Actor:
    return Actor(user.get_username(), ActorKind.USER, user.pk, issuer=user.issuer, subject=user.subject)


def account_version(user: User) -> int:
    figures = (user.first_name, user.last_name, user.email, str(user.platform_role), user.is_active)
    return zlib.crc32(repr(figures).encode())


def _memberships(user_column: str) -> RawSQL:
    rows = "SELECT array(SELECT jsonb_build_object('tenant', tenant_id, 'role', role) FROM accounts_membership m"
    sql = f"{rows} WHERE m.user_id = {user_column})"
    return RawSQL(sql, [], output_field=ArrayField(JSONField()))  # noqa: S611 - as above


def user_of_session(pk: int) -> User | None:
    return with_mfa(User.objects.annotate(membership_rows=_memberships("accounts_user.id"))).filter(pk=pk).first()


def with_mfa(users: QuerySet[User]) -> QuerySet[User]:
    """Each with what `mfa_demanded_of` asks, and whether passwords are switched off for it, in the same query."""
    has = Exists(Authenticator.objects.filter(user=OuterRef("pk")))
    off = SignInSettings.objects.filter(local_accounts=False).exclude(break_glass=OuterRef("pk"))
    demanding = Subquery(SignInSettings.objects.values("mfa_roles")[:1])
    return users.annotate(mfa_rows=has, demanding_roles=demanding, local_off=Exists(off))


def has_mfa(user: User) -> bool:
    """No query where the account was read for this request."""
    rows = getattr(user, "mfa_rows", None)
    return bool(authenticators_of(user).exists() if rows is None else rows)


def authenticators_of(user: User) -> QuerySet[Authenticator]:
    rows: QuerySet[Authenticator] = Authenticator.objects.filter(user=user).order_by("pk")
    return rows


def keys_of_mfa() -> set[str]:
    """The ids of the keys that sealed secrets of two-step sign-in."""
    rows = Authenticator.objects.annotate(sealed=Coalesce(KT("data__secret"), KT("data__seed"))).exclude(sealed=None)
    return {str(sealed).partition(" ")[0] for sealed in rows.values_list("sealed", flat=True)}


def mfa_demanded_of(user: User, tenant_roles: Iterable[str] | None = None) -> bool:
    """Whether a role of the account demands two-step sign-in and the account has none."""
    rows = user.demanding_roles if hasattr(user, "demanding_roles") else sign_in_settings().mfa_roles
    demanded = set(rows or ())
    if not demanded or has_mfa(user):
        return False
    held = _tenant_roles(user).values() if tenant_roles is None else tenant_roles
    roles = {"tenant_admin" if role == TenantRole.ADMIN else str(role) for role in held}
    return not demanded.isdisjoint({str(user.platform_role), *roles})


def _tenant_roles(user: User) -> dict[int, str]:
    rows = getattr(user, "membership_rows", None)
    if rows is None:
        return dict(Membership.objects.filter(user_id=user.pk).values_list("tenant_id", "role"))
    return {row["tenant"]: row["role"] for row in rows}


def access_of(user: User | AnonymousUser, token: ApiToken | None = None) -> Access:
    """One query, or none where the account was read for this request together with its memberships."""
    if not isinstance(user, User) or not user.is_active:
        return Access(actor=ANONYMOUS, scopes=frozenset())
    roles = _tenant_roles(user)
    everything, administers = user.sees_everything, user.is_platform_admin
    actor, scopes = user_actor(user), None
    if token is not None:
        name = f"{actor} (token {token.prefix}…)"
        actor = Actor(name, ActorKind.TOKEN, user.pk, issuer=user.issuer, subject=user.subject)
        scopes = frozenset(token.scopes)
        if token.tenant_id is not None:
            # An admin's token for one tenant acts there as a tenant admin and sees nothing else.
            role = roles.get(token.tenant_id, TenantRole.ADMIN if administers else None)
            if role is None and everything:
                role = TenantRole.MEMBER
            roles = {} if role is None else {token.tenant_id: role}
            everything = administers = False
    return Access(
        actor=actor,
        everything=everything,
        administers=administers,
        tenant_ids=frozenset(roles),
        admin_of=frozenset(tenant for tenant, role in roles.items() if role == TenantRole.ADMIN),
        scopes=scopes,
        limited_to=token.tenant_id if token is not None else None,
        user_id=user.pk,
    )


def live_token(plain: str) -> ApiToken | None:
    """The token with this text and its user, unless it is revoked, expired or its user is switched off. One query."""
    tokens = ApiToken.objects.select_related("user").annotate(membership_rows=_memberships("accounts_apitoken.user_id"))
    # Those of a person whom the provider no longer vouches for rest until the next sign-in.
    tokens = tokens.exclude(user__identity__ended_at__isnull=False)
    token = tokens.filter(token_hash=token_hash(plain)).first()
    if token is None or not token.usable or not token.user.is_active:
        return None
    token.user.membership_rows = token.membership_rows  # type: ignore[attr-defined]
    return token


def active_user(pk: int | None) -> User | None:
    return None if pk is None else User.objects.filter(pk=pk, is_active=True).first()


def live_link(secret: str) -> AccessLink | None:
    """A tenant's invitation is dead too once the account has rights beyond that tenant: its admin knows the secret."""
    link = AccessLink.objects.select_related("user").filter(link_hash=token_hash(secret)).first()
    if link is None or not link.usable or not link.user.is_active:
        return None
    return link if link.tenant_id is None or only_invited_to(link.user, link.tenant_id) else None


def only_invited_to(user: User, tenant_id: int) -> bool:
    if user.has_usable_password() or user.last_login or user.platform_role or user.is_superuser:
        return False
    tenants = set(Membership.objects.filter(user=user).values_list("tenant_id", flat=True))
    return tenants == {tenant_id} and not ApiToken.objects.filter(user=user).exists()


def never_used_invited_by(user_id: int) -> QuerySet[User]:
    invited = User.objects.filter(invited_by=user_id, is_active=True, last_login=None)
    unused = invited.filter(password__startswith=UNUSABLE_PASSWORD_PREFIX)
    return unused.exclude(Exists(ApiToken.objects.filter(user=OuterRef("pk"))))


def visible_users(access: Access) -> QuerySet[User]:
    users = User.objects.all()
    if access.everything:
        return users
    return users.filter(memberships__tenant_id__in=access.admin_of).distinct()


def names_in_sight(access: Access) -> frozenset[str]:
    return frozenset(visible_users(access).values_list("username", flat=True))


def users_listed(access: Access) -> QuerySet[User]:
    links = AccessLink.objects.filter(AccessLink.LIVE, user=OuterRef("pk"), expires_at__gt=Now())
    return visible_users(access).annotate(tenants_count=Count("memberships"), invited=Exists(links))


def users_with_memberships(access: Access) -> QuerySet[User]:
    return users_listed(access).prefetch_related(Prefetch("memberships", queryset=visible_memberships(access)))


def memberships_of(user: User) -> list[Membership]:
    return list(Membership.objects.filter(user=user).select_related("tenant").order_by("tenant__slug")[:200])


def memberships_by_tenant(user: User) -> dict[int, Membership]:
    return {row.tenant_id: row for row in Membership.objects.filter(user=user).select_related("user", "tenant")}


def only_admin_who_signs_in(user: User) -> bool:
    if not user.is_platform_admin:
        return False
    others = User.objects.filter(is_active=True, platform_role=PlatformRole.ADMIN).exclude(pk=user.pk)
    return not others.exclude(password__startswith=UNUSABLE_PASSWORD_PREFIX).exists()


def known_users(access: Access) -> QuerySet[User]:
    """Accounts that may be named as members: an admin of a tenant may name any active one by its exact user name."""
    users = User.objects.filter(is_active=True)
    return users if access.everything or access.admin_of else users.none()


def user_by_name(username: str) -> User | None:
    return User.objects.filter(username=username).first()


def usernames() -> list[str]:
    return list(User.objects.order_by("username").values_list("username", flat=True))


def tenant_by_slug(slug: str) -> Tenant | None:
    return Tenant.objects.filter(slug=slug).first()


def tenant_slugs() -> list[str]:
    return list(Tenant.objects.order_by("slug").values_list("slug", flat=True))


def visible_tenants(access: Access) -> QuerySet[Tenant]:
    tenants = Tenant.objects.all()
    return tenants if access.everything else tenants.filter(pk__in=access.tenant_ids)


def visible_projects(access: Access) -> QuerySet[Project]:
    projects = Project.objects.select_related("tenant")
    return projects if access.everything else projects.filter(tenant_id__in=access.tenant_ids)


def visible_business_lines(access: Access) -> QuerySet[BusinessLine]:
    lines = BusinessLine.objects.select_related("tenant")
    return lines if access.everything else lines.filter(tenant_id__in=access.tenant_ids)


def visible_memberships(access: Access) -> QuerySet[Membership]:
    memberships = Membership.objects.select_related("user", "tenant")
    return memberships if access.everything else memberships.filter(tenant_id__in=access.tenant_ids)


def members_of(tenant: Tenant, access: Access) -> QuerySet[Membership]:
    links = AccessLink.objects.filter(AccessLink.LIVE, user=OuterRef("user"), expires_at__gt=Now())
    return visible_memberships(access).filter(tenant=tenant).annotate(invited=Exists(links))


def visible_tokens(user: User, access: Access) -> QuerySet[ApiToken]:
    """One's own tokens (through a token for one tenant: those of that tenant); a platform admin sees all."""
    tokens = ApiToken.objects.select_related("user", "tenant")
    if access.administers:
        return tokens
    tokens = tokens.filter(user=user)
    return tokens if access.limited_to is None else tokens.filter(tenant_id=access.limited_to)


def own_tokens(user: User) -> QuerySet[ApiToken]:
    return ApiToken.objects.select_related("user", "tenant").filter(user=user)


def all_tokens(user: User | None = None) -> QuerySet[ApiToken]:
    tokens = ApiToken.objects.select_related("user", "tenant").order_by("pk")
    return tokens if user is None else tokens.filter(user=user)


def tokens_like(wanted: str) -> list[ApiToken]:
    if wanted.isascii() and wanted.isdigit() and len(wanted) < 19:
        return list(all_tokens().filter(pk=int(wanted)))
    return list(all_tokens().filter(prefix__startswith=wanted[:PREFIX_LENGTH]))[:5] if len(wanted) > 5 else []
