import django_filters
from django.db.models import Q, QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from tidesched_web.accounts.models import Scope
from tidesched_web.api.body import checked_body
from tidesched_web.api.filters import OneOf, ReferenceFilter
from tidesched_web.api.idempotency import idempotent
from tidesched_web.api.v1.serializers.changes import SayWhy
from tidesched_web.api.v1.serializers.scheduling import ALERT_CODES, AlertDocument
from tidesched_web.api.views import ReadView
from tidesched_web.api.writes import IDEMPOTENCY
from tidesched_web.clusters.selectors import visible_clusters
from tidesched_web.common.errors import DomainError
from tidesched_web.common.permissions import require_platform_admin
from tidesched_web.scheduling import services
from tidesched_web.scheduling.models import Alert, AlertSeverity
from tidesched_web.scheduling.selectors import visible_alerts

_STATES = {
    "open": Q(resolved_at__isnull=True, acknowledged_at__isnull=True),
    "acknowledged": Q(resolved_at__isnull=True, acknowledged_at__isnull=False),
    "resolved": Q(resolved_at__isnull=False),
}


class AlertFilters(django_filters.FilterSet):
    cluster = ReferenceFilter(relation="cluster", by="slug", among=visible_clusters)
    severity = OneOf(choices=AlertSeverity.choices)
    code = OneOf(choices=ALERT_CODES)
    state = OneOf(choices=[(name, name) for name in _STATES], method="in_state")

    def in_state(self, queryset: QuerySet[Alert], _: str, value: str) -> QuerySet[Alert]:
        return queryset.filter(_STATES[value])


class Alerts(ReadView):
    """Alerts of the clusters that the caller sees, the newest first; figures for who sees everything."""

    scopes = (Scope.CLUSTER_READ, Scope.RECLAIM_READ)
    act_scopes = (Scope.ADMIN,)
    model = Alert
    serializer_class = AlertDocument
    filterset_class = AlertFilters
    newest_first = True

    def visible(self) -> QuerySet[Alert]:
        return visible_alerts(self.access)

    @extend_schema(request=SayWhy, responses=AlertDocument, parameters=[IDEMPOTENCY])
    @action(detail=True, methods=["post"])
    @idempotent
    def acknowledge(self, request: Request, pk: int) -> Response:
        """Acknowledge an alert. It ends with its condition; 409 where it has ended. Role: platform admin."""
        alert, wanted = self._decided(request)
        if not services.acknowledge_alert(alert=alert, actor=self.access.actor, note=wanted):
            raise DomainError("conflict", "It is acknowledged already, or has ended.")
        return self.changed(alert)

    @extend_schema(request=SayWhy, responses=AlertDocument, parameters=[IDEMPOTENCY])
    @action(detail=True, methods=["post"], url_path="hand-back")
    @idempotent
    def hand_back(self, request: Request, pk: int) -> Response:
        """Hand an alert back. It is open again, and counts; 409 where no one has it. Role: platform admin."""
        alert, wanted = self._decided(request)
        if not services.hand_back_alert(alert=alert, actor=self.access.actor, reason=wanted):
            raise DomainError("conflict", "It is not acknowledged, or has ended.")
        return self.changed(alert)

    @extend_schema(request=SayWhy, responses=AlertDocument, parameters=[IDEMPOTENCY])
    @action(detail=True, methods=["post"])
    @idempotent
    def resolve(self, request: Request, pk: int) -> Response:
        """Resolve an alert. That of the eviction budget lets one session pass. Role: platform admin."""
        alert, wanted = self._decided(request)
        if not services.resolve_alert(alert=alert, actor=self.access.actor, reason=wanted):
            raise DomainError("conflict", "It has ended already.")
        return self.changed(alert)

    def _decided(self, request: Request) -> tuple[Alert, str]:
        alert = self.get_object()
        require_platform_admin(self.access)
        return alert, str(checked_body(SayWhy, request)["reason"])
