from typing import Any

import django_filters
from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from tidesched_web.accounts import services
from tidesched_web.accounts.models import ApiToken, Membership, Scope, Tenant, TenantRole
from tidesched_web.accounts.selectors import (
    known_users,
    visible_memberships,
    visible_tenants,
    visible_tokens,
    visible_users,
)
from tidesched_web.accounts.tokens import parse_lifetime
from tidesched_web.api.body import checked_body, reason_in_address
from tidesched_web.api.filters import OneOf, ReferenceFilter, TextFilter
from tidesched_web.api.idempotency import idempotent
from tidesched_web.api.v1.references import referred
from tidesched_web.api.v1.serializers.accounts import MemberDocument, NewTokenDocument, TokenDocument, TokenInput
from tidesched_web.api.v1.serializers.owners import DeleteInput, MemberInput, MemberPatch
from tidesched_web.api.views import ReadView
from tidesched_web.api.writes import (
    DRY_RUN_PARAMETER,
    IDEMPOTENCY,
    IF_MATCH,
    REASON_IN_ADDRESS,
    expected_version,
    is_dry_run,
    write,
)
from tidesched_web.common.errors import DomainError
from tidesched_web.common.permissions import require_admin_of


class MemberFilters(django_filters.FilterSet):
    tenant = ReferenceFilter(relation="tenant", by="slug", among=visible_tenants)
    user = ReferenceFilter(relation="user", by="username")
    role = OneOf(choices=TenantRole.choices)


class Members(ReadView):
    """Who belongs to the caller's tenants, and as what. The admins of a tenant, and of the platform, change it."""

    scopes = (Scope.QUOTA_READ,)
    write_scopes = (Scope.ADMIN,)
    model = Membership
    serializer_class = MemberDocument
    filterset_class = MemberFilters
    etag = True

    def known_parameters(self) -> set[str]:
        return {*super().known_parameters(), *(("reason",) if self.action == "destroy" else ())}

    def visible(self) -> QuerySet[Membership]:
        return visible_memberships(self.access)

    @extend_schema(request=MemberInput, responses={201: MemberDocument}, parameters=[IDEMPOTENCY, DRY_RUN_PARAMETER])
    @write
    def create(self, request: Request) -> Response:
        """Add a member.

        Gives an account a role in a tenant. An admin of the tenant names the account by its user name. Role: admin of
        the tenant. Ids are for accounts in sight. A dry run looks at accounts in sight only: of others it says what it
        says of names that no account has.
        """
        wanted = checked_body(MemberInput, request)
        tenant = referred(visible_tenants(self.access), wanted.pop("tenant"), "/tenant", by="slug")
        require_admin_of(self.access, tenant.pk)
        named = wanted.pop("user")
        by_name = isinstance(named, str) and not is_dry_run(request)
        among = known_users(self.access) if by_name else visible_users(self.access).filter(is_active=True)
        user = referred(among, named, "/user", by="username", code="unknown_user")
        if visible_memberships(self.access).filter(user=user, tenant=tenant).exists():
            text = f"{user.username} belongs to {tenant.slug} already."
            raise DomainError.for_field("/user", text, code="already_exists")
        return self.made(
            services.set_membership(user=user, tenant=tenant, **wanted, actor=self.access.actor, by=self.access.user_id)
        )

    @extend_schema(request=MemberPatch, responses=MemberDocument, parameters=[IF_MATCH, DRY_RUN_PARAMETER])
    @write
    def partial_update(self, request: Request, pk: int) -> Response:
        """Change a member's role. `admin` or `member` of the tenant. Role: admin of the tenant."""
        member = self.get_object()
        require_admin_of(self.access, member.tenant_id)
        wanted = checked_body(MemberPatch, request)
        services.set_membership(
            user=member.user,
            tenant=member.tenant,
            **wanted,
            actor=self.access.actor,
            by=self.access.user_id,
            version=expected_version(request),
        )
        return self.changed(member)

    @extend_schema(
        request=DeleteInput, responses={204: None}, parameters=[IF_MATCH, DRY_RUN_PARAMETER, REASON_IN_ADDRESS]
    )
    @write
    def destroy(self, request: Request, pk: int) -> Response:
        """Remove a member. The account stays; it sees nothing of this tenant any more. Role: admin of the tenant."""
        member = self.get_object()
        require_admin_of(self.access, member.tenant_id)
        services.remove_membership(
            membership=member,
            **{"reason": reason_in_address(request), **checked_body(DeleteInput, request)},
            actor=self.access.actor,
            version=expected_version(request),
        )
        return Response(status=status.HTTP_204_NO_CONTENT)


class TokenFilters(django_filters.FilterSet):
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
        """Make a token.

        A token of the caller, by scope and, where `tenant` is given, for one tenant. Its text is in this answer and
        nowhere else. A token never allows more than its user may. Through a token: one with no scope that this token
        lacks, which ends when this token does at the latest.
        """
        wanted = checked_body(TokenInput, request)
        token, plain = services.create_token(
            user=self.caller,
            name=wanted["name"],
            scopes=wanted["scopes"],
            expires_at=timezone.now() + parse_lifetime(wanted["expires"]) if wanted["expires"] else None,
            tenant=self._tenant(wanted["tenant"]),
            actor=self.access.actor,
            through=self._own(),
        )
        document = self.documents([token])[0] | {"token": plain}
        return Response(document, status=status.HTTP_201_CREATED, headers={"Location": document["url"]})

    @extend_schema(request=None, responses={204: None})
    def destroy(self, request: Request, pk: int) -> Response:
        """Revoke a token. From now on it is answered 401."""
        services.revoke_token(token=self.get_object(), actor=self.access.actor)
        return Response(status=status.HTTP_204_NO_CONTENT)

    def _tenant(self, slug: str | None) -> Tenant | None:
        """The tenant that the new token is limited to; a limited token makes only tokens of its own limit."""
        own = self._own()
        limit = own.tenant if own is not None else None
        if slug is None:
            return limit
        tenant = visible_tenants(self.access).filter(slug=slug).first()
        if tenant is None:
            raise DomainError.for_field("/tenant", f"You see no tenant {slug!r}.", code="unknown_tenant")
        return tenant

    def _own(self) -> ApiToken | None:
        token: Any = self.request.auth
        return token if isinstance(token, ApiToken) else None
