"""`clusters`, `card-types`, `nodes` and a cluster's `policy/`."""

from __future__ import annotations

from typing import Any

import django_filters
from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from tidesched_web.accounts.models import Scope
from tidesched_web.api.body import checked_body
from tidesched_web.api.filters import ReferenceFilter, TextFilter
from tidesched_web.api.idempotency import idempotent
from tidesched_web.api.v1.serializers.clusters import (
    CardTypeDocument,
    ClusterDocument,
    NodeDocument,
    PolicyDocument,
    ReasonInput,
)
from tidesched_web.api.views import ReadView
from tidesched_web.api.writes import IDEMPOTENCY
from tidesched_web.clusters import services
from tidesched_web.clusters.models import CardKind, CardType, Cluster, ClusterMode, Node
from tidesched_web.clusters.selectors import ruling_policy, visible_card_types, visible_clusters, visible_nodes
from tidesched_web.common.errors import DomainError
from tidesched_web.common.permissions import require_platform_admin
from tidesched_web.quota.selectors import with_promised
from tidesched_web.scheduling.selectors import clusters_with_sessions


class ClusterFilters(django_filters.FilterSet):
    """Filters of `clusters`."""

    slug = TextFilter()
    name = TextFilter()
    mode = django_filters.ChoiceFilter(choices=ClusterMode.choices)


class Clusters(ReadView):
    """Clusters that the caller sees, with the pause switch for platform admins."""

    scopes = (Scope.CLUSTER_READ, Scope.QUOTA_READ)
    model = Cluster
    serializer_class = ClusterDocument
    filterset_class = ClusterFilters
    etag = True

    def visible(self) -> QuerySet[Cluster]:
        return clusters_with_sessions(self.access)

    @extend_schema(request=ReasonInput, responses=ClusterDocument, parameters=[IDEMPOTENCY])
    @action(detail=True, methods=["post"])
    @idempotent
    def pause(self, request: Request, pk: int) -> Response:
        """Stop sending anything to the cluster until somebody resumes it."""
        cluster, reason = self._act(request)
        services.pause(cluster=cluster, actor=self.access.actor, reason=reason)
        return self.retrieve(request, pk=pk)

    @extend_schema(request=ReasonInput, responses=ClusterDocument, parameters=[IDEMPOTENCY])
    @action(detail=True, methods=["post"])
    @idempotent
    def resume(self, request: Request, pk: int) -> Response:
        """Let sessions send again."""
        cluster, reason = self._act(request)
        services.resume(cluster=cluster, actor=self.access.actor, reason=reason)
        return self.retrieve(request, pk=pk)

    def _act(self, request: Request) -> tuple[Cluster, str]:
        cluster = self.get_object()  # first, so that a cluster out of sight is a 404 for everybody
        require_platform_admin(self.access)
        return cluster, checked_body(ReasonInput, request)["reason"]

    @extend_schema(responses=PolicyDocument)
    @action(detail=True, methods=["get"])
    def policy(self, request: Request, pk: int) -> Response:
        """The policy that rules: the newest valid one."""
        cluster = self.get_object()
        revision = ruling_policy(cluster)
        if revision is None:
            raise DomainError("not_found", f"{cluster.name} has no valid policy yet.")
        revision.cluster = cluster
        return Response(PolicyDocument(revision, context=self.get_serializer_context()).data)


class CardTypeFilters(django_filters.FilterSet):
    """Filters of `card-types`."""

    cluster = ReferenceFilter(relation="cluster", by="slug", among=visible_clusters)
    name = TextFilter()
    kind = django_filters.ChoiceFilter(choices=CardKind.choices)


class CardTypes(ReadView):
    """Kinds of cards in the clusters that the caller sees."""

    scopes = (Scope.CLUSTER_READ, Scope.QUOTA_READ)
    model = CardType
    serializer_class = CardTypeDocument
    filterset_class = CardTypeFilters

    def visible(self) -> QuerySet[CardType]:
        return with_promised(visible_card_types(self.access))


class NodeFilters(django_filters.FilterSet):
    """Filters of `nodes`; those that left are shown with ``gone=true``."""

    cluster = ReferenceFilter(relation="cluster", by="slug", among=visible_clusters)
    name = TextFilter()
    card = django_filters.CharFilter(field_name="cards", lookup_expr="has_key", label="A card that it has.")
    gone = django_filters.BooleanFilter(field_name="gone_at", lookup_expr="isnull", exclude=True)


class Nodes(ReadView):
    """Nodes of the clusters that the caller sees."""

    scopes = (Scope.CLUSTER_READ,)
    model = Node
    serializer_class = NodeDocument
    filterset_class = NodeFilters

    def visible(self) -> QuerySet[Node]:
        return visible_nodes(self.access)

    def filter_queryset(self, queryset: QuerySet[Any]) -> QuerySet[Any]:
        queryset = super().filter_queryset(queryset)
        if self.action == "list" and "gone" not in self.request.query_params:
            return queryset.filter(gone_at__isnull=True)
        return queryset
