"""People whom a provider vouches for: their accounts, their roles by the rules, and the check that they still hold."""

import datetime as dt
import logging
import re
from collections.abc import Mapping
from typing import Any

from allauth.socialaccount.models import SocialAccount
from django.db import transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import Coalesce
from django.utils import timezone

from tidesched_web.accounts.identity_selectors import (
    claims_wanted_of,
    identities_due,
    oidc_client,
    outcome,
    roles_held,
    sign_in_rules,
)
from tidesched_web.accounts.models import Identity, IdentityProvider, PlatformRole, SignInRule, Tenant, User
from tidesched_web.accounts.oidc import NotVouched, OidcClient, ProviderDown, ProviderFails
from tidesched_web.accounts.selectors import memberships_by_tenant
from tidesched_web.accounts.services.memberships import remove_membership, set_membership
from tidesched_web.accounts.services.users import create_user, update_user
from tidesched_web.accounts.sign_in_rules import Roles, roles_of
from tidesched_web.audit import services as audit
from tidesched_web.common.actors import SYSTEM
from tidesched_web.common.encryption import decrypt, encrypt, known_key_ids
from tidesched_web.common.errors import DomainError
from tidesched_web.common.locking import lock_row

_NOT_IN_NAMES = re.compile(r"[^\w.@+-]+")
MOST_NAMES = 50
# Who is not answered for so long is signed out.
UNANSWERED = dt.timedelta(days=1)
_log = logging.getLogger(__name__)


@transaction.atomic
def new_account(*, provider: IdentityProvider, claims: Mapping[str, Any], account: SocialAccount) -> User:
    """Named as the provider names the person, with a number behind it where that is another account's name."""
    wanted = str(claims.get("preferred_username") or claims.get("email") or claims.get("name") or provider.slug)
    wanted = _NOT_IN_NAMES.sub("-", wanted).strip("-")[:120] or provider.slug
    for number in range(1, MOST_NAMES):
        name = wanted if number == 1 else f"{wanted}-{number}"
        try:
            with transaction.atomic():
                user = create_user(username=name, password=None, actor=SYSTEM)
        except DomainError as error:
            if error.code in ("already_exists", "misleading_name"):
                continue
            raise
        user.issuer, user.subject = provider.issuer, str(claims["sub"])[:255]
        user.first_name, user.last_name = _text(claims, "given_name"), _text(claims, "family_name")
        user.email = _text(claims, "email")
        user.save(update_fields=["issuer", "subject", "first_name", "last_name", "email"])
        account.user = user
        account.save()
        return user
    raise DomainError("conflict", f"There are {MOST_NAMES} accounts named {wanted!r} already.")


@transaction.atomic
def vouched_for(*, user: User, provider: IdentityProvider, claims: Mapping[str, Any], refresh_token: str) -> None:
    """At a sign-in: keep what was said and the token to ask again, and give the roles of it."""
    sealed, key = encrypt(refresh_token.encode())
    now = timezone.now()
    facts = {
        "provider": provider, "claims": _kept(claims), "refresh_token": sealed, "refresh_key_id": key,
        "checked_at": now, "vouched_at": now, "ended_at": None,
    }  # fmt: skip
    identity, _made = Identity.objects.update_or_create(user=user, defaults=facts)
    give_roles(identity=identity)


@transaction.atomic
def give_roles(*, identity: Identity) -> None:
    """What the rules give and no longer give; roles that a person gave by hand stay."""
    identity = Identity.objects.select_for_update(of=("self",)).select_related("provider").get(pk=identity.pk)
    rules = sign_in_rules().filter(provider=identity.provider_id)
    wanted = Roles() if identity.ended_at else roles_of(identity.claims, rules)
    # All that may be locked, before the first entry of the audit log.
    admins = Q(platform_role=PlatformRole.ADMIN, is_active=True)
    people = User.objects.filter(admins | Q(pk=identity.user_id)).order_by("pk").select_for_update(no_key=True)
    user = next(one for one in people if one.pk == identity.user_id)
    concerned = {*map(int, identity.given.get("tenants", {})), *wanted.tenants}
    list(Tenant.objects.filter(pk__in=concerned).order_by("pk").select_for_update(no_key=True))
    rows = memberships_by_tenant(user)
    now = Roles(user.platform_role, {tenant: row.role for tenant, row in rows.items()})
    then, given = outcome(now, identity.given, wanted)
    reason = f"the rules of sign-in by {identity.provider.slug}"
    if then.platform != now.platform:
        rule = wanted.platform_rule
        try:
            update_user(
                user=user, actor=SYSTEM, platform_role=then.platform, reason=_why(reason, rule),
                by=rule.edited_by_id if rule else None,
            )  # fmt: skip
        except DomainError as error:
            _log.error("%s keeps the platform role %s: %s", user, now.platform, error.message)
            given["platform_role"] = now.platform
    for tenant in sorted(then.tenants.keys() | rows.keys()):
        role, rule = then.tenants.get(tenant), wanted.tenant_rules.get(tenant)
        if role is None:
            remove_membership(membership=rows[tenant], actor=SYSTEM, reason=_why(reason, rule))
        elif role != now.tenants.get(tenant):
            set_membership(
                user=user, tenant=Tenant.objects.get(pk=tenant), role=role, actor=SYSTEM, reason=_why(reason, rule),
                by=rule.edited_by_id if rule else None,
            )  # fmt: skip
    if given != identity.given:
        Identity.objects.filter(pk=identity.pk).update(given=given)


