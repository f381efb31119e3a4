from typing import Any

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from tidesched_web.console.forms.edit import EditForm, reason_field

CHECK, APPLY = "check", "apply"
MOST = 200_000


class PolicyForm(EditForm):
    text = forms.CharField(
        label="volcano-scheduler.conf",
        max_length=MOST,
        strip=False,
        widget=forms.Textarea(
            attrs={
                "rows": 24,
                "class": "form-control code",
                "spellcheck": "false",
                "autocomplete": "off",
                "wrap": "off",
            }
        ),
        help_text=_("Actions in order, and tiers of plugins with their arguments, in Volcano's own format."),
    )
    reason = reason_field(required=False)
    act = forms.ChoiceField(choices=[(CHECK, CHECK), (APPLY, APPLY)], widget=forms.HiddenInput, required=False)

    def clean_text(self) -> str:
        """A browser sends line ends of its own; a file ends with one."""
        text = str(self.cleaned_data["text"]).replace("\r\n", "\n").replace("\r", "\n")
        return text if text.endswith("\n") else text + "\n"

    def clean(self) -> dict[str, Any]:
        values = super().clean() or {}
        if values.get("act") == APPLY and not values.get("reason", "").strip():
            self.add_error("reason", gettext("Say why: the reason goes into the audit log."))
        return values
