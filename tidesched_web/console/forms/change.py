import datetime as dt
from collections.abc import Iterator
from typing import Any

from django import forms
from django.db.models import Q, QuerySet
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from tidesched_web.changes.models import ChangeState, QuotaChange
from tidesched_web.common import reader_zone
from tidesched_web.common.calendar_bounds import OutOfCalendar, in_calendar
from tidesched_web.console.forms.filters import FilterForm
from tidesched_web.console.states import LOOKS, SCHEDULED


class ApplyForm(forms.Form):
    reason = forms.CharField(
        label=_("Reason"),
        max_length=1000,
        help_text=_("It is kept in the audit log with your name."),
        widget=forms.Textarea(attrs={"rows": 2, "class": "form-control"}),
        error_messages={"required": _("Say why: the reason goes into the audit log.")},
    )
    when = forms.ChoiceField(
        label=_("When"),
        choices=[("now", _("At once")), ("at", _("At a set time"))],
        initial="now",
        widget=forms.RadioSelect(attrs={"class": "form-check-input"}),
    )
    at = forms.SplitDateTimeField(
        label=_("Date and time"),
        required=False,
        input_date_formats=["%Y-%m-%d"],
        input_time_formats=["%H:%M"],
        error_messages={
            "invalid_date": _("Choose a date and a time, such as 22:00."),
            "invalid_time": _("Choose a date and a time, such as 22:00."),
        },
        # A browser shows its own fields for times by its language, some with am and pm: the time is plain text.
        widget=forms.SplitDateTimeWidget(
            date_format="%Y-%m-%d",
            time_format="%H:%M",
            date_attrs={"type": "date", "class": "form-control", "aria-label": _("Date")},  # type: ignore[dict-item]
            time_attrs={
                "type": "text",
                "class": "form-control num time-24",
                "inputmode": "numeric",
                "maxlength": "5",
                "placeholder": "22:00",
                "pattern": "([01][0-9]|2[0-3]):[0-5][0-9]",
                "autocomplete": "off",
                "aria-label": _("Time, 00:00 to 23:59"),  # type: ignore[dict-item]
            },
        ),
    )

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if cleaned.get("when") == "at" and "at" not in self.errors:
            moment: dt.datetime | None = cleaned.get("at")
            if moment is None or moment <= timezone.now():
                now = reader_zone.named(timezone.now())
                self.add_error("at", gettext("Choose a time that lies ahead: it is %(now)s now.") % {"now": now})
            else:
                try:
                    cleaned["at"] = in_calendar(moment)
                except OutOfCalendar as error:
                    self.add_error("at", str(error))
        elif cleaned.get("when") == "now":
            self.errors.pop("at", None)  # half of a time, left where no time is asked for
        return cleaned


# What is asked for each decision, and what becomes of the answer; without that it has to be given.
_WHY: dict[str, tuple[Promise, Promise | str]] = {
    "reject": (_("Why do you reject it?"), ""),
    "cancel": (_("Why do you cancel it?"), _("Optional. Its author and its readers see it with the change.")),
    "approve": (_("Why do you approve it?"), _("Optional. It is kept with the change and goes into the audit log.")),
}


class DecisionForm(forms.Form):
    reason = forms.CharField(
        max_length=1000,
        widget=forms.Textarea(attrs={"rows": 2, "class": "form-control"}),
        error_messages={"required": _("Say why: the reason goes into the audit log.")},
    )

    def __init__(self, verb: str, data: Any = None) -> None:
        super().__init__(data, prefix=verb)
        field = self.fields["reason"]
        field.label, field.help_text = _WHY[verb]  # type: ignore[assignment]
        field.required = not field.help_text


def _states() -> Iterator[tuple[str, str | Promise]]:
    looks = LOOKS["change"]
    for state in ChangeState.values:
        if state == ChangeState.APPROVED:
            yield SCHEDULED, looks[SCHEDULED].word
        yield state, looks[state].word


class ChangeFilter(FilterForm):
    q = forms.CharField(label=_("Who or why"), max_length=120)
    state = forms.ChoiceField(label=_("State"), choices=[("", _("any")), *_states()])
    open = forms.ChoiceField(label=_("Written"), choices=[("", _("any")), ("yes", _("not written yet"))])

    def apply(self, changes: QuerySet) -> QuerySet:
        if text := self.value("q"):
            changes = changes.filter(Q(created_by__icontains=text) | Q(reason__icontains=text))
        if state := self.value("state"):
            of_state = Q(state=state) & ~QuotaChange.SCHEDULED if state != SCHEDULED else QuotaChange.SCHEDULED
            changes = changes.filter(of_state)
        if self.value("open"):
            changes = changes.filter(state__in=[ChangeState.DRAFT, ChangeState.WAITING, ChangeState.APPROVED])
        return changes
