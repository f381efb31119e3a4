import datetime as dt
from collections.abc import Callable
from typing import ClassVar

import django_filters
from django.db.models import Q, QuerySet
from django.utils.dateparse import parse_datetime
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from tidesched_web.accounts.models import Scope
from tidesched_web.api import pagination
from tidesched_web.api.filters import MOMENT, IdFilter, OneOf, ReferenceFilter, TextFilter, TimeFilter, codes
from tidesched_web.api.v1.serializers.scheduling import (
    DecisionDocument,
    ReclaimDocument,
    SessionDocument,
    UsagePointDocument,
)
from tidesched_web.api.views import Documents, ReadView, Rows, ScopedView
from tidesched_web.clusters.selectors import visible_clusters
from tidesched_web.common.calendar_bounds import OutOfCalendar, in_calendar
from tidesched_web.common.errors import DomainError
from tidesched_web.common.models import ServiceType
from tidesched_web.common.permissions import Access
from tidesched_web.quota.models import Queue
from tidesched_web.quota.selectors import visible_queues
from tidesched_web.scheduling.models import (
    RECLAIM_ACTIONS,
    Reclaim,
    ReclaimMaker,
    ReclaimSource,
    ReclaimState,
    Session,
    SessionState,
)
from tidesched_web.scheduling.reclaim_selectors import (
    gained_by_queue,
    gained_by_service,
    gained_by_tenant,
    lost_by,
    lost_by_queue,
    lost_by_tenant,
    mentions,
    moved_card,
    touched_queue,
    touched_tenant,
)
from tidesched_web.scheduling.selectors import own_queue_ids, visible_decisions, visible_reclaims, visible_sessions
from tidesched_web.scheduling.sight import reclaim_within_sight
from tidesched_web.scheduling.usage_selectors import usage_at, usage_changes
from tidesched_web.scheduling.usage_series import resampled, summed
from tidesched_web.workloads.selectors import visible_gang_keys


class SessionFilters(django_filters.FilterSet):
    cluster = ReferenceFilter(relation="cluster", by="slug", among=visible_clusters)
    state = OneOf(choices=SessionState.choices)
    number = IdFilter(label="Number of the session in its cluster.")


SessionFilters.base_filters["from"] = TimeFilter(field_name="now", lookup_expr="gte")
SessionFilters.base_filters["to"] = TimeFilter(field_name="now", lookup_expr="lt")


class Sessions(ReadView):
    """Runs of the scheduler in the clusters that the caller sees, the newest first."""

    scopes = (Scope.CLUSTER_READ, Scope.RECLAIM_READ)
    model = Session
    serializer_class = SessionDocument
    filterset_class = SessionFilters
    newest_first = True

    def visible(self) -> QuerySet[Session]:
        return visible_sessions(self.access)

    def known_parameters(self) -> set[str]:
        return set(pagination.PARAMETERS) if self.action == "decisions" else super().known_parameters()

    @extend_schema(responses=DecisionDocument(many=True))
    @action(detail=True, methods=["get"], filter_backends=[])
    def decisions(self, request: Request, pk: int) -> Response:
        """List a session's decisions. A member sees those about gangs of their own tenants."""
        return self.sub_list(visible_decisions(self.access, self.get_object()), DecisionDocument)


