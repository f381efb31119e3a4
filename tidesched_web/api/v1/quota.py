from typing import Any

import django_filters
from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from tidesched_web.accounts.models import Scope
from tidesched_web.accounts.selectors import visible_business_lines, visible_projects, visible_tenants
from tidesched_web.api.body import checked_body
from tidesched_web.api.filters import OneOf, ReferenceFilter, TextFilter
from tidesched_web.api.v1.references import referred
from tidesched_web.api.v1.serializers.changes import ChangeDocument
from tidesched_web.api.v1.serializers.owners import DeleteInput
from tidesched_web.api.v1.serializers.quota import PriorityClassDocument, QueueDocument
from tidesched_web.api.v1.serializers.tree_writes import (
    GrantDocument,
    GrantInput,
    PriorityClassInput,
    PriorityClassPatch,
    QueueInput,
    QueuePatch,
)
from tidesched_web.api.v1.tree_writes import TreeWrites, kept, queue_owner
from tidesched_web.api.views import Rows
from tidesched_web.api.writes import DRY_RUN_PARAMETER, IDEMPOTENCY, IF_MATCH, IF_MATCH_NEEDED, REASON_IN_ADDRESS
from tidesched_web.changes.tree_document import key_of
from tidesched_web.clusters.selectors import visible_clusters
from tidesched_web.common.models import ServiceType
from tidesched_web.common.permissions import require_admin_of, require_administrator
from tidesched_web.quota.models import NamespaceGrant, PriorityClass, Queue, QueueState
from tidesched_web.quota.selectors import visible_grants, visible_priority_classes, visible_queues, with_card_quota
from tidesched_web.quota.tide_selectors import effective_of
from tidesched_web.scheduling.usage_selectors import usage_now

MAKES = [IDEMPOTENCY, DRY_RUN_PARAMETER]
CHANGES = [IF_MATCH_NEEDED, DRY_RUN_PARAMETER]
DELETES = [*CHANGES, REASON_IN_ADDRESS]


class QueueFilters(django_filters.FilterSet):
    cluster = ReferenceFilter(relation="cluster", by="slug", among=visible_clusters)
    name = TextFilter()
    service_type = OneOf(choices=ServiceType.choices)
    tenant = ReferenceFilter(relation="tenant", by="slug", among=visible_tenants)
    project = ReferenceFilter(relation="project", by="slug", among=visible_projects)
    business_line = ReferenceFilter(relation="business_line", by="slug", among=visible_business_lines)
    state = OneOf(choices=QueueState.choices)


# What a document of a queue says, and what the clock and the tree of its cluster need to know of it.
_SHOWN = (
    "name", "service_type", "weight", "priority", "reclaimable", "cpu_milli", "memory_mib", "state", "version",
    "sync_state", "sync_error",
    "cluster__name", "cluster__slug", "cluster__clock_rate", "cluster__clock_anchor", "cluster__clock_wall_anchor",
    "cluster__overcommit_inference", "cluster__overcommit_training",
    *(f"{owner}__{field}" for owner in ("tenant", "project", "business_line") for field in ("name", "slug")),
)  # fmt: skip


class Queues(TreeWrites):
    """Queues of the caller's tenants, with what they may use and what they use now."""

    scopes = (Scope.QUOTA_READ,)
    kind = "queue"
    model = Queue
    serializer_class = QueueDocument
    filterset_class = QueueFilters
    etag = True

    def visible(self) -> QuerySet[Queue]:
        queues = with_card_quota(visible_queues(self.access))
        return queues.only(*_SHOWN) if self.action in ("list", "retrieve") else queues

    def rows_context(self, rows: Rows) -> dict[str, Any]:
        return {"usage": usage_now(rows), "effective": effective_of(rows)}

    def require_writer_of(self, row: Queue) -> None:
        require_admin_of(self.access, row.tenant_id)

    @extend_schema(request=QueueInput, responses={201: QueueDocument, 202: ChangeDocument}, parameters=MAKES)
    @kept
    def create(self, request: Request) -> Response:
        """Make a queue. What is left out takes the defaults of its service type. Role: admin of the tenant."""
        wanted = checked_body(QueueInput, request)
        cluster, name, reason = self.cluster_of(wanted), wanted.pop("name"), wanted.pop("reason", "")
        document = {**queue_owner(self, wanted), **wanted}
        return self.make(cluster, key_of("queue", name), document, reason, name=name)

    @extend_schema(request=QueuePatch, responses={200: QueueDocument, 202: ChangeDocument}, parameters=CHANGES)
    def partial_update(self, request: Request, pk: int) -> Response:
        """Change a queue. A card that is left out stays, null takes it away. Role: admin of the tenant."""
        queue = self.writable()
        patch = checked_body(QueuePatch, request)
        return self.edit(queue, patch, patch.pop("reason", ""))

    @extend_schema(request=DeleteInput, responses={204: None, 202: ChangeDocument}, parameters=DELETES)
    def destroy(self, request: Request, pk: int) -> Response:
        """Delete a queue. The queue has to be closed and drained (else 409). Role: admin of the tenant."""
        return self.remove(self.writable())


