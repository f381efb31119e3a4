from typing import Any

from allauth.account.forms import LoginForm
from django import forms
from django.utils.translation import gettext_lazy as _

from tidesched_web.common.time_zones import time_zones


class SignInForm(LoginForm):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, label in (("login", _("User name")), ("password", _("Password"))):
            field = self.fields[name]
            field.label, field.help_text = label, ""
            field.widget.attrs = {
                "class": "form-control",
                "autocomplete": "username" if name == "login" else "current-password",
            }
        self.fields["login"].widget.attrs |= {"autofocus": True, "autocapitalize": "none", "maxlength": "150"}

    def add_prefix(self, field_name: str) -> str:
        return super().add_prefix("username" if field_name == "login" else field_name)


class PasswordForm(forms.Form):
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

    end_tokens = forms.BooleanField(
        label=_("Revoke my API tokens too"),
        required=False,
        help_text=_("Choose this if another person may know the present password."),
        widget=forms.CheckboxInput(attrs={"class": "form-check-input"}),
    )

    def clean(self) -> dict[str, Any]:
        values = super().clean() or {}
        if values.get("new_password") and values.get("repeated") and values["new_password"] != values["repeated"]:
            self.add_error("repeated", _("This is not the same as above."))
        return values


def _zones() -> list[tuple[str, Any]]:
    return [("", _("that of the browser")), *((name, name) for name in time_zones())]


class ProfileForm(forms.Form):
    language = forms.ChoiceField(
        label=_("Language"),
        required=False,
        choices=[("", _("that of the browser")), ("en", "English"), ("zh-hans", "简体中文")],
        widget=forms.Select(attrs={"class": "form-select"}),
    )
    time_zone = forms.ChoiceField(
        label=_("Time zone"), required=False, choices=_zones, widget=forms.Select(attrs={"class": "form-select"})
    )