class ReclaimFilters(django_filters.FilterSet):
    """``from`` and ``to`` are of the cluster's clock. Queues, tenants and cards: on the caller's side only."""

    cluster = ReferenceFilter(relation="cluster", by="slug", among=visible_clusters)
    queue = django_filters.CharFilter(method="by_side", label="Id or name of a queue that gained or lost.")
    gainer_queue = django_filters.CharFilter(method="by_side", label="Id or name of the queue that gained.")
    loser_queue = django_filters.CharFilter(method="by_side", label="Id or name of a queue that lost.")
    tenant = django_filters.CharFilter(method="by_side", label="Id or slug of a tenant that gained or lost.")
    gainer_tenant = django_filters.CharFilter(method="by_side", label="Id or slug of the tenant that gained.")
    loser_tenant = django_filters.CharFilter(method="by_side", label="Id or slug of a tenant that lost.")
    gainer_service = OneOf(
        method="by_side", choices=ServiceType.choices, label="The service type of the queue that gained."
    )
    card = django_filters.CharFilter(method="by_side", label="A card type that was needed or freed.")
    loser = django_filters.CharFilter(method="by_side", label="Text in the name of a gang or queue that lost.")
    q = django_filters.CharFilter(method="by_side", label="Text in the name of a gang or queue of either side.")
    session = IdFilter(field_name="session_id", label="Id of the session.")
    reclaimer = TextFilter(label="namespace/name")
    victim = TextFilter(field_name="victims__gang", label="namespace/name")
    action = OneOf(choices=codes(RECLAIM_ACTIONS))
    source = OneOf(choices=ReclaimSource.choices)
    made_by = OneOf(choices=ReclaimMaker.choices)
    state = OneOf(choices=ReclaimState.choices)
    wall_from = TimeFilter(field_name="wall_at", lookup_expr="gte")
    wall_to = TimeFilter(field_name="wall_at", lookup_expr="lt")

    SIDES: ClassVar[dict[str, Callable[[Access, str], Q]]] = {
        "queue": touched_queue,
        "gainer_queue": gained_by_queue,
        "gainer_service": gained_by_service,
        "loser_queue": lost_by_queue,
        "tenant": touched_tenant,
        "gainer_tenant": gained_by_tenant,
        "loser_tenant": lost_by_tenant,
        "card": moved_card,
        "loser": lost_by,
        "q": mentions,
    }

    def by_side(self, reclaims: QuerySet[Reclaim], name: str, value: str) -> QuerySet[Reclaim]:
        access: Access = self.request.parser_context["view"].access
        return reclaims.filter(self.SIDES[name](access, value))


ReclaimFilters.base_filters["from"] = TimeFilter(field_name="at", lookup_expr="gte")
ReclaimFilters.base_filters["to"] = TimeFilter(field_name="at", lookup_expr="lt")


class Reclaims(ReadView):
    """Reclaims in which a queue of the caller's tenants gained or lost, the newest first."""

    scopes = (Scope.RECLAIM_READ,)
    model = Reclaim
    serializer_class = ReclaimDocument
    filterset_class = ReclaimFilters
    newest_first = True

    def visible(self) -> QuerySet[Reclaim]:
        return visible_reclaims(self.access)

    def documents(self, rows: Rows) -> Documents:
        own_queues: frozenset[int] | None = None
        own_gangs: set[tuple[int, str]] = set()
        if not self.access.everything:
            own_queues = own_queue_ids(self.access)
            refused = {item["gang"] for row in rows if row.queue_id in own_queues for item in row.refused}
            if refused:
                own_gangs = visible_gang_keys(self.access, {row.cluster_id for row in rows}, refused)
        shown = [reclaim_within_sight(row, own_queues, own_gangs) for row in rows]
        context = self.get_serializer_context()
        return ReclaimDocument(shown, many=True, context=context).data  # type: ignore[return-value]


MAX_POINTS, MAX_CHANGES = 5000, 50_000
_STEP_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


