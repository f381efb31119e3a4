from collections.abc import Iterable, Mapping
from typing import Any

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from tidesched_web.accounts.models import ApiToken, PlatformRole, Tenant, TenantRole, TokenState
from tidesched_web.changes.models import QuotaChange
from tidesched_web.common.card_names import card_label
from tidesched_web.common.sentences import listed
from tidesched_web.console import amounts
from tidesched_web.console.rights import limit_of, limit_of_change
from tidesched_web.console.templatetags.figures import gib
from tidesched_web.console.templatetags.looks import icon
from tidesched_web.quota.dependent_selectors import Dependents

register = template.Library()


@register.inclusion_tag("components/who_may.html", takes_context=True)
def who_may(context: Mapping[str, Any], what: str, of: Tenant | QuotaChange | None = None) -> dict[str, Any]:
    access = context["access"]
    return {"limit": limit_of_change(access, of) if isinstance(of, QuotaChange) else limit_of(access, what, of)}


@register.simple_tag
def dependents(group: Dependents) -> str:
    n = group.count
    words = {
        "queue": ngettext("%(n)s queue", "%(n)s queues", n),
        "project": ngettext("%(n)s project", "%(n)s projects", n),
        "business_line": ngettext("%(n)s business line", "%(n)s business lines", n),
        "member": ngettext("%(n)s member", "%(n)s members", n),
        "token": ngettext("%(n)s token", "%(n)s tokens", n),
        "quota": ngettext("%(n)s quota figure", "%(n)s quota figures", n),
        "grant": ngettext("%(n)s namespace grant", "%(n)s namespace grants", n),
        "slice": ngettext("%(n)s slice of it", "%(n)s slices of it", n),
        "tenant": ngettext("quota of %(n)s tenant", "quota of %(n)s tenants", n),
        "gang": ngettext("%(n)s gang", "%(n)s gangs", n),
    }
    return words[group.kind] % {"n": amounts.number(n)}


@register.filter
def shown_names(group: Dependents) -> str:
    names: Iterable[str] = group.names
    if group.kind == "quota":
        names = (f"{count} × {card_label(card)}" for card, _colon, count in (name.rpartition(": ") for name in names))
    elif group.kind == "slice":
        names = map(card_label, names)
    return listed(names)


@register.filter
def in_gib(value: int | None) -> str | SafeString:
    return gib(None if value is None else value // 2**20)


_ROLES = {TenantRole.ADMIN: ("shield-check", "admitted"), TenantRole.MEMBER: ("users", "quiet")}
_PLATFORM = {PlatformRole.ADMIN: ("shield-check", "admitted"), PlatformRole.AUDITOR: ("eye", "quiet")}


_TOKENS = {
    TokenState.LIVE: ("check", "good"),
    TokenState.EXPIRED: ("clock", "quiet"),
    TokenState.REVOKED: ("x", "quiet"),
    TokenState.ACCOUNT_OFF: ("ban", "failed"),
}


def _badge(tone: str, symbol: str, word: object) -> SafeString:
    return format_html('<span class="state tone-{}">{}{}</span>', tone, icon(symbol), word)


@register.simple_tag
def tenant_role(value: str) -> SafeString:
    symbol, tone = _ROLES[TenantRole(value)]
    return _badge(tone, symbol, TenantRole(value).label)


@register.simple_tag
def platform_role(value: str) -> SafeString | str:
    if not value:
        return format_html('<span class="text-secondary">{}</span>', _("none"))
    symbol, tone = _PLATFORM[PlatformRole(value)]
    return _badge(tone, symbol, PlatformRole(value).label)


@register.simple_tag
def account_state(user: object) -> SafeString:
    if not getattr(user, "is_active", False):
        return _badge("failed", "ban", _("Switched off"))
    if getattr(user, "has_usable_password", bool)():
        return _badge("good", "check", _("Active"))
    if getattr(user, "issuer", ""):
        return _badge("good", "key", _("Single sign-on"))
    if getattr(user, "invited", False):
        return _badge("waiting", "clock", _("Invited"))
    return _badge("quiet", "key", _("Tokens only"))


@register.simple_tag
def token_state(token: ApiToken) -> SafeString:
    state = TokenState(token.state)
    symbol, tone = _TOKENS[state]
    return _badge(tone, symbol, state.label)
