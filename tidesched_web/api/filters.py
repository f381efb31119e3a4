import datetime as dt
from collections.abc import Callable, Iterable
from typing import Any

import django_filters
from django import forms
from django.db.models import QuerySet
from django_filters.rest_framework import DjangoFilterBackend
from drf_spectacular.utils import extend_schema_field
from rest_framework.request import Request

from tidesched_web.common.calendar_bounds import OutOfCalendar, in_calendar
from tidesched_web.common.errors import DomainError
from tidesched_web.common.hints import nearest
from tidesched_web.common.permissions import Access


def refuse_unknown(request: Request, known: Iterable[str]) -> None:
    names = sorted(set(known))
    for name, values in request.query_params.lists():
        if name not in names:
            said = ", ".join(names) if names else "none"
            raise DomainError(
                "unknown_parameter",
                f"Unknown parameter {name!r}. Known here: {said}.",
                {"errors": [{"pointer": f"/{name}", "code": "unknown_parameter", "detail": f"Known: {said}."}]},
            )
        if len(values) > 1:
            raise DomainError.for_field(f"/{name}", f"{name} is given {len(values)} times; once is meant.")


class ReferenceFilter(django_filters.CharFilter):
    """Joins, and asks no query of its own. A name of none of ``among`` is an error, not an empty list."""

    def __init__(
        self, *args: Any, relation: str, by: str, among: Callable[[Access], QuerySet[Any]] | None = None, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        text = f"Id or {'user name' if by == 'username' else by} of the {relation.replace('_', ' ')}."
        extend_schema_field({"type": "string", "description": text})(self)
        self.relation, self.by, self.among = relation, by, among

    def filter(self, qs: QuerySet[Any], value: str) -> QuerySet[Any]:
        if value in (None, ""):
            return qs
        if _is_id(value):
            return qs.filter(**{f"{self.relation}_id": int(value)})
        return qs.filter(**{f"{self.relation}__{self.by}": value})

    def refuse_unknown_name(self, name: str, value: str, access: Access) -> None:
        """Asked where nothing was found: the caller reads of a name that means nothing to them. One query."""
        if self.among is None or not value or _is_id(value):
            return
        if not self.among(access).filter(**{self.by: value}).exists():
            text = f"You see no {self.relation.replace('_', ' ')} {value!r}."
            raise DomainError.for_field(f"/{name}", text, code="unknown_object")


MOMENT = "a moment in ISO 8601 is meant, such as 2026-03-05T03:14:00Z (without a zone: UTC)."


def _refusal(said: str, code: str = "invalid") -> forms.ValidationError:
    """The sentence is a parameter: a value in it may have percent signs, which a message means as places."""
    return forms.ValidationError("%(said)s", code=code, params={"said": said})


class _UtcField(django_filters.fields.IsoDateTimeField):
    def to_python(self, value: Any) -> dt.datetime | None:
        try:
            found: dt.datetime | None = super().to_python(value.upper() if isinstance(value, str) else value)
        except forms.ValidationError:
            raise _refusal(f"{str(value)[:80]!r}: {MOMENT}") from None
        try:
            return found and in_calendar(found, value)
        except OutOfCalendar as error:
            raise _refusal(str(error)) from None


class TimeFilter(django_filters.IsoDateTimeFilter):
    field_class = _UtcField

    def __init__(self, *, lookup_expr: str, **kwargs: Any) -> None:
        bound = "From this moment on, itself included." if lookup_expr == "gte" else "Before this moment."
        label = f"{bound} ISO 8601, such as 2026-03-05T03:14:00Z; without a zone it is UTC."
        super().__init__(lookup_expr=lookup_expr, **{"label": label} | kwargs)


def _is_id(value: str) -> bool:
    return value.isascii() and value.isdigit() and len(value) < 19


class IdFilter(django_filters.NumberFilter):
    field_class = forms.IntegerField

    def __init__(self, *args: Any, label: str, **kwargs: Any) -> None:
        super().__init__(*args, label=label, min_value=0, max_value=2**63 - 1, **kwargs)
        extend_schema_field({"type": "integer", "minimum": 0, "maximum": 2**63 - 1, "description": label})(self)

    def get_max_validator(self) -> None:
        return


class TextFilter(django_filters.CharFilter):
    """Equal text. NUL, which PostgreSQL's text cannot hold, finds nothing."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{"label": "The whole text, case and all."} | kwargs)

    def filter(self, qs: QuerySet[Any], value: str) -> QuerySet[Any]:
        return qs.none() if value and "\x00" in value else super().filter(qs, value)


class _OneOfField(django_filters.fields.ChoiceField):
    def validate(self, value: Any) -> None:
        if value not in self.empty_values and not self.valid_value(value):
            known = [str(code) for code, _label in self.choices if code != ""]
            near = nearest(str(value), known)
            said = f"{str(value)[:80]!r} is none of the known values" + (f"; did you mean {near}?" if near else ".")
            raise _refusal(f"{said} Known: {', '.join(known)}.", code="invalid_choice")
        super().validate(value)


class OneOf(django_filters.ChoiceFilter):
    field_class = _OneOfField

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{"label": "One of its values, case and all."} | kwargs)


def codes(known: Iterable[Any]) -> list[tuple[str, str]]:
    return [(str(code), str(code)) for code in known]


class _TrueOrFalse(forms.NullBooleanField):
    widget = forms.TextInput

    # Unset is None, as the framework's own field has it; its stubs know of True and False only.
    def to_python(self, value: Any) -> bool | None:  # type: ignore[override]
        if value is None:
            return None
        if value not in _BOOLEANS:
            raise _refusal(f"{str(value)[:80]!r}: true or false is meant.")
        return _BOOLEANS[value]


_BOOLEANS = {"true": True, "True": True, "1": True, "false": False, "False": False, "0": False}


class YesNoFilter(django_filters.BooleanFilter):
    """True or false; anything else is an error, not a filter that lets everything through."""

    field_class = _TrueOrFalse


class StrictBackend(DjangoFilterBackend):
    """A request builds only the filters that it names: the others would let every row through."""

    def get_filterset(self, request: Request, queryset: QuerySet[Any], view: Any) -> Any:
        kind = self.get_filterset_class(view, queryset)
        if kind is None:
            return None
        kwargs = self.get_filterset_kwargs(request, queryset, view)
        filters = kind.__new__(kind)
        filters.base_filters = {name: one for name, one in kind.base_filters.items() if name in request.query_params}
        filters.__init__(**kwargs)
        return filters

    def get_filterset_kwargs(self, request: Request, queryset: QuerySet[Any], view: Any) -> dict[str, Any]:
        kwargs: dict[str, Any] = super().get_filterset_kwargs(request, queryset, view)
        for name, value in request.query_params.items():
            kind = view.filterset_class.base_filters.get(name) if getattr(view, "filterset_class", None) else None
            if value == "" and kind is not None and not isinstance(kind, (django_filters.CharFilter, YesNoFilter)):
                raise DomainError.for_field(f"/{name}", f"{name} is empty: leave it out, or give a value.")
        return kwargs
