import datetime as dt
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from django.conf import settings
from django.contrib.auth.hashers import UNUSABLE_PASSWORD_PREFIX
from django.db.models import Count, QuerySet
from django.utils import timezone

from tidesched_web.accounts.models import (
    Identity,
    IdentityProvider,
    Membership,
    PlatformRole,
    SignInRule,
    SignInSettings,
    Tenant,
    User,
)
from tidesched_web.accounts.oidc import OidcClient
from tidesched_web.accounts.sign_in_rules import Roles, roles_of, settled
from tidesched_web.common.encryption import decrypt

PREVIEWED = 500


def sign_in_settings() -> SignInSettings:
    return SignInSettings.objects.first() or SignInSettings(pk=1)


def identity_providers() -> QuerySet[IdentityProvider]:
    return IdentityProvider.objects.annotate(people=Count("identities"))


def open_providers() -> list[IdentityProvider]:
    return list(IdentityProvider.objects.filter(enabled=True))


def provider_secret(provider: IdentityProvider) -> str:
    return decrypt(bytes(provider.secret), provider.secret_key_id).decode() if provider.secret else ""


def oidc_client(provider: IdentityProvider) -> OidcClient:
    return OidcClient(provider.issuer, provider.client_id, provider_secret(provider))


def provider_named(slug: str) -> IdentityProvider | None:
    return IdentityProvider.objects.filter(slug=slug, enabled=True).first()


def claims_wanted_of(slug: str) -> frozenset[str]:
    """The claims that its rules ask for, the outermost where one is inside another."""
    claims = SignInRule.objects.filter(provider__slug=slug).values_list("claim", flat=True)
    return frozenset(claim.partition(".")[0] for claim in claims)


def sign_in_rules() -> QuerySet[SignInRule]:
    return SignInRule.objects.select_related("provider", "tenant", "edited_by")


def keys_of_sign_in() -> set[str]:
    """The ids of the keys that sealed secrets of providers and refresh tokens."""
    of_providers = IdentityProvider.objects.exclude(secret_key_id="").values_list("secret_key_id", flat=True)
    return {*of_providers, *Identity.objects.exclude(refresh_key_id="").values_list("refresh_key_id", flat=True)}


def identities_due() -> list[Identity]:
    """Those to ask about again: not what nothing hangs on any more, an account that is switched off."""
    due = timezone.now() - dt.timedelta(seconds=settings.SIGN_IN_CHECK_SECONDS)
    found = Identity.objects.filter(ended_at__isnull=True, checked_at__lte=due, user__is_active=True)
    return list(found.select_related("provider", "user").order_by("checked_at")[:200])


def break_glass_candidates() -> QuerySet[User]:
    admins = User.objects.filter(is_active=True, platform_role=PlatformRole.ADMIN, issuer="").order_by("username")
    return admins.exclude(password__startswith=UNUSABLE_PASSWORD_PREFIX)


def may_use_password(user: User) -> bool:
    if user.issuer:
        return False
    said = sign_in_settings()
    return said.local_accounts or said.break_glass_id == user.pk


def is_break_glass(user: User) -> bool:
    said = sign_in_settings()
    return not said.local_accounts and said.break_glass_id == user.pk


@dataclass(frozen=True)
class Gets:
    """What one person has now and would have."""

    identity: Identity
    now: list[tuple[str, str]]
    then: list[tuple[str, str]]

    @property
    def differs(self) -> bool:
        return self.now != self.then


def who_would_get_what(rules: Sequence[SignInRule], provider: IdentityProvider) -> tuple[list[Gets], int]:
    """For those who came from ``provider``, first whose roles would change; and how many people it knows in all."""
    known = Identity.objects.filter(provider=provider, ended_at__isnull=True, user__is_active=True)
    rows = list(known.select_related("user").order_by("user__username")[:PREVIEWED])
    held = roles_held([row.user_id for row in rows])
    names = dict(Tenant.objects.values_list("pk", "name"))
    found = []
    for row in rows:
        now = Roles(row.user.platform_role, held.get(row.user_id, {}))
        then, _given = outcome(now, row.given, roles_of(row.claims, rules))
        found.append(Gets(row, _lines(now, names), _lines(then, names)))
    return sorted(found, key=lambda one: not one.differs), known.count()


def roles_held(user_ids: Collection[int]) -> dict[int, dict[int, str]]:
    held: dict[int, dict[int, str]] = {}
    rows = Membership.objects.filter(user_id__in=user_ids).values_list("user_id", "tenant_id", "role")
    for user, tenant, role in rows:
        held.setdefault(user, {})[tenant] = role
    return held


def outcome(now: Roles, given: dict[str, object], wanted: Roles) -> tuple[Roles, dict[str, object]]:
    """The roles from now on, and what of them the rules give (`Identity.given`)."""
    before = given.get("tenants", {})
    assert isinstance(before, dict)
    platform, ours = settled(now.platform, str(given.get("platform_role", "")), wanted.platform)
    then, tenants = Roles(platform), {}
    for tenant in sorted({*now.tenants, *map(int, before), *wanted.tenants}):
        role, by_rule = settled(
            now.tenants.get(tenant, ""), before.get(str(tenant), ""), wanted.tenants.get(tenant, "")
        )
        if role:
            then.tenants[tenant] = role
        if by_rule:
            tenants[str(tenant)] = by_rule
    return then, {"platform_role": ours, "tenants": tenants}


def _lines(roles: Roles, names: dict[int, str]) -> list[tuple[str, str]]:
    """Pairs of a tenant's name, "" for the platform, and the role there."""
    platform = [("", roles.platform)] if roles.platform else []
    return [*platform, *sorted((names.get(tenant, ""), role) for tenant, role in roles.tenants.items())]
