from django import forms
from django.utils.translation import gettext_lazy as _

from tidesched_web.common import reader_zone
from tidesched_web.common.models import ServiceType
from tidesched_web.console.forms.bounded import MomentField, MomentFilterForm
from tidesched_web.console.forms.filters import CardFilterForm, some_or_any
from tidesched_web.quota.models import Queue

OTHER = "other"
BADGES = [("", _("any")), ("over", _("over-committed")), ("starved", _("starved")), ("unused", _("unused"))]


class QuotaAtFilter(MomentFilterForm, CardFilterForm):
    at = MomentField()
    q = forms.CharField(label=_("Queue"), max_length=63)
    card = forms.ChoiceField(label=_("Card type"))
    figures = forms.ChoiceField(label=_("Figures"), choices=[("", _("all")), (OTHER, _("another than the base"))])
    service_type = forms.ChoiceField(label=_("Service type"), choices=some_or_any(ServiceType.choices))

    def is_valid(self) -> bool:
        self.fields["at"].label = _("At (%(zone)s)") % {"zone": reader_zone.zone_name()}
        return super().is_valid()

    def matches(self, queue: Queue) -> bool:
        asked = self.value("service_type")
        return self.value("q").casefold() in queue.name.casefold() and asked in ("", queue.service_type)

    def keeps(self, card: str, *, differs: bool) -> bool:
        return self.value("card") in ("", card) and (differs or self.value("figures") != OTHER)


class TreeFilter(CardFilterForm):
    q = forms.CharField(label=_("Name"), max_length=120)
    service_type = forms.ChoiceField(label=_("Service type"), choices=[("", _("any")), *ServiceType.choices])
    card = forms.ChoiceField(label=_("Card type"))
    badge = forms.ChoiceField(label=_("Badge"), choices=BADGES)
