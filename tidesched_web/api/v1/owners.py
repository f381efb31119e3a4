from typing import Any

import django_filters
from django.db.models import Prefetch, QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from tidesched_web.accounts.models import BusinessLine, Project, Scope, Tenant
from tidesched_web.accounts.selectors import visible_business_lines, visible_projects, visible_tenants
from tidesched_web.api.body import checked_body, reason_in_address
from tidesched_web.api.filters import ReferenceFilter, TextFilter
from tidesched_web.api.v1.change_answers import accepted, preview, quota_patch
from tidesched_web.api.v1.references import referred
from tidesched_web.api.v1.serializers.accounts import ProjectDocument, TenantDocument
from tidesched_web.api.v1.serializers.changes import ChangeDocument
from tidesched_web.api.v1.serializers.owners import (
    BusinessLineDocument,
    BusinessLineInput,
    CardHoursDocument,
    DeleteInput,
    NamePatch,
    ProjectInput,
    ProjectPatch,
    TenantInput,
    TenantPatch,
)
from tidesched_web.api.views import ReadView
from tidesched_web.api.writes import (
    DRY_RUN_PARAMETER,
    IDEMPOTENCY,
    IF_MATCH,
    IF_MATCH_OF_QUOTA,
    REASON_IN_ADDRESS,
    expected_version,
    is_dry_run,
    write,
)
from tidesched_web.changes import services as changes
from tidesched_web.changes.tree_document import key_of
from tidesched_web.clusters.selectors import visible_clusters
from tidesched_web.common.permissions import require_admin_of, require_administrator
from tidesched_web.quota import services
from tidesched_web.quota.dependent_selectors import clusters_with_quota_of, dependents_of
from tidesched_web.quota.selectors import visible_queues, with_limits
from tidesched_web.scheduling.card_hours_selectors import card_hours

MAKES = [IDEMPOTENCY, DRY_RUN_PARAMETER]
CHANGES = [IF_MATCH, DRY_RUN_PARAMETER]
CHANGES_OF_QUOTA = [IF_MATCH_OF_QUOTA, DRY_RUN_PARAMETER]
DELETES = [*CHANGES, REASON_IN_ADDRESS]


def deleted(row: Any) -> Response:
    response = Response(status=status.HTTP_204_NO_CONTENT)
    response.data = {"dependents": [group.to_json() for group in row]} if row else None
    return response


class Owners(ReadView):
    scopes = (Scope.QUOTA_READ,)
    write_scopes = (Scope.QUOTA_WRITE,)
    etag = True

    def edit(self, request: Request, row: Tenant | Project, wanted: dict[str, Any]) -> Response:
        if "quota" in wanted:
            quota, reason = wanted.pop("quota"), wanted.pop("reason", "")
            return quota_patch(self, request, row, quota=quota, reason=reason, fields=wanted)
        return self.rename(request, row, wanted)

    @write
    def rename(self, request: Request, row: Any, wanted: dict[str, Any]) -> Response:
        services.update_owner(**self._act(request, row), **wanted)
        return self.changed(row)

    @write
    def remove(self, request: Request, row: Any) -> Response:
        wanted = self.said(request)
        along = [] if isinstance(row, BusinessLine) else dependents_of(row)
        services.delete_owner(**self._act(request, row), **wanted)
        return deleted(along)

    def said(self, request: Request) -> dict[str, Any]:
        return {"reason": reason_in_address(request), **checked_body(DeleteInput, request)}

    def known_parameters(self) -> set[str]:
        return {*super().known_parameters(), *(("reason",) if self.action == "destroy" else ())}

    def _act(self, request: Request, row: Any) -> dict[str, Any]:
        return {"owner": row, "version": expected_version(request), "actor": self.access.actor}


class TenantFilters(django_filters.FilterSet):
    slug = TextFilter()
    name = TextFilter()


