"""What is sent to make or change tenants, projects, business lines and members."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from tidesched_web.accounts.models import TenantRole
from tidesched_web.api.v1.serializers.briefs import AddressField, BriefTenant


@extend_schema_field({"type": ["integer", "string"], "description": "An id, a slug or a name."})
class ReferenceField(serializers.Field[Any, Any, Any, Any]):
    """Another object by its id, or by its slug or name."""

    def to_internal_value(self, data: Any) -> int | str:
        if isinstance(data, bool) or not isinstance(data, int | str) or data == "":
            raise serializers.ValidationError("An id or a slug is meant.")
        return data if isinstance(data, int) or not data.isascii() or not data.isdigit() else int(data)

    def to_representation(self, value: Any) -> Any:
        return value


class ReasonMixin(serializers.Serializer[Any]):
    """Every write may say why."""

    reason = serializers.CharField(
        max_length=1000, required=False, allow_blank=True, help_text="Goes into the audit log."
    )


@extend_schema_field(
    {
        "description": "What it may hand out in one cluster. As rows like in the document (a service type that is not "
        "named stays), or `{cluster: {service_type: {card_quota, cpu_milli, memory_bytes}}}` as a merge patch: null "
        "takes a limit away.",
        "oneOf": [
            {"type": "array", "items": {"type": "object", "additionalProperties": True}},
            {"type": "object", "additionalProperties": {"type": ["object", "null"], "additionalProperties": True}},
        ],
    }
)
class QuotaField(serializers.Field[Any, Any, Any, Any]):
    """The quota of a tenant or project."""

    def to_internal_value(self, data: Any) -> Any:
        if not isinstance(data, list | dict):
            raise serializers.ValidationError("Rows as in the document, or a map by cluster.")
        return data

    def to_representation(self, value: Any) -> Any:
        return value


class DeleteInput(ReasonMixin):
    """A deletion; the body may be left out."""


class TenantPatch(ReasonMixin):
    """What may change in a tenant; its slug stays."""

    name = serializers.CharField(max_length=120, required=False)
    description = serializers.CharField(max_length=2000, required=False, allow_blank=True)
    quota = QuotaField(required=False)


class TenantInput(ReasonMixin):
    """A tenant to make."""

    slug = serializers.SlugField(max_length=63)
    name = serializers.CharField(max_length=120, required=False)
    description = serializers.CharField(max_length=2000, required=False, allow_blank=True)


class NamePatch(ReasonMixin):
    """What may change in a project or business line; its slug stays."""

    name = serializers.CharField(max_length=120, required=False)


class ProjectPatch(NamePatch):
    """What may change in a project; its slug stays."""

    quota = QuotaField(required=False)


class ProjectInput(ReasonMixin):
    """A project to make."""

    tenant = ReferenceField()
    slug = serializers.SlugField(max_length=63)
    name = serializers.CharField(max_length=120, required=False)


class BusinessLineInput(ReasonMixin):
    """A business line to make; without a tenant it is the platform's."""

    tenant = ReferenceField(required=False, allow_null=True)
    slug = serializers.SlugField(max_length=63)
    name = serializers.CharField(max_length=120, required=False)


class BusinessLineDocument(serializers.Serializer[Any]):
    """What training is done for; of a tenant, or of the platform."""

    id = serializers.IntegerField()
    url = AddressField("business-lines")
    display = serializers.CharField(source="name")
    slug = serializers.CharField()
    name = serializers.CharField()
    tenant = BriefTenant(allow_null=True)
    version = serializers.IntegerField()


class MemberInput(ReasonMixin):
    """Somebody's role in a tenant."""

    user = ReferenceField()
    tenant = ReferenceField()
    role = serializers.ChoiceField(choices=TenantRole.choices, required=False, default=TenantRole.MEMBER)


class MemberPatch(ReasonMixin):
    """Another role."""

    role = serializers.ChoiceField(choices=TenantRole.choices)
