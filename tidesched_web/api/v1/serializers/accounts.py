import datetime as dt
from typing import Any

from django.contrib.auth.validators import UnicodeUsernameValidator
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from tidesched_web.accounts.models import LinkKind, PlatformRole, Scope, TenantRole, TokenState
from tidesched_web.api.v1.serializers.briefs import (
    AddressField,
    BriefBusinessLine,
    BriefProject,
    BriefTenant,
    BriefUser,
    WholeCountsField,
)
from tidesched_web.api.v1.serializers.owners import ReasonMixin, ReferenceField
from tidesched_web.common.models import ServiceType
from tidesched_web.quota.selectors import limits_of


class RoleInTenant(serializers.Serializer[Any]):
    """A membership of an account."""

    id = serializers.IntegerField()
    url = AddressField("members")
    tenant = BriefTenant()
    role = serializers.ChoiceField(choices=TenantRole.choices)


class UserDocument(serializers.Serializer[Any]):
    """An account. Of its memberships those in tenants that the caller sees."""

    id = serializers.IntegerField()
    url = AddressField("users")
    display = serializers.SerializerMethodField()
    username = serializers.CharField()
    first_name = serializers.CharField()
    last_name = serializers.CharField()
    email = serializers.SerializerMethodField(help_text="Empty where the caller does not see it.")
    platform_role = serializers.ChoiceField(choices=PlatformRole.choices)
    active = serializers.BooleanField(source="is_active")
    has_password = serializers.SerializerMethodField(help_text="Without one it acts through tokens alone.")
    invited = serializers.BooleanField(help_text="A link of it can still be used.")
    memberships = RoleInTenant(many=True, source="memberships.all")
    created_at = serializers.DateTimeField(source="date_joined")
    last_sign_in_at = serializers.SerializerMethodField(help_text="Null where the caller does not see it.")

    def get_display(self, user: Any) -> str:
        return user.get_full_name() or str(user.username)

    def get_email(self, user: Any) -> str:
        return str(user.email) if self._close(user) else ""

    def get_last_sign_in_at(self, user: Any) -> dt.datetime | None:
        return user.last_login if self._close(user) else None

    def _close(self, user: Any) -> bool:
        access = self.context.get("access")
        return access is not None and (access.everything or access.user_id in (user.pk, user.invited_by_id))

    def get_has_password(self, user: Any) -> bool:
        return bool(user.has_usable_password())


class LinkDocument(serializers.Serializer[Any]):
    """A link just made. Who opens it sets the password of the account: give it to the owner of the account alone."""

    kind = serializers.ChoiceField(choices=LinkKind.choices)
    address = serializers.CharField(help_text="Shown this once; empty in a dry run.")
    expires_at = serializers.DateTimeField()


class InvitedUserDocument(UserDocument):
    """An account just made, with the link of its invitation."""

    link = LinkDocument()


class InvitedToTenant(serializers.Serializer[Any]):
    """A membership of a new account."""

    tenant = ReferenceField()
    role = serializers.ChoiceField(choices=TenantRole.choices, required=False, default=TenantRole.MEMBER)


class UserInput(serializers.Serializer[Any]):
    """A person to invite. An admin of a tenant invites into that one tenant, without a role on the platform."""

    username = serializers.CharField(max_length=150, validators=[UnicodeUsernameValidator()])
    email = serializers.EmailField(required=False, allow_blank=True, default="")
    platform_role = serializers.ChoiceField(choices=PlatformRole.choices, required=False, default="")
    memberships = InvitedToTenant(many=True, required=False, max_length=50)  # type: ignore[call-arg]  # of the list


class UserPatch(ReasonMixin):
    """What may change in an account; its user name stays."""

    first_name = serializers.CharField(max_length=150, required=False, allow_blank=True)
    last_name = serializers.CharField(max_length=150, required=False, allow_blank=True)
    email = serializers.EmailField(required=False, allow_blank=True)
    platform_role = serializers.ChoiceField(choices=PlatformRole.choices, required=False)


