from django import forms
from django.utils.translation import gettext_lazy as _

PAUSE, RESUME = "pause", "resume"


class PauseForm(forms.Form):
    """A reason, and a box that says "I mean it". ``act`` is what the page asked about, whatever the state is by now."""

    act = forms.ChoiceField(choices=[(PAUSE, PAUSE), (RESUME, RESUME)], widget=forms.HiddenInput)

    reason = forms.CharField(
        label=_("Reason"),
        max_length=500,
        help_text=_("It is kept in the audit log with your name."),
        widget=forms.Textarea(attrs={"rows": 3, "class": "form-control", "aria-describedby": "id_reason_help"}),
        error_messages={"required": _("Say why: the reason goes into the audit log.")},
    )
    confirm = forms.BooleanField(
        label=_("I have read what happens then"),
        widget=forms.CheckboxInput(attrs={"class": "form-check-input"}),
        error_messages={"required": _("Tick this box to go on.")},
    )
