import datetime as dt
from collections.abc import Iterable

from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext as _

from tidesched_web.accounts.models import ApiToken, Scope, Tenant, User
from tidesched_web.accounts.tokens import PREFIX_LENGTH, new_token, parse_scopes, token_hash
from tidesched_web.audit import services as audit
from tidesched_web.common.errors import DomainError, require_room

# A token in steady use writes its time of use at most this often.
LAST_USED_STEP = dt.timedelta(minutes=1)


@transaction.atomic
def create_token(
    *,
    user: User,
    scopes: Iterable[str],
    actor: str,
    name: str = "",
    expires_at: dt.datetime | None = None,
    tenant: Tenant | None = None,
    through: ApiToken | None = None,
) -> tuple[ApiToken, str]:
    """A token made ``through`` another has no scope that it lacks, and ends when it does at the latest."""
    wanted = parse_scopes(scopes)
    if through is not None:
        expires_at = _within(through, wanted, expires_at)
    if expires_at is not None and expires_at <= timezone.now():
        raise DomainError.for_field("/expires_at", "A token cannot expire in the past.")
    if tenant is not None and not user.sees_everything and not user.memberships.filter(tenant=tenant).exists():
        raise DomainError.for_field(
            "/tenant", f"{user.username} is not a member of {tenant.slug}.", code="unknown_tenant"
        )
    _require_room(user)
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


def _require_room(user: User) -> None:
    now, own = timezone.now(), ApiToken.objects.filter(user=user)
    require_room(
        own.filter(ApiToken.LIVE).exclude(expires_at__lte=now),
        settings.KEPT_TOKENS,
        _("This account has %(limit)d live tokens, the most that it may: revoke one that is not used any more."),
    )


def _within(through: ApiToken, wanted: list[str], expires_at: dt.datetime | None) -> dt.datetime | None:
    more = [] if Scope.ADMIN in through.scopes else sorted(set(wanted).difference(through.scopes))
    if more:
        text = f"This token has no scope {more[0]}, and so makes none that has."
        raise DomainError.for_field("/scopes", text, code="missing_scope")
    end = through.expires_at
    if end is not None and expires_at is not None and expires_at > end:
        text = f"This token ends at {end:%Y-%m-%dT%H:%M:%SZ}, and so does what it makes, at the latest."
        raise DomainError.for_field("/expires", text)
    return end if expires_at is None else expires_at


@transaction.atomic
def revoke_token(*, token: ApiToken, actor: str, reason: str = "") -> bool:
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


def end_all_tokens(user: User) -> int:
    """End every live token of an account, in the caller's transaction, whose audit entry names their number."""
    return ApiToken.objects.filter(ApiToken.LIVE, user=user).update(revoked_at=timezone.now())


def note_token_use(token: ApiToken) -> None:
    """Remember that a token was used; a steady caller costs one write a minute, not one a request."""
    now = timezone.now()
    if token.last_used_at is not None and now - token.last_used_at < LAST_USED_STEP:
        return
    stale = Q(last_used_at__isnull=True) | Q(last_used_at__lt=now - LAST_USED_STEP)
    ApiToken.objects.filter(stale, pk=token.pk).update(last_used_at=now)
