from typing import Any

from django.db.models import Count, IntegerField, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.utils.translation import gettext as _

from tidesched_web.accounts.models import BusinessLine, Membership, Project, Tenant
from tidesched_web.accounts.selectors import visible_business_lines, visible_projects, visible_tenants
from tidesched_web.clusters.models import CardType, Cluster
from tidesched_web.common.errors import DomainError
from tidesched_web.common.models import ServiceType
from tidesched_web.common.permissions import Access
from tidesched_web.quota.models import NamespaceGrant, PriorityClass, Queue
from tidesched_web.quota.selectors import visible_queues_of
from tidesched_web.quota.tree_rules import ROOT, room
from tidesched_web.quota.tree_selectors import quota_tree


def _number(rows: QuerySet[Any], column: str) -> Coalesce:
    """How many of ``rows`` belong to the outer row; a sub-query, so that several counts do not multiply."""
    of_outer = rows.filter(**{column: OuterRef("pk")}).order_by().values(column)
    return Coalesce(Subquery(of_outer.annotate(n=Count("pk")).values("n"), output_field=IntegerField()), 0)


def tenants_listed(access: Access) -> QuerySet[Tenant]:
    return visible_tenants(access).annotate(
        projects_count=_number(Project.objects.all(), "tenant"),
        lines_count=_number(BusinessLine.objects.all(), "tenant"),
        queues_count=_number(Queue.objects.all(), "tenant"),
        members_count=_number(Membership.objects.all(), "tenant"),
    )


def projects_listed(access: Access) -> QuerySet[Project]:
    return visible_projects(access).annotate(queues_count=_number(Queue.objects.all(), "project"))


def business_lines_listed(access: Access) -> QuerySet[BusinessLine]:
    return visible_business_lines(access).annotate(queues_count=_number(Queue.objects.all(), "business_line"))


def tenants_managed(access: Access) -> QuerySet[Tenant]:
    tenants = visible_tenants(access).order_by("slug")
    return tenants if access.administers else tenants.filter(pk__in=access.admin_of)


def projects_managed(access: Access) -> QuerySet[Project]:
    projects = visible_projects(access).order_by("tenant__slug", "slug")
    return projects if access.administers else projects.filter(tenant_id__in=access.admin_of)


def lines_managed(access: Access) -> QuerySet[BusinessLine]:
    lines = visible_business_lines(access).order_by("tenant__slug", "slug")
    return lines if access.administers else lines.filter(tenant_id__in=access.admin_of)


def queues_managed(access: Access, cluster: Cluster) -> QuerySet[Queue]:
    queues = visible_queues_of(cluster, access).order_by("name")
    return queues if access.administers else queues.filter(tenant_id__in=access.admin_of)


Room = dict[str, int]


def room_of_owners(cluster: Cluster, access: Access) -> tuple[dict[int, Room], dict[int | None, Room]]:
    """What nothing limits is left out; so is what the cluster alone limits, for those who do not see all of it."""
    tree, whole = quota_tree(cluster), access.everything
    inference = room(tree, ServiceType.INFERENCE, whole=whole)
    training = room(tree, ServiceType.TRAINING, whole=whole)
    projects = {int(key.partition(":")[2]): left for key, left in inference.items() if key.startswith("project:")}
    tenants: dict[int | None, Room] = {None: training[ROOT]}
    for key, left in training.items():
        if key.startswith("tenant:"):
            tenants[int(key.partition(":")[2])] = left
    return projects, tenants


def has_grants(cluster: Cluster) -> bool:
    """Whether a cluster has any grant: without one every namespace may use every queue."""
    return NamespaceGrant.objects.filter(cluster=cluster).exists()


def refuse_taken(cluster: Cluster, kind: str, *parts: str) -> None:
    """Refuse what is there already: an edit of the tree would take it for a change of the one that is there."""
    named = parts[0]
    models: dict[str, type[Queue | PriorityClass | CardType]] = {
        "queue": Queue,
        "priority-class": PriorityClass,
        "card-type": CardType,
    }
    if kind == "grant":
        taken = NamespaceGrant.objects.filter(cluster=cluster, namespace=named, queue__name=parts[1]).exists()
    else:
        taken = models[kind]._base_manager.filter(cluster=cluster, name=named).exists()
    if taken:
        pointer = "/namespace" if kind == "grant" else "/name"
        text = _("%(name)s is there already.") % {"name": named}
        raise DomainError.for_field(pointer, text, code="already_exists")
