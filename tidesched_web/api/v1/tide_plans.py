import datetime as dt
from dataclasses import dataclass
from typing import Any

import django_filters
from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from tidesched_web.accounts.models import Scope
from tidesched_web.api import pagination
from tidesched_web.api.body import checked_body, reason_in_address
from tidesched_web.api.filters import ReferenceFilter, TextFilter, YesNoFilter
from tidesched_web.api.v1.change_answers import carried_out, preview
from tidesched_web.api.v1.references import referred
from tidesched_web.api.v1.serializers.changes import ChangeDocument
from tidesched_web.api.v1.serializers.owners import DeleteInput
from tidesched_web.api.v1.serializers.tide_plans import TidePlanDocument, TidePlanInput, TidePlanPatch, TideStepDocument
from tidesched_web.api.v1.tree_writes import kept
from tidesched_web.api.views import ReadView, Rows
from tidesched_web.api.writes import (
    DRY_RUN_PARAMETER,
    IDEMPOTENCY,
    IF_MATCH_NEEDED,
    REASON_IN_ADDRESS,
    expected_version,
    is_dry_run,
)
from tidesched_web.changes import services
from tidesched_web.changes.tree_document import key_of
from tidesched_web.clusters.models import Cluster
from tidesched_web.clusters.selectors import visible_clusters
from tidesched_web.common.errors import DomainError
from tidesched_web.common.permissions import require_administrator
from tidesched_web.quota import tide
from tidesched_web.quota.models import TidePlan
from tidesched_web.quota.tide_overlaps import Overlap, overlaps_of_each
from tidesched_web.quota.tide_selectors import (
    document_of,
    layers_in_sight,
    steps_of_plan,
    visible_queue_names,
    visible_tide_plans,
)


class TidePlanFilters(django_filters.FilterSet):
    cluster = ReferenceFilter(relation="cluster", by="slug", among=visible_clusters)
    name = TextFilter()
    enabled = YesNoFilter(label="`true`: plans that are switched on; `false`: those that are off.")


@dataclass(frozen=True, slots=True)
class _Seen:
    layers: list[dict[str, Any]]
    hidden: int
    open: list[str]
    next_change: dt.datetime | None
    overlaps: list[Overlap]


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

    def known_parameters(self) -> set[str]:
        if self.action == "steps":
            return set(pagination.PARAMETERS)
        return {*super().known_parameters(), *(("reason",) if self.action == "destroy" else ())}

    @extend_schema(responses=TideStepDocument(many=True))
    @action(detail=True, methods=["get"], filter_backends=[])
    def steps(self, request: Request, pk: int) -> Response:
        """List a tide plan's steps. Figures that its layers changed, the newest first, and what the cluster said."""
        plan = self.get_object()
        rows = steps_of_plan(self.access, plan.cluster_id, plan.name)
        return self.sub_list(rows, TideStepDocument, newest_first=True)

    def rows_context(self, rows: Rows) -> dict[str, Any]:
        clusters = {row.cluster_id for row in rows}
        names = visible_queue_names(self.access, clusters)
        others: dict[int, dict[str, dict[str, Any]]] = {pk: {} for pk in clusters}
        for other in self.visible().filter(cluster__in=clusters):
            layers, _hidden = layers_in_sight(other, self.access, names)
            others[other.cluster_id][other.name] = {**document_of(other), "layers": layers}
        overlaps: dict[int, list[Overlap]] = {}
        for cluster_id, documents in others.items():
            here = [row for row in rows if row.cluster_id == cluster_id and row.name in documents]
            each = overlaps_of_each(documents, [row.name for row in here], here[0].cluster.clock()) if here else {}
            overlaps |= {row.pk: each[row.name] for row in here}
        return {"plans": {row.pk: self._seen(row, names, overlaps.get(row.pk, [])) for row in rows}}

    def _seen(self, row: TidePlan, names: set[tuple[int, str]], overlaps: list[Overlap]) -> _Seen:
        layers, hidden = layers_in_sight(row, self.access, names)
        plan = tide.plan_of(row.name, {**document_of(row), "layers": layers})
        now = row.cluster.clock()
        open_now = [plan.layers[number].name for _place, number in tide.open_layers([plan], now)]
        return _Seen(layers, hidden, open_now if row.enabled else [], tide.next_change([plan], now), overlaps)

    @extend_schema(
        request=TidePlanInput,
        responses={201: TidePlanDocument, 202: ChangeDocument},
        parameters=[IDEMPOTENCY, DRY_RUN_PARAMETER],
    )
    @kept
    def create(self, request: Request) -> Response:
        """Make a tide plan. By a quota change, which may wait for approval. Role: platform admin."""
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
            self, cluster, edits, reason=reason, done=lambda: self.made(self.visible().get(cluster=cluster, name=name))
        )

    @extend_schema(
        request=TidePlanPatch,
        responses={200: TidePlanDocument, 202: ChangeDocument},
        parameters=[IF_MATCH_NEEDED, DRY_RUN_PARAMETER],
    )
    def partial_update(self, request: Request, pk: int) -> Response:
        """Change a tide plan. A merge patch; `enabled` switches the plan on and off. Role: platform admin."""
        plan = self.get_object()
        require_administrator(self.access)
        wanted = checked_body(TidePlanPatch, request)
        reason = wanted.pop("reason")
        return self._write(request, plan, wanted, reason, lambda: self.changed(plan))

    @extend_schema(
        request=DeleteInput,
        responses={204: None, 202: ChangeDocument},
        parameters=[IF_MATCH_NEEDED, DRY_RUN_PARAMETER, REASON_IN_ADDRESS],
    )
    def destroy(self, request: Request, pk: int) -> Response:
        """Delete a tide plan. The base quota holds again. Role: platform admin."""
        plan = self.get_object()
        require_administrator(self.access)
        in_address = reason_in_address(request)
        reason = checked_body(DeleteInput, request).get("reason") or in_address
        return self._write(request, plan, None, reason, lambda: Response(status=status.HTTP_204_NO_CONTENT))

    def _write(self, request: Request, plan: TidePlan, patch: Any, reason: str, done: Any) -> Response:
        key = self._key(plan.name)
        seen = expected_version(request, needed=not is_dry_run(request))
        versions = {} if seen is None else {key: seen}
        if is_dry_run(request):
            services.require_versions(plan.cluster, versions)
            return preview(self, plan.cluster, {key: patch})
        return carried_out(self, plan.cluster, {key: patch}, reason=reason, versions=versions, done=done)

    def _key(self, name: str) -> str:
        if "/" in name:
            raise DomainError.for_field("/name", "A plan's name has no slash.")
        return key_of("tide-plan", name)
