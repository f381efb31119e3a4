import csv
import io
from collections.abc import AsyncIterator, Iterator
from itertools import islice
from typing import Any, TypeVar

import django_filters
import orjson
from asgiref.sync import sync_to_async
from django.db.models import Q, QuerySet
from django.http import HttpResponse, HttpResponseBase, StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_view
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from tidesched_web.accounts.models import Scope
from tidesched_web.api import pagination
from tidesched_web.api.filters import IdFilter, TextFilter, TimeFilter
from tidesched_web.api.v1.serializers.audit import (
    AuditEntryDocument,
    ChainDocument,
    SegmentDocument,
    SignedHeadDocument,
)
from tidesched_web.api.views import Documents, ReadView, Rows
from tidesched_web.audit.bundle import pages
from tidesched_web.audit.models import AuditEntry, Segment
from tidesched_web.audit.segment_services import mark_exported, segment_lines
from tidesched_web.audit.selectors import chains_now, public_keys, segments, signed_heads, touching, visible_entries
from tidesched_web.audit.sight import clusters_named
from tidesched_web.common.errors import DomainError
from tidesched_web.common.permissions import Access
from tidesched_web.common.spreadsheets import guarded
from tidesched_web.quota.tide_selectors import visible_queue_names
from tidesched_web.scheduling.reclaim_selectors import entries_of_gang

EXPORT_PAGE = 500
_TYPES = {"ndjson": "application/x-ndjson", "csv": "text/csv; charset=utf-8"}


class AuditFilters(django_filters.FilterSet):
    chain = TextFilter(label="Name of the chain of entries.")
    cluster = IdFilter(field_name="cluster_id", label="Id of the cluster.")
    actor = TextFilter(label="User name of the person who did it, or the part of TideSched that did.")
    action = TextFilter(label="What was done, such as `change.apply`: the whole word.")
    object_type = TextFilter(label="Type of the object of the entry.")
    object_id = TextFilter(label="Id of the object of the entry.")
    q = django_filters.CharFilter(method="about", label="Part of the object's label, or its id.")
    gang = django_filters.CharFilter(
        method="moved", label="Reclaims that gave this gang (namespace/name) something, or took something from it."
    )
    tenant = IdFilter(method="touching", label="A tenant that it touches.")
    request_id = TextFilter(label="Id of the request that made the entry; answers carry it.")

    def about(self, entries: QuerySet[AuditEntry], name: str, value: str) -> QuerySet[AuditEntry]:
        if "\x00" in value:
            return entries.none()
        return entries.filter(Q(object_label__icontains=value) | Q(object_id=value))

    def moved(self, entries: QuerySet[AuditEntry], name: str, value: str) -> QuerySet[AuditEntry]:
        return entries.none() if "\x00" in value else entries.filter(entries_of_gang(value))

    def touching(self, entries: QuerySet[AuditEntry], name: str, value: Any) -> QuerySet[AuditEntry]:
        """Entries that touch a tenant; none where the caller does not see it, as if it were not there."""
        access: Access = self.request.parser_context["view"].access
        return touching(entries, int(value)) if access.sees_all_of([int(value)]) else entries.none()


AuditFilters.base_filters["from"] = TimeFilter(field_name="at", lookup_expr="gte")
AuditFilters.base_filters["to"] = TimeFilter(field_name="at", lookup_expr="lt")


