from collections import defaultdict
from typing import Any

import django_filters
from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from tidesched_web.accounts.models import Scope
from tidesched_web.api import pagination
from tidesched_web.api.filters import OneOf, ReferenceFilter, TextFilter, YesNoFilter, codes
from tidesched_web.api.v1.serializers.workloads import GangDetailDocument, GangDocument, GangEventDocument, PodDocument
from tidesched_web.api.views import ReadView, Rows
from tidesched_web.clusters.selectors import visible_clusters
from tidesched_web.engine.model import GangPhase, ReasonCode, ServiceType
from tidesched_web.quota.selectors import visible_queues
from tidesched_web.workloads.models import Gang, GangState
from tidesched_web.workloads.reason_figures import with_figures
from tidesched_web.workloads.remedy_selectors import with_remedies
from tidesched_web.workloads.selectors import pods_of, timeline_of, visible_gang_keys, visible_gangs, with_own_queue


class GangFilters(django_filters.FilterSet):
    cluster = ReferenceFilter(relation="cluster", by="slug", among=visible_clusters)
    queue = ReferenceFilter(relation="queue", by="name", among=visible_queues)
    namespace = TextFilter()
    name = TextFilter()
    service_type = OneOf(choices=codes(ServiceType))
    state = OneOf(choices=GangState.choices)
    phase = OneOf(choices=codes(GangPhase), label="`status.phase` of the PodGroup, in Volcano's words.")
    reason = OneOf(field_name="reason_code", choices=codes(ReasonCode))
    waiting = YesNoFilter(field_name="needs", label="`true`: gangs that ask for cards and have a place in the line.")
    gone = YesNoFilter(
        field_name="gone_at", lookup_expr="isnull", exclude=True, label="`true`: only those that left the cluster."
    )


_LIST_ONLY = (
    "cluster__name", "cluster__slug", "namespace", "name", "queue_id", "queue_name", "service_type", "priority",
    "min_member", "ready", "phase", "state", "cards", "waiting_since", "position", "reason_code", "reason_numbers",
    "reason_message", "figures_number", "figures_at", "needs", "worked_out",
    "gone_at", "started_at", "bound",
)  # fmt: skip


class Gangs(ReadView):
    """Gangs in the queues of the caller's tenants, the newest first."""

    scopes = (Scope.CLUSTER_READ, Scope.QUOTA_READ)
    model = Gang
    serializer_class = GangDocument
    filterset_class = GangFilters
    newest_first = True

    def visible(self) -> QuerySet[Gang]:
        gangs = with_figures(with_own_queue(visible_gangs(self.access), self.access))
        gangs = with_remedies(gangs).select_related("cluster")
        if self.action == "list":
            return gangs.only(*_LIST_ONLY)
        return gangs.defer("manifest", "cluster__credentials", "cluster__ca_certificate")

    def filter_queryset(self, queryset: QuerySet[Any]) -> QuerySet[Any]:
        queryset = super().filter_queryset(queryset)
        if self.action == "list" and "gone" not in self.request.query_params:
            return queryset.filter(gone_at__isnull=True)
        return queryset

    def get_serializer_class(self) -> Any:
        return GangDocument if self.action == "list" else GangDetailDocument

    def rows_context(self, rows: Rows) -> dict[str, Any]:
        """Names of the caller's queues by cluster and of the gangs that remedies name, read only where any is named."""
        if self.access.everything:
            return {"queue_names": {row.cluster_id: None for row in rows}, "own_gangs": frozenset()}
        names: dict[int, set[str]] = defaultdict(set)
        remedies = {row.pk: row.worked_out.remedy or {} for row in rows if hasattr(row, "worked_out")}
        named = [row for row in rows if row.reason_numbers.get("holders") or remedies.get(row.pk)]
        if named:
            own = visible_queues(self.access).filter(cluster_id__in={row.cluster_id for row in named})
            for cluster, name in own.values_list("cluster_id", "name"):
                names[cluster].add(name)
        gangs = {remedy["gang"] for remedy in remedies.values() if remedy.get("gang")}
        seen = visible_gang_keys(self.access, {row.cluster_id for row in named}, gangs) if gangs else set()
        return {"queue_names": {row.cluster_id: names[row.cluster_id] for row in rows}, "own_gangs": frozenset(seen)}

    def known_parameters(self) -> set[str]:
        return set(pagination.PARAMETERS) if self.action in ("pods", "timeline") else super().known_parameters()

    @extend_schema(responses=PodDocument(many=True))
    @action(detail=True, methods=["get"], filter_backends=[])
    def pods(self, request: Request, pk: int) -> Response:
        """List a gang's pods. The members of a gang with their node and cards."""
        return self.sub_list(pods_of(self.get_object()), PodDocument)

    @extend_schema(responses=GangEventDocument(many=True))
    @action(detail=True, methods=["get"], filter_backends=[])
    def timeline(self, request: Request, pk: int) -> Response:
        """List a gang's events. From its submission to its end, the first event first."""
        return self.sub_list(timeline_of(self.get_object()), GangEventDocument)
