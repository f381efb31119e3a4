from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from tidesched_web.accounts.identity_selectors import break_glass_candidates
from tidesched_web.accounts.models import TENANT_ROLES, IdentityProvider, RuleRole
from tidesched_web.console.forms.edit import EditForm, reason_field


class ProviderForm(EditForm):
    name = forms.CharField(
        label=_("Name"), max_length=80, help_text=_("As the sign-in page calls it: “Continue with …”.")
    )
    slug = forms.SlugField(
        label=_("Name in addresses"),
        max_length=40,
        help_text=_("Part of the redirect address that the provider has to know."),
    )
    issuer = forms.URLField(
        label=_("Issuer"),
        max_length=500,
        assume_scheme="https",
        help_text=_("The address below which /.well-known/openid-configuration is."),
        widget=forms.URLInput(attrs={"spellcheck": "false"}),
    )
    client_id = forms.CharField(label=_("Client ID"), max_length=255)
    secret = forms.CharField(
        label=_("Client secret"),
        max_length=500,
        required=False,
        strip=True,
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
    )
    scopes = forms.CharField(
        label=_("Scopes"),
        max_length=255,
        initial=IdentityProvider._meta.get_field("scopes").default,
        help_text=_("Without offline_access nobody signs in; leave out others that the provider does not know."),
    )
    enabled = forms.BooleanField(label=_("People can sign in through it"), required=False, initial=True)

    def __init__(self, *args: Any, known: IdentityProvider | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if known is not None:
            del self.fields["slug"]
            self.fields["secret"].help_text = _("Empty: the secret that is kept stays.")

    def clean_scopes(self) -> str:
        scopes = self.cleaned_data["scopes"].split()
        if "openid" not in scopes:
            raise forms.ValidationError(_("The scope openid is missing: without it this is no sign-in."))
        return " ".join(scopes)


class RuleForm(EditForm):
    provider: forms.ModelChoiceField[Any] = forms.ModelChoiceField(
        label=_("Provider"), queryset=None, to_field_name="slug", empty_label=None
    )
    claim = forms.CharField(
        label=_("Claim"),
        max_length=120,
        initial="groups",
        help_text=_("One inside another with a dot: realm_access.roles."),
    )
    value = forms.CharField(
        label=_("Has the value"), max_length=255, help_text=_("Exactly; where the claim is a list, one of it.")
    )
    role = forms.ChoiceField(label=_("Gets the role"), choices=RuleRole.choices)
    tenant: forms.ModelChoiceField[Any] = forms.ModelChoiceField(
        label=_("In the tenant"),
        queryset=None,
        to_field_name="slug",
        required=False,
        empty_label=_("none: a role on the platform"),
    )

    def __init__(self, *args: Any, providers: Any, tenants: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["provider"].queryset = providers  # type: ignore[attr-defined]  # a ModelChoiceField
        self.fields["tenant"].queryset = tenants  # type: ignore[attr-defined]  # as above

    def clean(self) -> dict[str, Any]:
        values = super().clean() or {}
        of_tenant = values.get("role") in TENANT_ROLES
        if of_tenant and not values.get("tenant") and "tenant" not in self.errors:
            self.add_error("tenant", _("A role in a tenant needs the tenant."))
        if values.get("role") and not of_tenant and values.get("tenant"):
            self.add_error("tenant", _("A role on the platform is in no tenant."))
        return values


class SignInSettingsForm(EditForm):
    mfa_roles = forms.MultipleChoiceField(
        label=_("Two-step sign-in is demanded of"),
        choices=RuleRole.choices,
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text=_("Who has such a role and no second step yet, sets one up before anything else."),
    )
    local_accounts = forms.BooleanField(
        label=_("Accounts with a password can sign in"),
        required=False,
        help_text=_("Switched off, only the break-glass account can. Open sessions of the others end."),
    )
    break_glass: forms.ModelChoiceField[Any] = forms.ModelChoiceField(
        label=_("Break-glass account"),
        queryset=None,
        to_field_name="username",
        required=False,
        empty_label=_("none"),
        help_text=_(
            "A platform admin with a password, for the day on which no provider answers. Each use is an alert."
        ),
    )
    reason = reason_field(required=False)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["break_glass"].queryset = break_glass_candidates()  # type: ignore[attr-defined]  # as above
        self.fields["mfa_roles"].widget.attrs["class"] = "form-check-input"
