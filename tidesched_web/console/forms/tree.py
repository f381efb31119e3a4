from django import forms
from django.utils.translation import gettext_lazy as _

from tidesched_web.common.models import ServiceType
from tidesched_web.console.forms.filters import CardFilterForm

BADGES = [
    ("", _("any")),
    ("over", _("over-committed")),
    ("starved", _("starved")),
    ("unused", _("unused")),
]


class TreeFilter(CardFilterForm):
    q = forms.CharField(label=_("Name"), max_length=120)
    service_type = forms.ChoiceField(label=_("Service type"), choices=[("", _("any")), *ServiceType.choices])
    card = forms.ChoiceField(label=_("Card type"))
    badge = forms.ChoiceField(label=_("Badge"), choices=BADGES)