class PriorityClassFilters(django_filters.FilterSet):
    cluster = ReferenceFilter(relation="cluster", by="slug", among=visible_clusters)
    name = TextFilter()


class PriorityClasses(TreeWrites):
    """Priority classes of the clusters that the caller sees."""

    scopes = (Scope.QUOTA_READ,)
    kind = "priority-class"
    model = PriorityClass
    serializer_class = PriorityClassDocument
    filterset_class = PriorityClassFilters
    etag = True

    def visible(self) -> QuerySet[PriorityClass]:
        return visible_priority_classes(self.access)

    @extend_schema(
        request=PriorityClassInput, responses={201: PriorityClassDocument, 202: ChangeDocument}, parameters=MAKES
    )
    @kept
    def create(self, request: Request) -> Response:
        """Make a priority class. By a quota change, which may wait for approval. Role: platform admin."""
        require_administrator(self.access)
        wanted = checked_body(PriorityClassInput, request)
        cluster, name, reason = self.cluster_of(wanted), wanted.pop("name"), wanted.pop("reason", "")
        return self.make(cluster, key_of("priority-class", name), wanted, reason, name=name)

    @extend_schema(
        request=PriorityClassPatch, responses={200: PriorityClassDocument, 202: ChangeDocument}, parameters=CHANGES
    )
    def partial_update(self, request: Request, pk: int) -> Response:
        """Change a priority class. Another `value` needs `replace: true`. Role: platform admin."""
        row = self.writable()
        patch = checked_body(PriorityClassPatch, request)
        return self.edit(row, patch, patch.pop("reason", ""))

    @extend_schema(request=DeleteInput, responses={204: None, 202: ChangeDocument}, parameters=DELETES)
    def destroy(self, request: Request, pk: int) -> Response:
        """Delete a priority class. Pods that have it keep their number. Role: platform admin."""
        return self.remove(self.writable())


class GrantFilters(django_filters.FilterSet):
    cluster = ReferenceFilter(relation="cluster", by="slug", among=visible_clusters)
    queue = ReferenceFilter(relation="queue", by="name", among=visible_queues)
    namespace = TextFilter()


class Grants(TreeWrites):
    """Which namespaces may use the queues that the caller sees."""

    scopes = (Scope.QUOTA_READ,)
    kind = "grant"
    versioned = False
    etag = True
    model = NamespaceGrant
    serializer_class = GrantDocument
    filterset_class = GrantFilters

    def visible(self) -> QuerySet[NamespaceGrant]:
        return visible_grants(self.access).select_related("cluster")

    def key_of_row(self, row: NamespaceGrant) -> str:
        return key_of("grant", row.namespace, row.queue.name)

    def require_writer_of(self, row: NamespaceGrant) -> None:
        require_admin_of(self.access, row.queue.tenant_id)

    @extend_schema(request=GrantInput, responses={201: GrantDocument, 202: ChangeDocument}, parameters=MAKES)
    @kept
    def create(self, request: Request) -> Response:
        """Make a grant. The first one of a cluster is for platform admins. Role: admin of the tenant."""
        wanted = checked_body(GrantInput, request)
        cluster, reason = self.cluster_of(wanted), wanted.pop("reason", "")
        queue = referred(visible_queues(self.access).filter(cluster=cluster), wanted["queue"], "/queue", by="name")
        require_admin_of(self.access, queue.tenant_id)
        key = key_of("grant", wanted["namespace"], queue.name)
        return self.make(cluster, key, {}, reason, namespace=wanted["namespace"], queue=queue)

    @extend_schema(request=DeleteInput, responses={204: None, 202: ChangeDocument}, parameters=[IF_MATCH, *DELETES[1:]])
    def destroy(self, request: Request, pk: int) -> Response:
        """Delete a grant. The namespace may use the queue no longer. Role: admin of the tenant."""
        return self.remove(self.writable())
