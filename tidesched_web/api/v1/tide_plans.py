"""`tide-plans`: quota by the clock. Every write is a change of the tree: planned, checked, approved where due."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Any

import django_filters
from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from tidesched_web.accounts.models import Scope
from tidesched_web.api.body import checked_body
from tidesched_web.api.filters import ReferenceFilter, TextFilter, YesNoFilter
from tidesched_web.api.idempotency import idempotent
from tidesched_web.api.v1.change_answers import carried_out, preview
from tidesched_web.api.v1.references import referred
from tidesched_web.api.v1.serializers.changes import ChangeDocument
from tidesched_web.api.v1.serializers.owners import DeleteInput
from tidesched_web.api.v1.serializers.tide_plans import TidePlanDocument, TidePlanInput, TidePlanPatch
from tidesched_web.api.views import ReadView, Rows
from tidesched_web.api.writes import DRY_RUN_PARAMETER, IDEMPOTENCY, IF_MATCH_NEEDED, expected_version, is_dry_run
from tidesched_web.changes.tree_document import key_of
from tidesched_web.clusters.models import Cluster
from tidesched_web.clusters.selectors import visible_clusters
from tidesched_web.common.errors import DomainError
from tidesched_web.common.permissions import require_administrator
from tidesched_web.quota import tide
from tidesched_web.quota.models import TidePlan
from tidesched_web.quota.tide_selectors import document_of, layers_in_sight, visible_queue_names, visible_tide_plans


class TidePlanFilters(django_filters.FilterSet):
    """Filters of `tide-plans`."""

    cluster = ReferenceFilter(relation="cluster", by="slug", among=visible_clusters)
    name = TextFilter()
    enabled = YesNoFilter()


@dataclass(frozen=True, slots=True)
class _Seen:
    """A plan within the caller's sight, at the cluster's moment."""

    layers: list[dict[str, Any]]
    hidden: int
    open: list[str]
    next_change: dt.datetime | None


class TidePlans(ReadView):
    """Tide plans: all of them for who sees everything, for a member those about queues of theirs."""

    scopes = (Scope.QUOTA_READ,)
    write_scopes = (Scope.QUOTA_WRITE,)
    model = TidePlan
    serializer_class = TidePlanDocument
    filterset_class = TidePlanFilters
    etag = True

    def visible(self) -> QuerySet[TidePlan]:
        return visible_tide_plans(self.access)

    def rows_context(self, rows: Rows) -> dict[str, Any]:
        names = visible_queue_names(self.access, {row.cluster_id for row in rows})
        return {"plans": {row.pk: self._seen(row, names) for row in rows}}

    def _seen(self, row: TidePlan, names: set[tuple[int, str]]) -> _Seen:
        layers, hidden = layers_in_sight(row, self.access, names)
        plan = tide.plan_of(row.name, {**document_of(row), "layers": layers})
        now = row.cluster.clock()
        open_now = [plan.layers[number].name for _place, number in tide.open_layers([plan], now)]
        return _Seen(layers, hidden, open_now if row.enabled else [], tide.next_change([plan], now))

    @extend_schema(
        request=TidePlanInput,
        responses={201: TidePlanDocument, 202: ChangeDocument},
        parameters=[IDEMPOTENCY, DRY_RUN_PARAMETER],
    )
    @idempotent
    def create(self, request: Request) -> Response:
        """Make a plan. 202 with the change where approval is due; ``dry_run`` answers with the plan of the change."""
        require_administrator(self.access)
        wanted = checked_body(TidePlanInput, request)
        cluster: Cluster = referred(visible_clusters(self.access), wanted.pop("cluster"), "/cluster", by="slug")
        reason, name = wanted.pop("reason"), wanted.pop("name")
        if self.visible().filter(cluster=cluster, name=name).exists():
            raise DomainError.for_field("/name", f"{cluster.name} has a plan {name!r} already.", code="already_exists")
        edits = {self._key(name): wanted}
        if is_dry_run(request):
            return preview(self, cluster, edits)
        return carried_out(
            self,
            cluster,
            edits,
            reason=reason,
            done=lambda: self.made(self.visible().get(cluster=cluster, name=name)),
        )

    @extend_schema(
        request=TidePlanPatch,
        responses={200: TidePlanDocument, 202: ChangeDocument},
        parameters=[IF_MATCH_NEEDED, DRY_RUN_PARAMETER],
    )
    def partial_update(self, request: Request, pk: int) -> Response:
        """Change a plan (a merge patch); ``enabled`` switches it."""
        plan = self.get_object()
        require_administrator(self.access)
        wanted = checked_body(TidePlanPatch, request)
        reason = wanted.pop("reason")
        return self._write(request, plan, wanted, reason, lambda: self.changed(plan))

    @extend_schema(
        request=DeleteInput,
        responses={204: None, 202: ChangeDocument},
        parameters=[IF_MATCH_NEEDED, DRY_RUN_PARAMETER],
    )
    def destroy(self, request: Request, pk: int) -> Response:
        """Delete a plan: the base holds again."""
        plan = self.get_object()
        require_administrator(self.access)
        reason = checked_body(DeleteInput, request).get("reason", "")
        return self._write(request, plan, None, reason, lambda: Response(status=status.HTTP_204_NO_CONTENT))

    def _write(self, request: Request, plan: TidePlan, patch: Any, reason: str, done: Any) -> Response:
        key = self._key(plan.name)
        seen = expected_version(request, needed=not is_dry_run(request))
        if is_dry_run(request):
            return preview(self, plan.cluster, {key: patch})
        versions = {} if seen is None else {key: seen}
        return carried_out(self, plan.cluster, {key: patch}, reason=reason, versions=versions, done=done)

    def _key(self, name: str) -> str:
        if "/" in name:
            raise DomainError.for_field("/name", "A plan's name has no slash.")
        return key_of("tide-plan", name)
