from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from tidesched_web.console.forms.edit import EditForm, reason_field


def _percent_field(label: Any) -> forms.IntegerField:
    return forms.IntegerField(
        label=label, min_value=0, max_value=10_000, help_text=_("Of the hardware, in percent; 100 is all of it.")
    )


class RulesForm(EditForm):
    overcommit_inference_percent = _percent_field(_("Inference may be promised"))
    overcommit_training_percent = _percent_field(_("Training may be promised"))
    approval_required = forms.BooleanField(
        label=_("A second person approves each change of quota"),
        required=False,
        help_text=_("An author cannot approve a change of their own."),
    )
    reason = reason_field()

    def document(self) -> dict[str, Any]:
        names = ("overcommit_inference_percent", "overcommit_training_percent", "approval_required")
        return {name: self.cleaned_data[name] for name in names}
