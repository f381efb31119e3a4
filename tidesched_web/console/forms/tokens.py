from collections.abc import Iterable
from typing import Any

from django import forms
from django.db.models import Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from tidesched_web.accounts.models import SCOPE_WORDS, Scope, Tenant, TokenState
from tidesched_web.accounts.tokens import parse_lifetime
from tidesched_web.console.forms.edit import EditForm
from tidesched_web.console.forms.filters import FilterForm

LIVES = [
    ("7d", _("7 days")),
    ("30d", _("30 days")),
    ("90d", _("90 days")),
    ("365d", _("a year")),
    ("", _("without end")),
]


class TokenForm(EditForm):
    pointers = {"expires_at": "expires"}

    name = forms.CharField(
        label=_("Name"),
        max_length=120,
        help_text=_("What uses it, for instance the platform and its machine."),
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    scopes = forms.MultipleChoiceField(
        label=_("What it may do"),
        choices=list(Scope.choices),
        widget=forms.CheckboxSelectMultiple,
        error_messages={"required": _("Choose at least one.")},
    )
    expires = forms.ChoiceField(label=_("It works for"), required=False, choices=LIVES, initial="90d")
    tenant = forms.ChoiceField(
        label=_("Tenant"), required=False, help_text=_("A token for one tenant sees nothing of the others.")
    )

    def __init__(self, *args: Any, tenants: Iterable[Tenant], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.tenants = {tenant.slug: tenant for tenant in tenants}
        named = [(slug, f"{tenant.name} ({slug})") for slug, tenant in self.tenants.items()]
        self.fields["tenant"].choices = [("", _("all that you see")), *named]  # type: ignore[attr-defined]
        self.fields["scopes"].widget.attrs["class"] = "form-check-input"

    def scope_rows(self) -> list[tuple[forms.BoundField, Any]]:
        boxes: Any = self["scopes"]
        return [(box, gettext(SCOPE_WORDS[Scope(box.data["value"])])) for box in boxes]

    def values(self) -> dict[str, Any]:
        found = super().values()
        life = found.pop("expires")
        return found | {
            "expires_at": timezone.now() + parse_lifetime(life) if life else None,
            "tenant": self.tenants.get(found["tenant"]),
        }


class TokenFilter(FilterForm):
    q = forms.CharField(label=_("User or name"), max_length=63)
    state = forms.ChoiceField(label=_("State"), choices=[("", _("any")), *TokenState.choices])

    def apply(self, tokens: QuerySet[Any]) -> QuerySet[Any]:
        if text := self.value("q").replace("\0", ""):
            tokens = tokens.filter(Q(user__username__icontains=text) | Q(name__icontains=text))
        now = timezone.now()
        ended, open_end = Q(expires_at__lte=now), Q(revoked_at__isnull=True)
        by_state = {
            TokenState.REVOKED: Q(revoked_at__isnull=False),
            TokenState.EXPIRED: open_end & ended,
            TokenState.ACCOUNT_OFF: open_end & ~ended & Q(user__is_active=False),
            TokenState.LIVE: open_end & (Q(expires_at__isnull=True) | Q(expires_at__gt=now)) & Q(user__is_active=True),
        }
        wanted = by_state.get(TokenState(self.value("state"))) if self.value("state") else None
        return tokens if wanted is None else tokens.filter(wanted)