@extend_schema_view(retrieve=extend_schema(summary="Show an audit entry"))
class Audit(ReadView):
    """The audit log: all of it for admins and auditors, for a member the entries that touch their tenants."""

    scopes = (Scope.AUDIT_READ,)
    model = AuditEntry
    serializer_class = AuditEntryDocument
    filterset_class = AuditFilters
    newest_first = True

    def visible(self) -> QuerySet[AuditEntry]:
        return visible_entries(self.access)

    def rows_context(self, rows: Rows) -> dict[str, Any]:
        return {"own_queues": visible_queue_names(self.access, clusters_named(rows))}

    def known_parameters(self) -> set[str]:
        if self.action == "bundle":
            return set()
        if self.action in ("heads", "segments"):
            return {*pagination.PARAMETERS, "format"} if self.action == "heads" else set(pagination.PARAMETERS)
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
    def list(  # type: ignore[override]
        self, request: Request, *args: Any, **kwargs: Any
    ) -> Response | HttpResponseBase:
        """List audit entries.

        Everything for platform admins and auditors, for a member the entries that touch their tenants; the newest
        first. `format=ndjson` and `format=csv` are exports: every entry that the filters leave, the oldest first.
        """
        wanted = request.query_params.get("format", "json")
        if wanted == "json":
            return super().list(request, *args, **kwargs)
        if wanted not in _TYPES:
            raise DomainError.for_field("/format", f"{wanted!r}: known are json, {', '.join(_TYPES)}.")
        entries = self.filter_queryset(self.get_queryset())
        self._refuse_no_page(entries)
        lines = self._ndjson if wanted == "ndjson" else self._csv
        return _attached(StreamingHttpResponse(lines(entries), content_type=_TYPES[wanted]), f"audit.{wanted}")

    @extend_schema(
        parameters=[OpenApiParameter("format", str, enum=["json", "ndjson"], description="`json` if it is left out.")],
        responses={(200, "application/json"): SignedHeadDocument(many=True), (200, _TYPES["ndjson"]): OpenApiTypes.STR},
    )
    @action(detail=False, methods=["get"])
    def heads(self, request: Request) -> Response | HttpResponseBase:
        """List signed heads of the chains. `ndjson` has all, with the public keys. Role: platform admin or auditor."""
        self._for_auditors()
        rows = signed_heads()
        wanted = request.query_params.get("format", "json")
        if wanted not in ("json", "ndjson"):
            raise DomainError.for_field("/format", f"{wanted!r}: known are json, ndjson.")
        if wanted == "json":
            return self._page(rows, SignedHeadDocument)
        self._refuse_no_page(rows)
        keys = public_keys()
        lines = [
            orjson.dumps(
                SignedHeadDocument(row).data | {"public_key": keys.get(row.key_id)}, option=orjson.OPT_APPEND_NEWLINE
            )
            for row in rows.order_by("id")
        ]
        return _attached(HttpResponse(b"".join(lines), content_type=_TYPES["ndjson"]), "audit-heads.ndjson")

    @extend_schema(responses={(200, _TYPES["ndjson"]): OpenApiTypes.STR})
    @action(detail=False, methods=["get"])
    def bundle(self, request: Request) -> HttpResponseBase:
        """Download the audit log. All tables but the private keys, as NDJSON. Role: platform admin or auditor."""
        self._for_auditors()
        return _attached(
            StreamingHttpResponse(_stepwise(pages()), content_type=_TYPES["ndjson"]), "audit-bundle.ndjson"
        )

    @extend_schema(responses=ChainDocument(many=True))
    @action(detail=False, methods=["get"])
    def chains(self, request: Request) -> Response:
        """List the audit chains. All on one page: their ends and newest checks. Role: platform admin or auditor."""
        self._for_auditors()
        # All on one page: a chain for the platform, and one for each cluster.
        return Response({"results": ChainDocument(chains_now(), many=True).data, "next": None, "previous": None})

    @extend_schema(responses=SegmentDocument(many=True))
    @action(detail=False, methods=["get"])
    def segments(self, request: Request) -> Response:
        """List sealed segments. Sealed parts of the log, the newest first. Role: platform admin or auditor."""
        self._for_auditors()
        return self._page(segments(), SegmentDocument)

    @extend_schema(responses={(200, _TYPES["ndjson"]): OpenApiTypes.STR})
    @action(detail=False, methods=["get"], url_path="segments/<int:segment>/file", url_name="segment-file")
    def segment_file(self, request: Request, segment: int) -> HttpResponseBase:
        """Download a sealed segment. Sent whole, it counts as exported. Role: platform admin or auditor."""
        self._for_auditors()
        found = segments().filter(pk=segment).first()
        if found is None:
            raise DomainError("not_found", f"There is no segment {segment}.")
        lines = segment_lines(found)
        name = f"audit-{found.chain.replace(':', '-')}-{found.first_seq}-{found.last_seq}.ndjson"
        return _attached(StreamingHttpResponse(self._segment(found, lines), content_type=_TYPES["ndjson"]), name)

    async def _segment(self, segment: Segment, lines: Iterator[bytes]) -> AsyncIterator[bytes]:
        def some() -> bytes:
            return b"".join(islice(lines, EXPORT_PAGE))

        while text := await sync_to_async(some)():
            yield text
        await sync_to_async(mark_exported)(segment=segment, actor=self.access.actor)

    def _refuse_no_page(self, rows: QuerySet[Any]) -> None:
        """An export has no pages; what is wrong in the parameters of a page is said all the same. No query."""
        self.paginate_queryset(rows.none())

    def _page(self, rows: QuerySet[Any], serializer: type[Any]) -> Response:
        return self.get_paginated_response(serializer(self.paginate_queryset(rows) or [], many=True).data)

    def _for_auditors(self) -> None:
        if not self.access.everything:
            raise DomainError("permission_denied", "The chains as a whole are for platform admins and auditors.")

    async def _pages(self, entries: QuerySet[AuditEntry]) -> AsyncIterator[Documents]:
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


async def _stepwise(parts: Iterator[bytes]) -> AsyncIterator[bytes]:
    def one() -> bytes | None:
        return next(parts, None)

    while (text := await sync_to_async(one)()) is not None:
        yield text


_R = TypeVar("_R", bound=HttpResponseBase)


def _attached(response: _R, name: str) -> _R:
    response.headers["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


def _cell(value: Any) -> str:
    if value is None:
        return ""
    text = orjson.dumps(value).decode() if isinstance(value, (dict, list)) else str(value)
    return guarded(text)


def _csv_line(cells: list[str]) -> bytes:
    buffer = io.StringIO()
    csv.writer(buffer).writerow(cells)
    return buffer.getvalue().encode()
