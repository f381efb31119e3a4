from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.formats import number_format
from django.utils.translation import gettext as _

from tidesched_web.common.hints import cut

# So much of what was typed is repeated.
MOST_SHOWN = 40


def number_words(field: forms.IntegerField, label: str, typed: object) -> str:
    said = {"field": label, "rule": _rule(field), "value": cut(str(typed), MOST_SHOWN)}
    if typed in (None, ""):
        return _("%(field)s has to be %(rule)s; it is empty.") % said
    return _("%(field)s has to be %(rule)s; “%(value)s” is not.") % said


def _rule(field: forms.IntegerField) -> str:
    whole = not isinstance(field, forms.FloatField | forms.DecimalField)
    least, most = (bound() if callable(bound) else bound for bound in (field.min_value, field.max_value))
    bounds = {"least": _written(least), "most": _written(most)}
    if least is not None and most is not None:
        said = _("a whole number from %(least)s to %(most)s") if whole else _("a number from %(least)s to %(most)s")
    elif least is not None:
        said = _("a whole number of at least %(least)s") if whole else _("a number of at least %(least)s")
    elif most is not None:
        said = _("a whole number of at most %(most)s") if whole else _("a number of at most %(most)s")
    else:
        said = _("a whole number") if whole else _("a number")
    said %= bounds
    places = getattr(field, "decimal_places", None)
    if places is None:
        return said
    return _("%(number)s with at most %(places)s places after the point") % {"number": said, "places": places}


def _written(bound: float | None) -> str:
    return "" if bound is None else number_format(bound, force_grouping=True)


class NumberWords(forms.Form):
    """A form whose number fields speak so: Django's own words name neither the field nor what was typed."""

    def add_error(self, field: str | None, error: Any) -> None:
        own = self.fields.get(field) if field else None
        if field and isinstance(own, forms.IntegerField) and isinstance(error, ValidationError):
            error = number_words(own, str(own.label), self[field].data)
        super().add_error(field, error)
