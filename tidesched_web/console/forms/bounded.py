import datetime as dt
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from tidesched_web.common import reader_zone
from tidesched_web.common.calendar_bounds import OutOfCalendar, in_calendar
from tidesched_web.console.forms.filters import OUT_OF_BOUNDS, FilterForm


class _MomentInput(forms.DateTimeInput):
    input_type = "datetime-local"

    def __init__(self) -> None:
        super().__init__(format="%Y-%m-%dT%H:%M")


class MomentField(forms.DateTimeField):
    widget = _MomentInput

    def to_python(self, value: Any) -> dt.datetime | None:
        found: dt.datetime | None = super().to_python(value)
        try:
            return found and in_calendar(found, value)
        except OutOfCalendar as error:
            raise forms.ValidationError(str(error), code=OUT_OF_BOUNDS) from None


class MomentFilterForm(FilterForm):
    def value(self, name: str) -> str:
        found = self.cleaned_data.get(name)
        if isinstance(found, dt.datetime):
            return reader_zone.to_the_minute(found) + reader_zone.other_zone(found)
        return str(found or "").replace("\0", "")

    def moment(self, name: str) -> dt.datetime | None:
        found = self.cleaned_data.get(name)
        return found if isinstance(found, dt.datetime) else None


class BoundedFilterForm(MomentFilterForm):
    def is_valid(self) -> bool:
        """Add the bounds first: `from` is a word of Python's and cannot be declared."""
        if "from" not in self.fields:
            zone = {"zone": reader_zone.zone_name()}
            for name, label in (("from", _("From (%(zone)s)")), ("to", _("To (%(zone)s)"))):
                self.fields[name] = MomentField(label=label % zone, required=False)
                self.fields[name].widget.attrs["class"] = "form-control"
        return super().is_valid()
