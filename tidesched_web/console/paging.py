import base64
import binascii
import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from django.core.exceptions import ValidationError
from django.db.models import Model, Q, QuerySet

ROWS = 50
# Of a list that is put in order here, whose rows are short.
LISTED = 100


@dataclass(frozen=True, slots=True)
class Paged:
    rows: list[Any]
    next: str
    previous: str


def paged(rows: QuerySet, order: Sequence[str], cursor: str, *, size: int = ROWS) -> Paged:
    """``order`` ends in a unique field. A cursor that cannot be read is the first page."""
    place = _read(cursor, order)
    back = place is not None and place[0] == "p"
    wanted = [name[1:] if name.startswith("-") else f"-{name}" for name in order] if back else list(order)
    if place:
        try:
            rows = rows.filter(_after(wanted, place[1]))
        except (ValueError, TypeError, ValidationError):  # values of another list's cursor
            place, back, wanted = None, False, list(order)
    found = list(rows.order_by(*wanted)[: size + 1])
    more = len(found) > size
    found = found[:size]
    if back:
        found.reverse()
    has_next = bool(place) if back else more
    has_previous = more if back else bool(place)
    return Paged(
        found,
        _write("n", found[-1], order) if found and has_next else "",
        _write("p", found[0], order) if found and has_previous else "",
    )


def part_of(rows: Sequence[Any], cursor: str, *, size: int = LISTED) -> Paged:
    place = int(cursor) if cursor.isascii() and cursor.isdecimal() and len(cursor) < 7 else 0
    place = place if place < len(rows) else 0
    last = place + size
    return Paged(
        list(rows[place:last]), str(last) if last < len(rows) else "", str(max(0, place - size)) if place else ""
    )


def _after(order: Sequence[str], values: Sequence[Any]) -> Q:
    found, equal = Q(pk__in=[]), Q()
    for name, value in zip(order, values, strict=True):
        plain = name.lstrip("-")
        found |= equal & Q(**{f"{plain}__{'lt' if name.startswith('-') else 'gt'}": value})
        equal &= Q(**{plain: value})
    # The same said of the first field alone: where an index has this order, the database begins at that row.
    first = order[0].lstrip("-")
    return found & Q(**{f"{first}__{'lte' if order[0].startswith('-') else 'gte'}": values[0]})


def _write(direction: str, row: Model, order: Sequence[str]) -> str:
    values = [getattr(row, name.lstrip("-")) for name in order]
    plain = [{"at": value.isoformat()} if isinstance(value, dt.datetime) else value for value in values]
    return base64.urlsafe_b64encode(orjson.dumps([direction, plain])).decode().rstrip("=")


def _read(cursor: str, order: Sequence[str]) -> tuple[str, list[Any]] | None:
    try:
        direction, values = orjson.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        if direction not in ("n", "p") or len(values) != len(order):
            return None
        return direction, [_value(value) for value in values]
    except (binascii.Error, orjson.JSONDecodeError, ValueError, TypeError, KeyError):
        return None


def _value(value: Any) -> Any:
    if isinstance(value, dict):
        return dt.datetime.fromisoformat(value["at"])
    if isinstance(value, int) or (isinstance(value, str) and "\0" not in value):
        return value
    raise ValueError
