"""Accounts and the links by which their people set a password."""

from __future__ import annotations

import datetime as dt
from typing import Any

from django.contrib.auth.validators import UnicodeUsernameValidator
from rest_framework import serializers

from tidesched_web.accounts.models import LinkKind, PlatformRole, TenantRole
from tidesched_web.api.v1.serializers.briefs import AddressField, BriefTenant
from tidesched_web.api.v1.serializers.owners import ReasonMixin, ReferenceField


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
        """Whether the caller sees everything, is this person, or invited this person."""
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
