"""Forms of the account pages: sign-in, password, profile."""

from __future__ import annotations

import zoneinfo
from typing import Any

from django import forms
from django.contrib.auth.forms import AuthenticationForm
from django.utils.translation import gettext_lazy as _


class SignInForm(AuthenticationForm):
    """User name and password."""

    error_messages = {
        "invalid_login": _("User name and password do not belong together. Both distinguish upper and lower case."),
        "inactive": _("This account is switched off."),
    }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for field in self.fields.values():
            field.widget.attrs["class"] = "form-control"
        self.fields["username"].label = _("User name")
        self.fields["password"].label = _("Password")


class PasswordForm(forms.Form):
    """The old password and the new one twice; the service checks its strength."""

    old_password = forms.CharField(
        label=_("Present password"),
        strip=False,
        widget=forms.PasswordInput(attrs={"class": "form-control", "autocomplete": "current-password"}),
    )
    new_password = forms.CharField(
        label=_("New password"),
        strip=False,
        help_text=_("At least ten characters, not a common one, not like your name."),
        widget=forms.PasswordInput(attrs={"class": "form-control", "autocomplete": "new-password"}),
    )
    repeated = forms.CharField(
        label=_("New password again"),
        strip=False,
        widget=forms.PasswordInput(attrs={"class": "form-control", "autocomplete": "new-password"}),
    )

    def clean(self) -> dict[str, Any]:
        """Both new ones must agree."""
        values = super().clean() or {}
        if values.get("new_password") and values.get("repeated") and values["new_password"] != values["repeated"]:
            self.add_error("repeated", _("This is not the same as above."))
        return values


def _zones() -> list[tuple[str, Any]]:
    return [("", _("that of the browser")), *((name, name) for name in sorted(zoneinfo.available_timezones()))]


class ProfileForm(forms.Form):
    """Language and time zone; the appearance belongs to the browser and is set beside."""

    language = forms.ChoiceField(
        label=_("Language"),
        required=False,
        choices=[("", _("that of the browser")), ("en", "English"), ("zh-hans", "简体中文")],
        widget=forms.Select(attrs={"class": "form-select"}),
    )
    time_zone = forms.ChoiceField(
        label=_("Time zone"), required=False, choices=_zones, widget=forms.Select(attrs={"class": "form-select"})
    )
