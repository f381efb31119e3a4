"""How many of a thing one account may keep: one refusal for all of them, with the number and what makes room."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet

from tidesched_web.common.errors import DomainError


def too_many(most: int, text: str) -> DomainError:
    """The refusal; ``text`` says what would be right, and has the number as ``%(limit)d``."""
    return DomainError("too_many_kept", text % {"limit": most}, {"limit": most})


def require_room(rows: QuerySet[Any], most: int, text: str) -> None:
    """Refuse one more beside ``rows`` where there are ``most`` of them. One query, of so many rows at most.

    Requests at the same moment may each be the last one: there are a few more then, never without end.

    Raises:
        DomainError: ``too_many_kept`` (409), with ``limit``.
    """
    if rows.order_by()[:most].count() >= most:
        raise too_many(most, text)
