"""Filters with bounds of time under the names that the REST API gives them: `from` and `to`."""

from __future__ import annotations

import datetime as dt
from typing import Any

from django import forms
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from tidesched_web.console.forms.filters import FilterForm


class _Moment(forms.DateTimeInput):
    input_type = "datetime-local"

    def __init__(self) -> None:
        super().__init__(format="%Y-%m-%dT%H:%M")


class _Bound(forms.DateTimeField):
    """A moment that every zone can name: in UTC the first and the last year leave no room for a zone's hours."""

    def to_python(self, value: Any) -> dt.datetime | None:
        found: dt.datetime | None = super().to_python(value)
        try:
            found = found and found.astimezone(dt.UTC)
        except OverflowError:
            raise forms.ValidationError(self.error_messages["invalid"], code="invalid") from None
        if found is not None and not dt.MINYEAR < found.year < dt.MAXYEAR:
            raise forms.ValidationError(self.error_messages["invalid"], code="invalid")
        return found


class BoundedFilterForm(FilterForm):
    """A filter form that ends with `from` and `to`, read and shown in the reader's zone."""

    def is_valid(self) -> bool:
        """Add the bounds first: `from` is a word of Python's and cannot be declared."""
        if "from" not in self.fields:
            for name, label in (("from", _("From")), ("to", _("To"))):
                self.fields[name] = _Bound(widget=_Moment(), label=label, required=False)
                self.fields[name].widget.attrs["class"] = "form-control"
        return super().is_valid()

    def value(self, name: str) -> str:
        """A moment as the reader reads it."""
        found = self.cleaned_data.get(name)
        if isinstance(found, dt.datetime):
            return timezone.localtime(found).strftime("%Y-%m-%d %H:%M")
        return str(found or "").replace("\0", "")

    def moment(self, name: str) -> dt.datetime | None:
        """A bound of time, with its zone."""
        found = self.cleaned_data.get(name)
        return found if isinstance(found, dt.datetime) else None