class NoInput(serializers.Serializer[Any]):
    """An act that needs no body."""


# 30m, 12h, 90d, 2w.
LIFETIME = r"^[1-9][0-9]{0,5}[mhdw]$"


class LimitDocument(serializers.Serializer[Any]):
    """What a tenant or project may hand out in one cluster for one service type; null is no limit."""

    cluster = serializers.IntegerField()
    service_type = serializers.ChoiceField(choices=ServiceType.choices)
    cards = WholeCountsField(allow_null=True)
    cpu_milli = serializers.IntegerField(allow_null=True)
    memory_bytes = serializers.IntegerField(allow_null=True)


class _Limited:
    @extend_schema_field(LimitDocument(many=True))
    def get_quota(self, holder: Any) -> Any:
        return limits_of(holder)


class TenantDocument(_Limited, serializers.Serializer[Any]):
    """A tenant with its projects and business lines. A service type without a row in ``quota`` has no limit."""

    id = serializers.IntegerField()
    url = AddressField("tenants")
    display = serializers.CharField(source="name")
    slug = serializers.CharField()
    name = serializers.CharField()
    description = serializers.CharField()
    projects = BriefProject(many=True, source="projects.all")
    business_lines = BriefBusinessLine(many=True, source="business_lines.all")
    quota = serializers.SerializerMethodField()
    version = serializers.IntegerField()


class ProjectDocument(_Limited, serializers.Serializer[Any]):
    """A project of a tenant. A service type without a row in ``quota`` has no limit of its own."""

    id = serializers.IntegerField()
    url = AddressField("projects")
    display = serializers.CharField(source="name")
    slug = serializers.CharField()
    name = serializers.CharField()
    tenant = BriefTenant()
    quota = serializers.SerializerMethodField()
    version = serializers.IntegerField()


class MemberDocument(serializers.Serializer[Any]):
    """A user's role in a tenant."""

    id = serializers.IntegerField()
    url = AddressField("members")
    user = BriefUser()
    tenant = BriefTenant()
    role = serializers.ChoiceField(choices=TenantRole.choices)
    created_at = serializers.DateTimeField()
    version = serializers.IntegerField()


class TokenDocument(serializers.Serializer[Any]):
    """A token; its text was shown once and is not known here."""

    id = serializers.IntegerField()
    url = AddressField("tokens")
    display = serializers.SerializerMethodField()
    name = serializers.CharField()
    prefix = serializers.CharField(help_text="How the token begins.")
    user = BriefUser()
    scopes = serializers.ListField(child=serializers.ChoiceField(choices=Scope.choices))
    tenant = BriefTenant(allow_null=True)
    created_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField(allow_null=True)
    last_used_at = serializers.DateTimeField(allow_null=True)
    revoked_at = serializers.DateTimeField(allow_null=True)
    state = serializers.ChoiceField(choices=TokenState.choices, help_text="Only a live token is accepted.")

    def get_display(self, token: Any) -> str:
        return token.name or f"{token.prefix}…"


class NewTokenDocument(TokenDocument):
    """A token just made, with its text."""

    token = serializers.CharField(help_text="Shown this once. Send it as `Authorization: Bearer`.")


@extend_schema_field(
    {"type": "array", "minItems": 1, "maxItems": 20, "items": {"$ref": "#/components/schemas/ScopesEnum"}}
)
class ScopesField(serializers.ListField):
    """Scopes of a token; the services name the known ones where one is unknown."""


class TokenInput(serializers.Serializer[Any]):
    """A token to make. It never may more than its user."""

    name = serializers.CharField(max_length=120, required=False, default="", allow_blank=True)
    scopes = ScopesField(child=serializers.CharField(max_length=32), allow_empty=False, max_length=20)
    expires = serializers.RegexField(
        LIFETIME,
        max_length=16,
        required=False,
        allow_null=True,
        default=None,
        help_text="A life time: 30m, 12h, 90d, 2w.",
    )
    tenant = serializers.CharField(
        max_length=63, required=False, allow_null=True, default=None, help_text="Slug: may only see this tenant."
    )
