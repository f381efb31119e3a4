from typing import Any

import django_filters
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.urls import reverse
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from tidesched_web.accounts import services
from tidesched_web.accounts.models import AccessLink, LinkKind, PlatformRole, Scope, Tenant, User
from tidesched_web.accounts.selectors import (
    names_in_sight,
    users_with_memberships,
    visible_memberships,
    visible_tenants,
)
from tidesched_web.api.body import checked_body
from tidesched_web.api.filters import OneOf, ReferenceFilter, TextFilter, YesNoFilter
from tidesched_web.api.v1.references import referred
from tidesched_web.api.v1.serializers.accounts import (
    InvitedUserDocument,
    LinkDocument,
    NoInput,
    UserDocument,
    UserInput,
    UserPatch,
)
from tidesched_web.api.v1.serializers.changes import SayWhy
from tidesched_web.api.v1.serializers.json_shapes import ref
from tidesched_web.api.v1.serializers.owners import DeleteInput
from tidesched_web.api.views import ReadView
from tidesched_web.api.writes import DRY_RUN_PARAMETER, IDEMPOTENCY, is_dry_run, write
from tidesched_web.common.errors import DomainError
from tidesched_web.common.permissions import require_admin_of, require_administrator
from tidesched_web.common.public_address import absolute

_WRITE = [IDEMPOTENCY, DRY_RUN_PARAMETER]


class _OfTenant(ReferenceFilter):
    """By the memberships that the caller sees: others stay what they are, out of sight."""

    def filter(self, qs: QuerySet[User], value: str) -> QuerySet[User]:
        if value in (None, ""):
            return qs
        access = self.parent.request.parser_context["view"].access
        return qs.filter(Exists(super().filter(visible_memberships(access).filter(user=OuterRef("pk")), value)))


class UserFilters(django_filters.FilterSet):
    username = TextFilter()
    email = TextFilter(lookup_expr="iexact", label="The whole address, in small or large letters.")
    platform_role = OneOf(choices=[(role.value, role.label) for role in PlatformRole if role])
    active = YesNoFilter(field_name="is_active", label="`true`: those that may sign in; `false`: those that may not.")
    tenant = _OfTenant(relation="tenant", by="slug", among=visible_tenants)


