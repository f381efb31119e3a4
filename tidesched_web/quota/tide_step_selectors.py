"""Steps of the tide plans that a caller may see."""

from __future__ import annotations

from django.db.models import QuerySet

from tidesched_web.clusters.selectors import visible_clusters
from tidesched_web.common.permissions import Access
from tidesched_web.quota.models import TideStep
from tidesched_web.quota.selectors import visible_queues


def visible_tide_steps(access: Access) -> QuerySet[TideStep]:
    """Steps in visible clusters; a member sees those of the queues of their tenants."""
    steps = TideStep.objects.filter(cluster__in=visible_clusters(access)).select_related("queue")
    return steps if access.everything else steps.filter(queue__in=visible_queues(access).values("pk"))


def steps_of_plan(access: Access, cluster_id: int, name: str) -> QuerySet[TideStep]:
    """The visible steps that a plan is about."""
    return visible_tide_steps(access).filter(cluster=cluster_id, plans__contains=[name])
