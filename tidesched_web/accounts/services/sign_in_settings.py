from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import ProtectedError
from django.utils.translation import gettext as _

from tidesched_web.accounts.identity_selectors import break_glass_candidates, provider_secret
from tidesched_web.accounts.models import (
    TENANT_ROLES,
    IdentityProvider,
    RuleRole,
    SignInRule,
    SignInSettings,
    Tenant,
    User,
)
from tidesched_web.accounts.oidc import OidcClient, ProviderFails
from tidesched_web.accounts.services.identities import end_all, give_roles_to_all
from tidesched_web.audit import services as audit
from tidesched_web.common.actors import OPERATOR
from tidesched_web.common.encryption import encrypt
from tidesched_web.common.errors import DomainError
from tidesched_web.common.locking import lock_row
from tidesched_web.common.validation import check_fields, check_version


def save_provider(
    *, provider: IdentityProvider | None, actor: str, secret: str = "", version: int | None = None, **facts: Any
) -> IdentityProvider:
    """``facts``: slug, name, issuer, client_id, scopes, enabled. An empty ``secret`` keeps the one that is there."""
    row = provider or IdentityProvider()
    check_version(row, version)
    issuer = str(facts.get("issuer", row.issuer)).rstrip("/")
    if provider is not None and issuer != row.issuer.rstrip("/") and row.identities.exists():
        text = _("People have come from %(issuer)s. Another issuer is another provider: add it as one.")
        raise DomainError.for_field("/issuer", text % {"issuer": row.issuer}, code="in_use")
    if facts.get("enabled", True):
        try:  # before the transaction: nothing waits for a network
            OidcClient(issuer, "", "").config  # noqa: B018 - the reading is what may fail
        except ProviderFails as error:
            text = _("No provider of OpenID Connect answers there: %(said)s")
            raise DomainError.for_field("/issuer", text % {"said": error}) from None
    with transaction.atomic():
        if provider is not None:
            row = lock_row(IdentityProvider, provider.pk)
            check_version(row, version)
        before = _facts_of(row) if provider is not None else None
        for name, value in {**facts, "issuer": issuer}.items():
            setattr(row, name, value)
        if secret:
            row.secret, row.secret_key_id = encrypt(secret.encode())
        row.version += 1 if provider is not None else 0
        check_fields(row)
        try:
            with transaction.atomic():
                row.save()
        except IntegrityError as error:
            field = "slug" if "slug" in str(error) else "issuer"
            text = (
                _("There is a provider of this name already.")
                if field == "slug"
                else _("There is one for this issuer.")
            )
            raise DomainError.for_field(f"/{field}", text) from None
        after = _facts_of(row) | ({"secret": "changed"} if secret else {})
        _audit(actor, "identity_provider.save", row.pk, row.slug, before=before, after=after)
    if not row.enabled:
        end_all(provider=row, why="the provider was switched off")
    return row


@transaction.atomic
def provider_of_environment() -> bool:
    """The provider that OIDC_ISSUER names, kept as the environment says; asked by `prepare`, which asks no network."""
    known = IdentityProvider.objects.select_for_update().filter(from_environment=True).first()
    if not settings.OIDC_ISSUER:
        if known is None or not known.enabled:
            return False
        IdentityProvider.objects.filter(pk=known.pk).update(enabled=False)
        _audit(OPERATOR, "identity_provider.save", known.pk, known.slug, after={"enabled": False})
        end_all(provider=known, why="the provider was taken out of the environment")
        return True
    row = known or IdentityProvider(slug="sso", from_environment=True)
    if known is not None and known.identities.exists() and known.issuer != settings.OIDC_ISSUER.rstrip("/"):
        raise DomainError("conflict", f"OIDC_ISSUER was {known.issuer}: people have come from it, so it stays.")
    before = _facts_of(row)
    row.name, row.issuer, row.client_id = settings.OIDC_NAME, settings.OIDC_ISSUER.rstrip("/"), settings.OIDC_CLIENT_ID
    row.scopes, row.enabled = settings.OIDC_SCOPES, True
    if known is not None and before == _facts_of(row) and provider_secret(known) == settings.OIDC_CLIENT_SECRET:
        return False
    row.secret, row.secret_key_id = encrypt(settings.OIDC_CLIENT_SECRET.encode())
    check_fields(row)
    row.save()
    _audit(OPERATOR, "identity_provider.save", row.pk, row.slug, after=_facts_of(row))
    return True


