from collections.abc import Iterable
from operator import attrgetter

from django import forms
from django.db.models import QuerySet
from django.http import HttpResponse, QueryDict
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from tidesched_web.console import amounts
from tidesched_web.console.export import csv_list
from tidesched_web.console.forms.bounded import BoundedFilterForm
from tidesched_web.console.forms.filters import some_or_any
from tidesched_web.console.page import Page, page
from tidesched_web.console.paging import paged
from tidesched_web.quota.models import TideAnswer, TideStep
from tidesched_web.quota.tide_selectors import visible_tide_plans, visible_tide_steps


class TideStepFilter(BoundedFilterForm):
    plan = forms.ChoiceField(label=gettext_lazy("Plan"))
    queue = forms.CharField(label=gettext_lazy("Queue"), max_length=63)
    answer = forms.ChoiceField(label=gettext_lazy("Cluster"), choices=some_or_any(TideAnswer.choices))

    def __init__(self, data: QueryDict, plans: Iterable[str]) -> None:
        self.plans = list(plans)
        super().__init__(data)

    def is_valid(self) -> bool:
        # A choice field, which the type of a form's fields does not say.
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


_COLUMNS = ("card", "before", "after", "wanted", "answer", "message")


@page(section="tide_plans", topics="queues")
def steps(this: Page) -> HttpResponse:
    plans = visible_tide_plans(this.access).filter(cluster=this.cluster).order_by("position", "name")
    form = TideStepFilter(this.request.GET, plans.values_list("name", flat=True))
    rows = form.apply(visible_tide_steps(this.access).filter(cluster=this.cluster))
    if this.request.GET.get("format") == "csv":
        return csv_list(
            f"tide-steps-{this.cluster.slug}",
            {
                "at": lambda row: row.at.isoformat(),
                "since": lambda row: row.since.isoformat() if row.since else "",
                "plans": lambda row: "; ".join(row.plans),
                "layers": lambda row: "; ".join(row.layers),
                "taken_back": lambda row: "; ".join(f"{one['plan']}: {one['layer']}" for one in row.taken_back),
                "taken_back_by": lambda row: "; ".join(one["by"] for one in row.taken_back),
                "queue": lambda row: row.queue.name,
                **{name: attrgetter(name) for name in _COLUMNS},
                "answered_at": lambda row: row.answered_at.isoformat(),
            },
            rows.order_by("-id").iterator(chunk_size=1000),
        )
    found = paged(rows, ("-id",), this.request.GET.get("cursor", ""))
    return this.render("tide/steps.html", {"page": found, "steps": found.rows, "form": form, "line": _line(found.rows)})


def _line(rows: list[TideStep]) -> str:
    if not rows:
        return ""
    refused = sum(row.answer == TideAnswer.REFUSED for row in rows)
    waits = sum(row.answer == TideAnswer.PENDING for row in rows)
    shown = ngettext("%(n)s step", "%(n)s steps", len(rows)) % {"n": amounts.number(len(rows))}
    if not refused and not waits:
        return _("%(steps)s here; the cluster has taken all of them.") % {"steps": shown}
    return _("%(steps)s here; the cluster refused %(refused)s, and %(waits)s have not reached it yet.") % {
        "steps": shown, "refused": amounts.number(refused), "waits": amounts.number(waits)
    }  # fmt: skip