class Tenants(Owners):
    """Tenants that the caller belongs to."""

    model = Tenant
    serializer_class = TenantDocument
    filterset_class = TenantFilters

    def visible(self) -> QuerySet[Tenant]:
        if self.action == "card_hours":
            return visible_tenants(self.access)
        return with_limits(visible_tenants(self.access), "tenant").prefetch_related(
            Prefetch("projects", queryset=visible_projects(self.access).select_related(None).order_by("slug")),
            Prefetch(
                "business_lines", queryset=visible_business_lines(self.access).select_related(None).order_by("slug")
            ),
        )

    @extend_schema(responses=CardHoursDocument(many=True))
    @action(detail=True, methods=["get"], url_path="card-hours", filter_backends=[], pagination_class=None)
    def card_hours(self, request: Request, pk: int) -> Response:
        """Read a tenant's card-hours.

        Of the last 24 hours and 7 days of each cluster's clock, by service type and card type: cards in use × hours.
        `measured_hours` says of how many of the `hours`: what was in use while no session ran is not known, and not
        counted. Full hours alone are counted, so the newest one may be missing.
        """
        tenant = self.get_object()
        own = visible_queues(self.access).filter(tenant=tenant).order_by()
        clusters = list(visible_clusters(self.access).filter(pk__in=own.values("cluster")).order_by("pk"))
        found = card_hours([tenant.pk], clusters)
        rows = [
            {
                "cluster": cluster,
                "period": one.period,
                "start": one.start,
                "end": one.end,
                "hours": one.hours,
                "measured_hours": one.measured,
                "cards": [
                    {"service_type": service, "card": card, "card_hours": round(spent, 3)}
                    for (service, card), spent in sorted(one.cards.items())
                ],
            }
            for cluster in clusters
            for one in found[tenant.pk, cluster.pk].values()
        ]
        return Response(CardHoursDocument(rows, many=True, context=self.get_serializer_context()).data)

    @extend_schema(request=TenantInput, responses={201: TenantDocument}, parameters=MAKES)
    @write
    def create(self, request: Request) -> Response:
        """Make a tenant. `slug` is the name in addresses and quota files and stays. Role: platform admin."""
        require_administrator(self.access)
        wanted = checked_body(TenantInput, request)
        return self.made(services.create_tenant(**wanted, actor=self.access.actor))

    @extend_schema(
        request=TenantPatch, responses={200: TenantDocument, 202: ChangeDocument}, parameters=CHANGES_OF_QUOTA
    )
    def partial_update(self, request: Request, pk: int) -> Response:
        """Change a tenant.

        Members that are left out stay. With `quota` it is a quota change: `If-Match` and `reason` are needed then. An
        admin of the tenant may only ask for more than there is: 202 with the change, which waits for a platform admin.
        Role: admin of the tenant.
        """
        tenant = self.get_object()
        require_admin_of(self.access, tenant.pk)
        return self.edit(request, tenant, checked_body(TenantPatch, request))

    @extend_schema(request=DeleteInput, responses={204: None}, parameters=DELETES)
    def destroy(self, request: Request, pk: int) -> Response:
        """Delete a tenant.

        409 `in_use`, with `dependents`, while queues depend on it. A tenant that has quotas is refused too. The answer
        names the `clusters`, and in `changes` for each of them without a gang in its queues the `edits` of the quota
        change that deletes the queues and takes the quotas back first (`edits` alone where it is one cluster, or where
        there are quotas only). A dry run answers the same. Role: platform admin.
        """
        tenant = self.get_object()
        require_administrator(self.access)
        changes.refuse_queues(tenant, expected_version(request))
        return self.remove(request, tenant)


class ProjectFilters(django_filters.FilterSet):
    tenant = ReferenceFilter(relation="tenant", by="slug", among=visible_tenants)
    slug = TextFilter()
    name = TextFilter()


