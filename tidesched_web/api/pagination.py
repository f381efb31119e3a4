import base64
import binascii
from typing import Any
from urllib.parse import urlencode

from django.db.models import Model, QuerySet
from rest_framework.pagination import BasePagination
from rest_framework.request import Request
from rest_framework.response import Response

from tidesched_web.common.errors import DomainError
from tidesched_web.common.public_address import absolute

DEFAULT_LIMIT, MAX_LIMIT = 50, 1000
PARAMETERS = ("cursor", "limit", "count")


def _encode(direction: str, pk: int) -> str:
    return base64.urlsafe_b64encode(f"{direction}{pk}".encode()).decode().rstrip("=")


def _decode(cursor: str) -> tuple[str, int]:
    try:
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True).decode("ascii")
        direction, pk = text[0], int(text[1:])
    except (binascii.Error, ValueError, IndexError):
        direction, pk = "", 0
    if direction not in ("n", "p") or not 0 < pk < 2**63:
        raise DomainError.for_field("/cursor", "This cursor did not come from here.", code="invalid_cursor")
    return direction, pk


class KeysetPagination(BasePagination):
    def paginate_queryset(self, queryset: Any, request: Request, view: Any = None) -> list[Any]:
        """One page. A row more than asked for tells whether there is another page."""
        self.request, self.count, limit = request, self._count(queryset, request), self._limit(request)
        descending = bool(getattr(view, "newest_first", False))
        cursor = request.query_params.get("cursor", "")
        direction, anchor = _decode(cursor) if cursor else ("n", 0)
        # Walking back through an ascending list is walking forward through a descending one.
        downwards = descending == (direction == "n")
        page = queryset.order_by("-id" if downwards else "id")
        if anchor:
            page = page.filter(**{"id__lt" if downwards else "id__gt": anchor})
        rows = list(page[: limit + 1])
        more, rows = len(rows) > limit, rows[:limit]
        if direction == "p":
            rows.reverse()
        further, back = (more, bool(anchor)) if direction == "n" else (True, more)
        self.next = _encode("n", _pk(rows[-1])) if rows and further else None
        self.previous = _encode("p", _pk(rows[0])) if rows and back else None
        return rows

    def get_paginated_response(self, data: Any) -> Response:
        body: dict[str, Any] = {"results": data, "next": self._url(self.next), "previous": self._url(self.previous)}
        if self.count is not None:
            body["count"] = self.count
        return Response(body)

    def _url(self, cursor: str | None) -> str | None:
        if cursor is None:
            return None
        query = [(key, value) for key, value in self.request.query_params.lists() if key != "cursor"]
        address = absolute(self.request, self.request.path)
        return f"{address}?{urlencode([*query, ('cursor', [cursor])], doseq=True)}"

    @staticmethod
    def _limit(request: Request) -> int:
        text = request.query_params.get("limit", str(DEFAULT_LIMIT))
        if not text.isascii() or not text.isdigit() or not 1 <= int(text[:6]) <= MAX_LIMIT or len(text) > 6:
            raise DomainError.for_field("/limit", f"{text!r}: expected a number from 1 to {MAX_LIMIT}.")
        return int(text)

    @staticmethod
    def _count(queryset: QuerySet[Any], request: Request) -> int | None:
        wanted = request.query_params.get("count")
        if wanted is None:
            return None
        if wanted != "exact":
            raise DomainError.for_field("/count", f"{wanted!r}: the only kind of count is 'exact'.")
        return queryset.order_by().count()

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        return [
            {
                "name": "cursor",
                "in": "query",
                "schema": {"type": "string", "pattern": "^([A-Za-z0-9_-]{2,40})?$"},
                "description": "From `next` or `previous` of an earlier page; an empty one is the first page.",
            },
            {
                "name": "limit",
                "in": "query",
                "schema": {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "default": DEFAULT_LIMIT},
                "description": "Rows of a page.",
            },
            {
                "name": "count",
                "in": "query",
                "schema": {"type": "string", "enum": ["exact"]},
                "description": "Adds `count`, which costs a second query.",
            },
        ]

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        link = {"type": ["string", "null"], "format": "uri"}
        return {
            "type": "object",
            "required": ["results", "next", "previous"],
            "properties": {
                "results": schema,
                "next": link,
                "previous": link,
                "count": {"type": "integer", "description": "Only with `count=exact`."},
            },
        }


def _pk(row: Any) -> int:
    return int(row.pk if isinstance(row, Model) else row["id"])
