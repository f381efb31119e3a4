"""`queues` and `priority-classes`."""

from __future__ import annotations

from typing import Any

import django_filters
from django.db.models import QuerySet

from tidesched_web.accounts.models import Scope
from tidesched_web.accounts.selectors import visible_business_lines, visible_projects, visible_tenants
from tidesched_web.api.filters import ReferenceFilter, TextFilter
from tidesched_web.api.v1.serializers.quota import PriorityClassDocument, QueueDocument
from tidesched_web.api.views import ReadView, Rows
from tidesched_web.clusters.selectors import visible_clusters
from tidesched_web.common.models import ServiceType
from tidesched_web.quota.models import PriorityClass, Queue, QueueState
from tidesched_web.quota.selectors import visible_priority_classes, visible_queues, with_card_quota
from tidesched_web.quota.tide_selectors import effective_of
from tidesched_web.scheduling.usage_selectors import usage_now


class QueueFilters(django_filters.FilterSet):
    """Filters of `queues`."""

    cluster = ReferenceFilter(relation="cluster", by="slug", among=visible_clusters)
    name = TextFilter()
    service_type = django_filters.ChoiceFilter(choices=ServiceType.choices)
    tenant = ReferenceFilter(relation="tenant", by="slug", among=visible_tenants)
    project = ReferenceFilter(relation="project", by="slug", among=visible_projects)
    business_line = ReferenceFilter(relation="business_line", by="slug", among=visible_business_lines)
    state = django_filters.ChoiceFilter(choices=QueueState.choices)


class Queues(ReadView):
    """Queues of the caller's tenants, with what they may use and what they use now."""

    scopes = (Scope.QUOTA_READ,)
    model = Queue
    serializer_class = QueueDocument
    filterset_class = QueueFilters
    etag = True

    def visible(self) -> QuerySet[Queue]:
        return with_card_quota(visible_queues(self.access))

    def rows_context(self, rows: Rows) -> dict[str, Any]:
        return {"usage": usage_now(rows), "effective": effective_of(rows)}


class PriorityClassFilters(django_filters.FilterSet):
    """Filters of `priority-classes`."""

    cluster = ReferenceFilter(relation="cluster", by="slug", among=visible_clusters)
    name = TextFilter()


class PriorityClasses(ReadView):
    """Priority classes of the clusters that the caller sees."""

    scopes = (Scope.QUOTA_READ,)
    model = PriorityClass
    serializer_class = PriorityClassDocument
    filterset_class = PriorityClassFilters
    etag = True

    def visible(self) -> QuerySet[PriorityClass]:
        return visible_priority_classes(self.access)