class Usage(ScopedView):
    """Usage of a queue, or of all queues of a cluster that the caller sees, as a step function."""

    scopes = (Scope.METRICS_READ, Scope.QUOTA_READ)

    def known_parameters(self) -> set[str]:
        return {"cluster", "queue", "card", "from", "to", "step"}

    @extend_schema(
        operation_id="usage_list",
        responses=UsagePointDocument(many=True),
        parameters=[
            OpenApiParameter(
                "cluster",
                {"type": "string", "example": "east"},
                description="Id or slug. One of cluster and queue is needed, both where several clusters have a queue "
                "of that name.",
            ),
            OpenApiParameter(
                "queue",
                {"type": "string", "example": "acme-online"},
                description="Id or name; without it the sum of all queues in sight.",
            ),
            OpenApiParameter(
                "card",
                str,
                description="Without it the sum over all card types in physical cards: a slice or share counts as its "
                "part of one.",
            ),
            OpenApiParameter("from", OpenApiTypes.DATETIME, description="Of the cluster's clock; 24 h before `to`."),
            OpenApiParameter("to", OpenApiTypes.DATETIME, description="Of the cluster's clock; now."),
            OpenApiParameter(
                "step",
                {"type": "string", "pattern": "^[1-9][0-9]{0,7}[smhd]?$", "example": "1h"},
                description="Seconds, or 30s, 5m, 1h, 1d; without it the change points.",
            ),
        ],
    )
    def get(self, request: Request) -> Response:
        """Read usage over time.

        An array of points in order: a step function at its change points, or with `step` its value at each step.
        Without `queue` it is the sum of the cluster's queues in sight, without `card` the sum of all cards. Before the
        first known point there is a gap, not a zero.
        """
        for name, value in request.query_params.items():
            if "\0" in value:
                raise DomainError.for_field(f"/{name}", "A zero byte is in no name that there is.")
        queues = self._queues(request)
        cluster = queues[0].cluster
        end = _moment(request, "to", cluster.clock())
        start = _moment(request, "from", end - dt.timedelta(hours=24))
        if start > end:
            raise DomainError.for_field("/from", "The beginning lies behind the end.", code="against_rules")
        step = _step(request)
        if step is not None and (end - start) / step >= MAX_POINTS:
            raise _too_many("/step")
        card = request.query_params.get("card")
        ids = [queue.pk for queue in queues]
        changes = usage_changes(ids, card, start, end, limit=MAX_CHANGES + 1)
        if len(changes) > MAX_CHANGES:
            raise _too_many("/from")
        series = summed(usage_at(ids, card, start), changes, physical=card is None)
        points = list(series if step is None else resampled(series, start, end, step))
        if len(points) > MAX_POINTS:
            raise _too_many("/step")
        return Response(UsagePointDocument(points, many=True).data)

    def _queues(self, request: Request) -> list[Queue]:
        """The queues that are asked for; all of one cluster, since each cluster has a clock of its own."""
        params = request.query_params
        if not params.get("cluster") and not params.get("queue"):
            raise DomainError.for_field("/cluster", "Say which cluster or which queue.", code="against_rules")
        queues = visible_queues(self.access)
        if params.get("cluster"):
            queues = _referred(queues, "cluster_id", "cluster__slug", params["cluster"])
        if params.get("queue"):
            queues = _referred(queues, "pk", "name", params["queue"])
        found = list(queues.order_by("pk"))
        if not found:
            raise DomainError("not_found", "You see no such queue.")
        if len({queue.cluster_id for queue in found}) > 1:
            text = "Queues of this name are in several clusters: say which."
            raise DomainError.for_field("/cluster", text, code="against_rules")
        return found


def _referred(queues: QuerySet[Queue], by_id: str, by_name: str, value: str) -> QuerySet[Queue]:
    numbered = value.isascii() and value.isdigit() and len(value) < 19
    return queues.filter(**({by_id: int(value)} if numbered else {by_name: value}))


def _too_many(pointer: str) -> DomainError:
    return DomainError.for_field(
        pointer, f"That is more than {MAX_POINTS} points: ask for less time or a longer step.", code="too_many_points"
    )


def _moment(request: Request, name: str, default: dt.datetime) -> dt.datetime:
    text = request.query_params.get(name)
    if text is None:
        return default
    try:
        found = parse_datetime(text.strip().replace(" ", "+"))  # an unescaped "+" arrives as a blank
        if found is not None:
            return in_calendar(found if found.tzinfo else found.replace(tzinfo=dt.UTC), text)
    except OutOfCalendar as error:
        raise DomainError.for_field(f"/{name}", str(error)) from None
    except ValueError:  # a day or an hour that there is not
        pass
    raise DomainError.for_field(f"/{name}", f"{text[:80]!r}: {MOMENT}")


def _step(request: Request) -> dt.timedelta | None:
    text = request.query_params.get("step")
    if text is None:
        return None
    figure, unit = (text[:-1], text[-1]) if text[-1:] in _STEP_UNITS else (text, "s")
    if not figure.isascii() or not figure.isdigit() or not int(figure[:9]) > 0 or len(figure) > 9:
        raise DomainError.for_field("/step", f"{text!r} is no step: seconds, or 30s, 5m, 1h, 1d.")
    return dt.timedelta(seconds=int(figure) * _STEP_UNITS[unit])