def give_roles_to_all(*, provider: IdentityProvider) -> None:
    """Of thousands few change: they are found first."""
    rules = list(sign_in_rules().filter(provider=provider))
    known = list(Identity.objects.filter(provider=provider, ended_at__isnull=True).select_related("user"))
    held = roles_held([identity.user_id for identity in known])
    for identity in known:
        now = Roles(identity.user.platform_role, held.get(identity.user_id, {}))
        then, given = outcome(now, identity.given, roles_of(identity.claims, rules))
        if given != identity.given or (then.platform, then.tenants) != (now.platform, now.tenants):
            give_roles(identity=identity)


def end_all(*, provider: IdentityProvider, why: str) -> None:
    for identity in Identity.objects.filter(provider=provider, ended_at__isnull=True).select_related("provider"):
        end(identity=identity, why=why)


def check_due() -> int:
    """Ask the providers again. The roles of who gets no answer stay for a day."""
    asked, down = 0, set[int]()
    clients: dict[int, OidcClient] = {}
    for identity in identities_due():
        provider, before = identity.provider, identity.checked_at
        if provider.pk in down or not _taken(identity):
            continue
        asked += 1
        try:
            if provider.pk not in clients:
                clients[provider.pk] = oidc_client(provider)
            claims = _asked_again(identity, clients[provider.pk])
        except NotVouched as error:
            end(identity=identity, why=str(error))
        except (ProviderFails, DomainError) as error:
            _fails(provider, str(error))
            if timezone.now() - identity.vouched_at > UNANSWERED:
                end(identity=identity, why="the provider has not answered for a day")
            elif isinstance(error, ProviderDown):  # so are all others; they are asked when it is back
                down.add(provider.pk)
                _same(identity).update(checked_at=before)
        else:
            IdentityProvider.objects.filter(pk=provider.pk).exclude(failing_since=None).update(failing_since=None)
            if _same(identity).update(claims=_kept(claims), vouched_at=timezone.now()):
                give_roles(identity=identity)
    return asked


def _asked_again(identity: Identity, client: OidcClient) -> Mapping[str, Any]:
    """Only a refused token or another person is a no: an answer that does not hold is a fault of the provider."""
    token = decrypt(bytes(identity.refresh_token or b""), identity.refresh_key_id).decode()
    answer = client.refreshed(token)
    if fresh := answer.get("refresh_token"):
        sealed, key = encrypt(str(fresh).encode())
        _same(identity).update(refresh_token=sealed, refresh_key_id=key)
    try:
        claims = client.claims(answer, wanted=claims_wanted_of(identity.provider.slug))
    except NotVouched as error:
        raise ProviderFails(str(error)) from None
    if str(claims["sub"]) != identity.user.subject:
        raise NotVouched("the answer is about another subject")
    return claims


@transaction.atomic
def end(*, identity: Identity, why: str) -> None:
    """The roles that the rules gave go, and every session: each depends on the password, which nobody knows."""
    if not _same(identity).update(ended_at=timezone.now(), refresh_token=None, refresh_key_id=""):
        return  # the person has signed in again meanwhile
    user = lock_row(User, identity.user_id)
    user.set_unusable_password()
    user.save(update_fields=["password"])
    give_roles(identity=identity)
    audit.append(
        chain=audit.PLATFORM_CHAIN,
        actor=SYSTEM,
        action="user.no_longer_vouched",
        object_type="user",
        object_id=user.pk,
        object_label=user.username,
        after={"provider": identity.provider.slug, "said": why[:300]},
    )


def seal_secrets_anew() -> int:
    """With the first key; how many secrets there were to do."""
    first, done = known_key_ids()[0], 0
    for model, secret, key in (
        (IdentityProvider, "secret", "secret_key_id"),
        (Identity, "refresh_token", "refresh_key_id"),
    ):
        for row in model.objects.exclude(**{f"{key}__in": ["", first]}).order_by("pk"):
            sealed, key_id = encrypt(decrypt(bytes(getattr(row, secret) or b""), getattr(row, key)))
            # Not where it was written meanwhile.
            same = model.objects.filter(pk=row.pk, **{key: getattr(row, key)})
            done += same.update(**{secret: sealed, key: key_id})
    return done


def _same(identity: Identity) -> QuerySet[Identity]:
    """The row, as long as nobody else has asked and the person has not signed in again."""
    return Identity.objects.filter(pk=identity.pk, checked_at=identity.checked_at, ended_at__isnull=True)


def _taken(identity: Identity) -> bool:
    """A refresh token is good for once: of two runs at the same moment, one asks."""
    now = timezone.now()
    taken = _same(identity).update(checked_at=now)
    identity.checked_at = now
    return bool(taken)


def _fails(provider: IdentityProvider, text: str) -> None:
    _log.warning("the people of %s cannot be checked: %s", provider.slug, text)
    row = IdentityProvider.objects.filter(pk=provider.pk)
    row.update(failure=text[:300], failing_since=Coalesce("failing_since", timezone.now()))


def _kept(claims: Mapping[str, Any]) -> dict[str, Any]:
    """Without what changes with each token."""
    return {
        name: value
        for name, value in claims.items()
        if name not in ("exp", "iat", "nbf", "at_hash", "c_hash", "nonce", "jti")
    }


def _text(claims: Mapping[str, Any], name: str) -> str:
    return str(claims.get(name) or "").replace("\0", "")[:150]


def _why(reason: str, rule: SignInRule | None) -> str:
    return f"{reason}: {rule.claim} = {rule.value}" if rule else f"{reason}: none holds any more"