class Projects(Owners):
    """Projects of the caller's tenants."""

    model = Project
    serializer_class = ProjectDocument
    filterset_class = ProjectFilters

    def visible(self) -> QuerySet[Project]:
        return with_limits(visible_projects(self.access), "project")

    @extend_schema(request=ProjectInput, responses={201: ProjectDocument}, parameters=MAKES)
    @write
    def create(self, request: Request) -> Response:
        """Make a project. `slug` is unique in the tenant. Role: admin of the tenant."""
        wanted = checked_body(ProjectInput, request)
        tenant = referred(visible_tenants(self.access), wanted.pop("tenant"), "/tenant", by="slug")
        require_admin_of(self.access, tenant.pk)
        return self.made(services.create_project(tenant=tenant, **wanted, actor=self.access.actor))

    @extend_schema(
        request=ProjectPatch, responses={200: ProjectDocument, 202: ChangeDocument}, parameters=CHANGES_OF_QUOTA
    )
    def partial_update(self, request: Request, pk: int) -> Response:
        """Change a project. `quota` needs `If-Match` and `reason`: it is a change. Role: admin of the tenant."""
        project = self.get_object()
        require_admin_of(self.access, project.tenant_id)
        return self.edit(request, project, checked_body(ProjectPatch, request))

    @extend_schema(request=DeleteInput, responses={204: None, 202: ChangeDocument}, parameters=DELETES)
    def destroy(self, request: Request, pk: int) -> Response:
        """Delete a project.

        409 `in_use`, with `dependents`, while queues depend on it. Where all of them are in one cluster and no gang is
        in them, the answer has the `edits` of the one quota change that deletes the project with them. A project that
        has quotas goes by a quota change (202 with the change, which waits where approval is due and can be rolled
        back); quotas in several clusters are taken back first (409 with `clusters` and `edits`). With queues in several
        clusters `changes` has the `edits` for each. A dry run answers the same, and 200 with `plan` and `edits` in the
        place of the 202. Role: admin of the tenant.
        """
        project = self.get_object()
        require_admin_of(self.access, project.tenant_id)
        reason, version = self.said(request)["reason"], expected_version(request)
        changes.refuse_queues(project, version)
        clusters = clusters_with_quota_of(project)
        if not clusters:
            return self.remove(request, project)
        if is_dry_run(request) and len(clusters) == 1:
            key = key_of("project", project.tenant.slug, project.slug)
            changes.require_versions(clusters[0], {} if version is None else {key: version})
            answer = preview(self, clusters[0], {key: None})
            answer.data["edits"] = {key: None}
            return answer
        change = changes.remove_project(
            project=project, access=self.access, reason=reason, version=version, source="api"
        )
        return Response(status=status.HTTP_204_NO_CONTENT) if change is None else accepted(self, change)


class BusinessLineFilters(django_filters.FilterSet):
    tenant = ReferenceFilter(relation="tenant", by="slug", among=visible_tenants)
    slug = TextFilter()
    name = TextFilter()


class BusinessLines(Owners):
    """Business lines of the caller's tenants; those of the platform for who sees everything."""

    model = BusinessLine
    serializer_class = BusinessLineDocument
    filterset_class = BusinessLineFilters

    def visible(self) -> QuerySet[BusinessLine]:
        return visible_business_lines(self.access)

    @extend_schema(request=BusinessLineInput, responses={201: BusinessLineDocument}, parameters=MAKES)
    @write
    def create(self, request: Request) -> Response:
        """Make a business line. Without a tenant it is the platform's. Role: admin of the tenant."""
        wanted = checked_body(BusinessLineInput, request)
        named = wanted.pop("tenant", None)
        tenant = None if named is None else referred(visible_tenants(self.access), named, "/tenant", by="slug")
        require_admin_of(self.access, tenant.pk if tenant else None)
        return self.made(services.create_business_line(tenant=tenant, **wanted, actor=self.access.actor))

    @extend_schema(request=NamePatch, responses=BusinessLineDocument, parameters=CHANGES)
    def partial_update(self, request: Request, pk: int) -> Response:
        """Rename a business line. The slug, which is in quota files, stays. Role: admin of the tenant."""
        line = self.get_object()
        require_admin_of(self.access, line.tenant_id)
        return self.rename(request, line, checked_body(NamePatch, request))

    @extend_schema(request=DeleteInput, responses={204: None}, parameters=DELETES)
    def destroy(self, request: Request, pk: int) -> Response:
        """Delete a business line. 409 `in_use` while queues depend on it. Role: admin of the tenant."""
        line = self.get_object()
        require_admin_of(self.access, line.tenant_id)
        return self.remove(request, line)
