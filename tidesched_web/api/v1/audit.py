"""`audit`: who did what, as a list, as NDJSON and as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import AsyncIterator
from typing import Any

import django_filters
import orjson
from asgiref.sync import sync_to_async
from django.db.models import QuerySet
from django.http import HttpResponseBase, StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from tidesched_web.accounts.models import Scope
from tidesched_web.api.filters import TextFilter
from tidesched_web.api.v1.serializers.audit import AuditEntryDocument
from tidesched_web.api.views import Documents, ReadView
from tidesched_web.audit.models import AuditEntry
from tidesched_web.audit.selectors import visible_entries
from tidesched_web.common.errors import DomainError

EXPORT_PAGE = 500
_TYPES = {"ndjson": "application/x-ndjson", "csv": "text/csv; charset=utf-8"}


class AuditFilters(django_filters.FilterSet):
    """Filters of `audit`; ``from`` and ``to`` are wall time."""

    chain = TextFilter()
    cluster = django_filters.NumberFilter(field_name="cluster_id")
    actor = TextFilter()
    action = TextFilter()
    object_type = TextFilter()
    object_id = TextFilter()
    request_id = TextFilter()


AuditFilters.base_filters["from"] = django_filters.IsoDateTimeFilter(field_name="at", lookup_expr="gte")
AuditFilters.base_filters["to"] = django_filters.IsoDateTimeFilter(field_name="at", lookup_expr="lt")


class Audit(ReadView):
    """The audit log: all of it for admins and auditors, for a member the entries that touch their tenants."""

    scopes = (Scope.AUDIT_READ,)
    model = AuditEntry
    serializer_class = AuditEntryDocument
    filterset_class = AuditFilters
    newest_first = True

    def visible(self) -> QuerySet[AuditEntry]:
        return visible_entries(self.access)

    def known_parameters(self) -> set[str]:
        return super().known_parameters() | ({"format"} if self.action == "list" else set())

    @extend_schema(
        parameters=[
            OpenApiParameter(
                "format",
                str,
                enum=["json", *_TYPES],
                description="`ndjson` and `csv` are exports: every entry that the filters leave, the oldest first.",
            )
        ],
        responses={
            (200, "application/json"): AuditEntryDocument(many=True),
            (200, "application/x-ndjson"): OpenApiTypes.STR,
            (200, "text/csv"): OpenApiTypes.STR,
        },
    )
    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response | HttpResponseBase:  # type: ignore[override]
        wanted = request.query_params.get("format", "json")
        if wanted == "json":
            return super().list(request, *args, **kwargs)
        if wanted not in _TYPES:
            raise DomainError.for_field("/format", f"{wanted!r}: known are json, {', '.join(_TYPES)}.")
        entries = self.filter_queryset(self.get_queryset())
        lines = self._ndjson if wanted == "ndjson" else self._csv
        response = StreamingHttpResponse(lines(entries), content_type=_TYPES[wanted])
        response.headers["Content-Disposition"] = f'attachment; filename="audit.{wanted}"'
        return response

    async def _pages(self, entries: QuerySet[AuditEntry]) -> AsyncIterator[Documents]:
        """The export page by page, so that a long log is never in memory as a whole."""

        def page(after: int) -> tuple[Documents, int]:
            rows = [*entries.filter(pk__gt=after).order_by("id")[:EXPORT_PAGE]]
            return self.documents(rows), rows[-1].pk if rows else 0

        last = 0
        while True:
            documents, last = await sync_to_async(page)(last)
            if not documents:
                return
            yield documents

    async def _ndjson(self, entries: QuerySet[AuditEntry]) -> AsyncIterator[bytes]:
        async for documents in self._pages(entries):
            yield b"".join(orjson.dumps(document, option=orjson.OPT_APPEND_NEWLINE) for document in documents)

    async def _csv(self, entries: QuerySet[AuditEntry]) -> AsyncIterator[bytes]:
        columns = list(AuditEntryDocument().fields)
        yield _csv_line(columns)
        async for documents in self._pages(entries):
            yield b"".join(_csv_line([_cell(document[name]) for name in columns]) for document in documents)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    text = orjson.dumps(value).decode() if isinstance(value, (dict, list)) else str(value)
    # A spreadsheet would run such a cell as a formula.
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text


def _csv_line(cells: list[str]) -> bytes:
    buffer = io.StringIO()
    csv.writer(buffer).writerow(cells)
    return buffer.getvalue().encode()
