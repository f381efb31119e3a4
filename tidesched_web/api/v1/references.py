from typing import Any

from django.db.models import QuerySet

from tidesched_web.common.errors import DomainError


def referred(rows: QuerySet[Any], named: int | str, pointer: str, *, by: str, code: str = "unknown_object") -> Any:
    found = list(rows.filter(**{"pk" if isinstance(named, int) else by: named})[:2])
    if len(found) == 1:
        return found[0]
    text = (
        f"You see no {rows.model._meta.verbose_name} {named!r}." if not found else f"{named!r} is not one: send the id."
    )
    raise DomainError.for_field(pointer, text, code=code)
