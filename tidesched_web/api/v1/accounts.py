"""`tenants`, `projects`, `members` and `tokens`."""

from __future__ import annotations

from typing import Any

import django_filters
from django.db.models import Prefetch, QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from tidesched_web.accounts import services
from tidesched_web.accounts.models import ApiToken, Membership, Project, Scope, Tenant, TenantRole
from tidesched_web.accounts.selectors import (
    visible_business_lines,
    visible_memberships,
    visible_projects,
    visible_tenants,
    visible_tokens,
)
from tidesched_web.accounts.tokens import parse_lifetime
from tidesched_web.api.body import checked_body
from tidesched_web.api.filters import ReferenceFilter, TextFilter
from tidesched_web.api.idempotency import idempotent
from tidesched_web.api.v1.clusters import IDEMPOTENCY
from tidesched_web.api.v1.serializers.accounts import (
    MemberDocument,
    NewTokenDocument,
    ProjectDocument,
    TenantDocument,
    TokenDocument,
    TokenInput,
)
from tidesched_web.api.views import ReadView
from tidesched_web.common.errors import DomainError
from tidesched_web.quota.selectors import with_limits


class TenantFilters(django_filters.FilterSet):
    """Filters of `tenants`."""

    slug = TextFilter()
    name = TextFilter()


class Tenants(ReadView):
    """Tenants that the caller belongs to."""

    scopes = (Scope.QUOTA_READ,)
    model = Tenant
    serializer_class = TenantDocument
    filterset_class = TenantFilters
    etag = True

    def visible(self) -> QuerySet[Tenant]:
        return with_limits(visible_tenants(self.access), "tenant").prefetch_related(
            Prefetch("projects", queryset=visible_projects(self.access).select_related(None).order_by("slug")),
            Prefetch(
                "business_lines", queryset=visible_business_lines(self.access).select_related(None).order_by("slug")
            ),
        )


class ProjectFilters(django_filters.FilterSet):
    """Filters of `projects`."""

    tenant = ReferenceFilter(relation="tenant", by="slug", among=visible_tenants)
    slug = TextFilter()
    name = TextFilter()


class Projects(ReadView):
    """Projects of the caller's tenants."""

    scopes = (Scope.QUOTA_READ,)
    model = Project
    serializer_class = ProjectDocument
    filterset_class = ProjectFilters
    etag = True

    def visible(self) -> QuerySet[Project]:
        return with_limits(visible_projects(self.access), "project")


class MemberFilters(django_filters.FilterSet):
    """Filters of `members`."""

    tenant = ReferenceFilter(relation="tenant", by="slug", among=visible_tenants)
    user = ReferenceFilter(relation="user", by="username")
    role = django_filters.ChoiceFilter(choices=TenantRole.choices)


class Members(ReadView):
    """Who belongs to the caller's tenants, and as what."""

    scopes = (Scope.QUOTA_READ,)
    model = Membership
    serializer_class = MemberDocument
    filterset_class = MemberFilters

    def visible(self) -> QuerySet[Membership]:
        return visible_memberships(self.access)


class TokenFilters(django_filters.FilterSet):
    """Filters of `tokens`."""

    user = ReferenceFilter(relation="user", by="username")
    tenant = ReferenceFilter(relation="tenant", by="slug", among=visible_tenants)
    name = TextFilter()


class Tokens(ReadView):
    """The caller's own tokens; a platform admin sees everybody's. Through a token: only with scope `admin`."""

    scopes = (Scope.ADMIN,)
    model = ApiToken
    serializer_class = TokenDocument
    filterset_class = TokenFilters
    newest_first = True

    def visible(self) -> QuerySet[ApiToken]:
        return visible_tokens(self.caller, self.access)

    @extend_schema(request=TokenInput, responses={201: NewTokenDocument}, parameters=[IDEMPOTENCY])
    @idempotent
    def create(self, request: Request) -> Response:
        """Make a token for oneself. Its text is in this answer and nowhere else."""
        wanted = checked_body(TokenInput, request)
        token, plain = services.create_token(
            user=self.caller,
            name=wanted["name"],
            scopes=wanted["scopes"],
            expires_at=timezone.now() + parse_lifetime(wanted["expires"]) if wanted["expires"] else None,
            tenant=self._tenant(wanted["tenant"]),
            actor=self.access.actor,
        )
        document = self.documents([token])[0] | {"token": plain}
        return Response(document, status=status.HTTP_201_CREATED, headers={"Location": document["url"]})

    @extend_schema(responses={204: None})
    def destroy(self, request: Request, pk: int) -> Response:
        """Revoke a token, from now on."""
        services.revoke_token(token=self.get_object(), actor=self.access.actor)
        return Response(status=status.HTTP_204_NO_CONTENT)

    def _tenant(self, slug: str | None) -> Tenant | None:
        """The tenant that the new token is limited to; a limited token makes only tokens of its own limit."""
        limit = self._own_limit()
        if slug is None:
            return limit
        tenant = visible_tenants(self.access).filter(slug=slug).first()
        if tenant is None:
            raise DomainError.for_field("/tenant", f"You see no tenant {slug!r}.", code="unknown_tenant")
        return tenant

    def _own_limit(self) -> Tenant | None:
        token: Any = self.request.auth
        return token.tenant if isinstance(token, ApiToken) else None
