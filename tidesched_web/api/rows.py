"""Rows as documents: what a serializer says of each row, with the questions that are the same for all asked once.

The framework asks each field of each row through half a dozen calls, which is most of what a list costs. Here the
fields are looked through once, and a row costs one look-up a field. Whatever is not plain goes the framework's own way.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any

from django.core.exceptions import ObjectDoesNotExist
from django.db.models import Model
from rest_framework import serializers

Make = Callable[[Any], Any]
# Fields that say a value of this type as it is.
_AS_IS: dict[type, type] = {
    serializers.BooleanField: bool,
    serializers.CharField: str,
    serializers.ChoiceField: str,
    serializers.FloatField: float,
    serializers.IntegerField: int,
    serializers.URLField: str,
}


# A thread's serializers by class, to make and to copy their fields anew for each answer costs more than some answers.
_kept = threading.local()


def documents(
    kind: type[serializers.Serializer[Any]], rows: Iterable[Any], context: dict[str, Any]
) -> list[dict[str, Any]]:
    """The same as ``kind(rows, many=True, context=context).data``."""
    ready: dict[type, serializers.Serializer[Any]] = _kept.__dict__.setdefault("serializers", {})
    serializer = ready.pop(kind, None) or kind()  # not to be had by another answer inside this one
    serializer._context = context  # noqa: SLF001 - what its fields read
    try:
        make = _document(serializer)
        return [make(row) for row in rows]
    finally:
        serializer._context = {}  # noqa: SLF001 - the request is not kept with it
        ready[kind] = serializer


def _document(serializer: serializers.Serializer[Any]) -> Make:
    if type(serializer).to_representation is not serializers.Serializer.to_representation:
        return serializer.to_representation
    fields = [_plan(field) for field in serializer.fields.values() if not field.write_only]

    def document(row: Any) -> Any:
        if not isinstance(row, Model):
            return serializer.to_representation(row)
        found = {}
        try:
            for name, attribute, as_is, make in fields:
                if attribute:
                    value = getattr(row, attribute)
                    found[name] = value if value is None or type(value) is as_is else make(value)
                else:
                    found[name] = make(row)
        except (AttributeError, ObjectDoesNotExist):
            return serializer.to_representation(row)  # it knows what may be left out, and what is an error
        return found

    return document


def _plan(field: serializers.Field[Any, Any, Any, Any]) -> tuple[str, str, type | None, Make]:
    """(name, attribute of the row or "", the type that is said as it is, what makes the rest)."""
    name = str(field.field_name)
    if isinstance(field, serializers.SerializerMethodField):
        return name, "", None, getattr(field.parent, str(field.method_name))
    if hasattr(field, "prepared"):
        return name, "", None, field.prepared()
    source = field.source_attrs
    if type(field).get_attribute is not serializers.Field.get_attribute or len(source) != 1 or source[0] == "__str__":
        return name, "", None, _own_way(field)
    if isinstance(field, serializers.Serializer):
        return name, field.source_attrs[0], None, _once_each(_document(field))
    return name, field.source_attrs[0], _AS_IS.get(type(field)), field.to_representation


def _own_way(field: serializers.Field[Any, Any, Any, Any]) -> Make:
    def make(row: Any) -> Any:
        value = field.get_attribute(row)
        return None if value is None else field.to_representation(value)

    return make


def _once_each(make: Make) -> Make:
    """Many rows name the same cluster or tenant: it is said once."""
    said: dict[tuple[type, Any], Any] = {}

    def document(row: Any) -> Any:
        if not isinstance(row, Model):
            return make(row)
        key = (type(row), row.pk)
        if key not in said:
            said[key] = make(row)
        return said[key]

    return document
