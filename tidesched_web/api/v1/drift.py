from typing import Any

import django_filters
from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from tidesched_web.accounts.models import Scope
from tidesched_web.api.body import checked_body
from tidesched_web.api.filters import OneOf, ReferenceFilter, TextFilter, codes
from tidesched_web.api.idempotency import idempotent
from tidesched_web.api.v1.serializers.changes import SayWhy
from tidesched_web.api.v1.serializers.drift import DriftActs, DriftDocument
from tidesched_web.api.v1.serializers.json_shapes import list_of, ref
from tidesched_web.api.views import ReadView
from tidesched_web.api.writes import IDEMPOTENCY
from tidesched_web.changes.drift import adopt
from tidesched_web.clusters.selectors import visible_clusters
from tidesched_web.common.errors import DomainError
from tidesched_web.common.permissions import require_administrator, require_scope
from tidesched_web.quota.drift_selectors import CLASS, QUEUE, visible_drift
from tidesched_web.quota.models import Drift, DriftState, DriftWhat
from tidesched_web.quota.services import drift as services

_ACCEPTED = {202: DriftDocument}


class DriftFilters(django_filters.FilterSet):
    cluster = ReferenceFilter(relation="cluster", by="slug", among=visible_clusters)
    kind = OneOf(choices=codes((QUEUE, CLASS)))
    name = TextFilter()
    state = OneOf(choices=DriftState.choices)
    what = OneOf(choices=DriftWhat.choices)


class DriftView(ReadView):
    """What was changed in the clusters by hand, the newest first; a tenant sees that of its queues."""

    scopes = (Scope.QUOTA_READ, Scope.QUOTA_WRITE)
    act_scopes = (Scope.QUOTA_WRITE,)
    model = Drift
    serializer_class = DriftDocument
    filterset_class = DriftFilters
    newest_first = True

    def visible(self) -> QuerySet[Drift]:
        return visible_drift(self.access)

    @extend_schema(request=DriftActs, responses={202: list_of(ref("DriftDocument"))}, parameters=[IDEMPOTENCY])
    @idempotent
    def create(self, request: Request) -> Response:
        """Decide on several drifts. Adopting several of them is one change. Role: platform admin."""
        self._may()
        wanted = checked_body(DriftActs, request)
        rows = list(self.visible().filter(pk__in=wanted["ids"]))
        if len(rows) != len(set(wanted["ids"])):
            missing = sorted(set(wanted["ids"]).difference(row.pk for row in rows))
            raise DomainError.for_field("/ids", f"You see no drift {missing[0]}.", code="unknown_object")
        return self._done(rows, wanted["act"], wanted["reason"], many=True)

    @extend_schema(request=SayWhy, responses=_ACCEPTED, parameters=[IDEMPOTENCY])
    @action(detail=True, methods=["post"])
    @idempotent
    def repush(self, request: Request, pk: int) -> Response:
        """Write the intent again. The drift ends when the cluster shows it. Role: platform admin."""
        return self._one(request, "repush")

    @extend_schema(request=SayWhy, responses=_ACCEPTED, parameters=[IDEMPOTENCY])
    @action(detail=True, methods=["post"])
    @idempotent
    def adopt(self, request: Request, pk: int) -> Response:
        """Adopt what is live. By a quota change (`change`), which may wait for approval. Role: platform admin."""
        return self._one(request, "adopt")

    @extend_schema(request=SayWhy, responses=_ACCEPTED, parameters=[IDEMPOTENCY])
    @action(detail=True, methods=["post"])
    @idempotent
    def ignore(self, request: Request, pk: int) -> Response:
        """Ignore a drift. Until the object changes again. Role: platform admin."""
        return self._one(request, "ignore")

    def _one(self, request: Request, act: str) -> Response:
        row = self.get_object()
        self._may()
        return self._done([row], act, checked_body(SayWhy, request)["reason"], many=False)

    def _may(self) -> None:
        require_administrator(self.access)
        require_scope(self.access, *self.act_scopes)

    def _done(self, rows: list[Drift], act: str, reason: str, *, many: bool) -> Response:
        decide: Any = {"repush": services.repush, "ignore": services.ignore, "adopt": adopt}[act]
        decide(drifts=rows, access=self.access, reason=reason)
        shown = self.documents(list(self.visible().filter(pk__in=[row.pk for row in rows]).order_by("pk")))
        return Response(shown if many else shown[0], status=202)
