from collections.abc import Iterable

from django import forms
from django.db.models import QuerySet
from django.http import QueryDict
from django.utils.translation import gettext_lazy as _

from tidesched_web.console.forms.bounded import BoundedFilterForm
from tidesched_web.console.forms.filters import some_or_any
from tidesched_web.quota.models import TideAnswer, TideStep


class TideStepFilter(BoundedFilterForm):
    plan = forms.ChoiceField(label=_("Plan"))
    queue = forms.CharField(label=_("Queue"), max_length=63)
    answer = forms.ChoiceField(label=_("Cluster"), choices=some_or_any(TideAnswer.choices))

    def __init__(self, data: QueryDict, plans: Iterable[str]) -> None:
        self.plans = list(plans)
        super().__init__(data)

    def is_valid(self) -> bool:
        self.fields["plan"].choices = some_or_any((name, name) for name in self.plans)  # type: ignore[attr-defined]
        return super().is_valid()

    def apply(self, steps: QuerySet[TideStep]) -> QuerySet[TideStep]:
        if plan := self.value("plan"):
            steps = steps.filter(plans__contains=[plan])
        if queue := self.value("queue"):
            steps = steps.filter(queue__name__icontains=queue)
        if answer := self.value("answer"):
            steps = steps.filter(answer=answer)
        if since := self.moment("from"):
            steps = steps.filter(at__gte=since)
        if until := self.moment("to"):
            steps = steps.filter(at__lt=until)
        return steps