@transaction.atomic
def remove_provider(*, provider: IdentityProvider, actor: str, reason: str, version: int | None = None) -> None:
    row = lock_row(IdentityProvider, provider.pk)
    check_version(row, version)
    pk, before = row.pk, _facts_of(row)
    try:
        row.delete()
    except ProtectedError:
        text = _("People have come from %(name)s and their accounts need it: switch it off instead.")
        raise DomainError("in_use", text % {"name": row.name}) from None
    _audit(actor, "identity_provider.remove", pk, row.slug, reason=reason, before=before)


def save_rule(
    *, rule: SignInRule | None, provider: IdentityProvider, claim: str, value: str, role: str, actor: str, by: int,
    tenant: Tenant | None = None, version: int | None = None,
) -> SignInRule:  # fmt: skip
    """It holds at once for all whom the provider has vouched for; what a crash leaves over, the next check does."""
    row = _saved_rule(rule, provider, claim, value, role, tenant, actor, by, version)
    give_roles_to_all(provider=provider)
    return row


@transaction.atomic
def _saved_rule(
    rule: SignInRule | None, provider: IdentityProvider, claim: str, value: str, role: str, tenant: Tenant | None,
    actor: str, by: int, version: int | None,
) -> SignInRule:  # fmt: skip
    row = lock_row(SignInRule, rule.pk) if rule is not None else SignInRule()
    if rule is not None:
        check_version(row, version)
    before = _rule_of(row) if rule is not None else None
    row.provider, row.claim, row.value, row.role = provider, claim.strip(), value.strip(), role
    row.tenant = tenant if role in TENANT_ROLES else None
    if role in TENANT_ROLES and tenant is None:
        raise DomainError.for_field("/tenant", _("A role in a tenant needs the tenant."), code="unknown_tenant")
    row.edited_by_id, row.version = by, row.version + (1 if rule is not None else 0)
    check_fields(row)
    try:
        with transaction.atomic():
            row.save()
    except IntegrityError:
        raise DomainError.for_field("/value", _("There is such a rule already.")) from None
    _audit(actor, "sign_in_rule.save", row.pk, str(row), before=before, after=_rule_of(row), tenant=row.tenant_id)
    return row


def remove_rule(*, rule: SignInRule, actor: str, reason: str, version: int | None = None) -> None:
    with transaction.atomic():
        row = lock_row(SignInRule, rule.pk)
        check_version(row, version)
        pk, before, provider = row.pk, _rule_of(row), row.provider
        row.delete()
        _audit(actor, "sign_in_rule.remove", pk, str(rule), reason=reason, before=before, tenant=row.tenant_id)
    give_roles_to_all(provider=provider)


def save_settings(
    *, local_accounts: bool, break_glass: User | None, mfa_roles: Sequence[str], actor: str, reason: str = "",
    version: int | None = None,
) -> SignInSettings:  # fmt: skip
    """Without local accounts, a provider has to be there, and an admin who can come in when it is down."""
    with transaction.atomic():
        row = SignInSettings.objects.select_for_update().first() or SignInSettings(pk=1)
        check_version(row, version)
        if not local_accounts and not IdentityProvider.objects.filter(enabled=True).exists():
            raise DomainError.for_field("/local_accounts", _("Add a provider first: otherwise nobody could sign in."))
        if not local_accounts and (
            break_glass is None or not break_glass_candidates().filter(pk=break_glass.pk).exists()
        ):
            text = _("Choose a platform admin with a password: who comes in when the provider is down.")
            raise DomainError.for_field("/break_glass", text)
        before = _settings_of(row)
        row.local_accounts, row.break_glass = local_accounts, break_glass
        row.mfa_roles = [role for role in RuleRole.values if role in mfa_roles]
        row.version += 1
        row.save()
        _audit(actor, "sign_in.settings", row.pk, "sign-in", reason=reason, before=before, after=_settings_of(row))
    return row


def _audit(actor: str, action: str, pk: object, label: str, *, tenant: int | None = None, **facts: Any) -> None:
    audit.append(
        chain=audit.PLATFORM_CHAIN, actor=actor, action=action, object_type=action.partition(".")[0], object_id=pk,
        object_label=label, tenant_ids=[tenant] if tenant else [], **facts,
    )  # fmt: skip


def _facts_of(row: IdentityProvider) -> dict[str, Any]:
    return {name: getattr(row, name) for name in ("slug", "name", "issuer", "client_id", "scopes", "enabled")}


def _rule_of(row: SignInRule) -> dict[str, Any]:
    facts = {name: getattr(row, name) for name in ("claim", "value", "role")}
    return facts | {"provider": row.provider.slug, "tenant": row.tenant.slug if row.tenant else None}


def _settings_of(row: SignInSettings) -> dict[str, Any]:
    holder = row.break_glass.username if row.break_glass else None
    return {"local_accounts": row.local_accounts, "break_glass": holder, "mfa_roles": list(row.mfa_roles)}
