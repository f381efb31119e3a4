"""Request bodies: checked against a serializer, and strict: a member that nobody knows is an error, never ignored."""

from __future__ import annotations

from typing import Any

from rest_framework.request import Request
from rest_framework.serializers import Serializer

from tidesched_web.common.errors import DomainError


def checked_body(serializer: type[Serializer[Any]], request: Request) -> dict[str, Any]:
    """The body's members with their defaults filled in."""
    if not isinstance(request.data, dict):
        raise DomainError("malformed_body", "The body has to be a JSON object.")
    form = serializer(data=request.data)
    unknown = sorted(set(request.data).difference(form.fields))
    if unknown:
        known = ", ".join(form.fields)
        raise DomainError.for_field(f"/{unknown[0]}", f"Unknown member {unknown[0]!r}. Known: {known}.")
    form.is_valid(raise_exception=True)
    return dict(form.validated_data)