class Users(ReadView):
    """Accounts: all of them for platform admins and auditors, those of their tenants for tenants' admins."""

    scopes = (Scope.AUDIT_READ,)
    write_scopes = (Scope.ADMIN,)
    model = User
    serializer_class = UserDocument
    filterset_class = UserFilters

    def visible(self) -> QuerySet[User]:
        return users_with_memberships(self.access)

    def filter_queryset(self, queryset: QuerySet[Any]) -> QuerySet[Any]:
        found = super().filter_queryset(queryset)
        if self.action == "list" and self.request.query_params.get("email") and not self.access.everything:
            own = Q(pk=self.access.user_id) | Q(invited_by=self.access.user_id)
            return found.filter(own)  # the other addresses are not shown, so they are not found either
        return found

    @extend_schema(request=UserInput, responses={201: InvitedUserDocument}, parameters=_WRITE)
    @write
    def create(self, request: Request) -> Response:
        """Invite a person.

        Makes an account without a password and the link by which its person sets one. The link's address is in this
        answer and nowhere else. An admin of a tenant invites into that one tenant. Role: admin of the tenant.
        """
        wanted = checked_body(UserInput, request)
        memberships = self._memberships(wanted.pop("memberships", []))
        inviting = self._inviting(wanted["platform_role"], list(memberships))
        # Trying costs nothing and leaves no trace, so it must not tell which names others have taken.
        rehearsed = inviting is not None and is_dry_run(request)
        user, link, secret = services.invite_user(
            **wanted,
            memberships=memberships,
            of_tenant=inviting,
            actor=self.access.actor,
            by=self.access.user_id,
            rehearsed_among=names_in_sight(self.access) if rehearsed else None,
        )
        response = self.made(user)
        if rehearsed:
            response.data |= {
                name: wanted["username"] for name, value in response.data.items() if value == user.username
            }
        response.data["link"] = self._link(link, secret)
        return response

    @extend_schema(request=UserPatch, responses=UserDocument, parameters=[DRY_RUN_PARAMETER])
    @write
    def partial_update(self, request: Request, pk: int) -> Response:
        """Change an account. The last platform admin keeps the role (409). Role: platform admin."""
        user = self._administered()
        services.update_user(
            user=user, **checked_body(UserPatch, request), actor=self.access.actor, by=self.access.user_id
        )
        return self.changed(user)

    @extend_schema(request={"application/json": ref("NoInput")}, responses={201: LinkDocument}, parameters=_WRITE)
    @action(detail=True, methods=["post"])
    @write
    def link(self, request: Request, pk: int) -> Response:
        """Make a link for a password.

        A link for a new password, or a new invitation where the account has no password yet. Earlier links of the
        account end. An admin of a tenant repeats the invitation of a member who has never used it. Role: admin of the
        tenant.
        """
        user = self.get_object()
        if self.access.administers:
            checked_body(NoInput, request)
            kind = LinkKind.RESET if user.has_usable_password() else LinkKind.INVITE
            link, secret = services.make_link(user=user, kind=kind, actor=self.access.actor, by=self.access.user_id)
        else:
            member = visible_memberships(self.access).filter(user=user, tenant__in=self.access.admin_of).first()
            if member is None:
                raise DomainError("permission_denied", "Only a platform admin may do this.")
            checked_body(NoInput, request)
            link, secret = services.invite_again(membership=member, actor=self.access.actor, by=self.access.user_id)
        return Response(self._link(link, secret), status=status.HTTP_201_CREATED)

    @extend_schema(request=SayWhy, responses=UserDocument, parameters=_WRITE)
    @action(detail=True, methods=["post"])
    @write
    def deactivate(self, request: Request, pk: int) -> Response:
        """Deactivate an account. Its tokens and links are dead; 409 for the last admin. Role: platform admin."""
        user = self._administered()
        services.deactivate_user(user=user, **checked_body(SayWhy, request), actor=self.access.actor)
        return self.changed(user)

    @extend_schema(request=DeleteInput, responses=UserDocument, parameters=_WRITE)
    @action(detail=True, methods=["post"])
    @write
    def activate(self, request: Request, pk: int) -> Response:
        """Activate an account. With the rights and tokens that it had. Role: platform admin."""
        user = self._administered()
        services.activate_user(user=user, **checked_body(DeleteInput, request), actor=self.access.actor)
        return self.changed(user)

    def _administered(self) -> User:
        user: User = self.get_object()
        require_administrator(self.access)
        return user

    def _memberships(self, rows: list[dict[str, Any]]) -> dict[Tenant, str]:
        tenants = visible_tenants(self.access)
        found: dict[Tenant, str] = {}
        for index, row in enumerate(rows):
            pointer = f"/memberships/{index}/tenant"
            tenant = referred(tenants, row["tenant"], pointer, by="slug", code="unknown_tenant")
            if tenant in found:
                raise DomainError.for_field(pointer, f"{tenant.slug} is named twice.", code="against_rules")
            found[tenant] = row["role"]
        return found

    def _inviting(self, platform_role: str, tenants: list[Tenant]) -> Tenant | None:
        if self.access.administers:
            return None
        if platform_role or len(tenants) != 1:
            raise DomainError(
                "permission_denied",
                "Only a platform admin may do this. An admin of a tenant invites into that one tenant.",
            )
        require_admin_of(self.access, tenants[0].pk)
        return tenants[0]

    def _link(self, link: AccessLink, secret: str) -> dict[str, Any]:
        where = "" if is_dry_run(self.request) else reverse("console:invite", args=[secret])
        address = absolute(self.request, where) if where else ""
        return dict(LinkDocument({"kind": link.kind, "address": address, "expires_at": link.expires_at}).data)
