from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from tidesched_web.accounts.models import TenantRole
from tidesched_web.api.v1.serializers.briefs import AddressField, BriefCluster, BriefTenant, ShownAsIs
from tidesched_web.api.v1.serializers.json_shapes import ref
from tidesched_web.api.v1.serializers.tree_shapes import STORABLE_NAMES
from tidesched_web.common.models import ServiceType
from tidesched_web.scheduling.card_hours_selectors import PERIODS


class CardHoursOfType(serializers.Serializer[Any]):
    """What the tenant's queues of one service type used of one card type. A slice counts as a slice."""

    service_type = serializers.ChoiceField(choices=ServiceType.choices)
    card = serializers.CharField()
    card_hours = serializers.FloatField()


class CardHoursDocument(serializers.Serializer[Any]):
    """One cluster in one period of full hours by its clock.

    ``measured_hours`` of ``hours`` are in the figures: what was in use while no session ran is not known.
    """

    cluster = BriefCluster()
    period = serializers.ChoiceField(choices=list(PERIODS))
    start = serializers.DateTimeField()
    end = serializers.DateTimeField()
    hours = serializers.IntegerField()
    measured_hours = serializers.IntegerField()
    cards = CardHoursOfType(many=True)


# Digits that are an id for sure, and the longest name of anything that a body refers to.
MOST_DIGITS, LONGEST_NAME = 18, 253


@extend_schema_field(
    {
        "description": "An id, a slug or a name.",
        "oneOf": [
            {"type": "integer", "minimum": 0, "maximum": 2**63 - 1},
            {"type": "string", "minLength": 1, "maxLength": 253, "pattern": r"^[^\x00]+$"},
        ],
    }
)
class ReferenceField(ShownAsIs):
    def to_internal_value(self, data: Any) -> int | str:
        if isinstance(data, float) and data.is_integer():
            data = int(data)  # JSON knows only one kind of number
        if isinstance(data, bool) or not isinstance(data, int | str) or not self._in_bounds(data):
            raise serializers.ValidationError("An id or a slug is meant.")
        if isinstance(data, int) or not data.isascii() or not data.isdigit() or len(data) > MOST_DIGITS:
            return data
        return int(data)

    @staticmethod
    def _in_bounds(data: int | str) -> bool:
        if isinstance(data, int):
            return 0 <= data < 2**63
        return 0 < len(data) <= LONGEST_NAME and "\x00" not in data


class ReasonMixin(serializers.Serializer[Any]):
    reason = serializers.CharField(
        max_length=1000, required=False, allow_blank=True, help_text="Goes into the audit log."
    )


@extend_schema_field(
    {
        "description": "What it may hand out in one cluster. As rows like in the document (a service type that is not "
        "named stays), or `{cluster: {service_type: {card_quota, cpu_milli, memory_bytes}}}` as a merge patch: null "
        "takes a limit away.",
        "oneOf": [
            {"type": "array", "minItems": 1, "items": ref("LimitRow")},
            {
                "type": "object",
                "minProperties": 1,
                "maxProperties": 1,
                **STORABLE_NAMES,
                "additionalProperties": ref("QuotaEdit"),
            },
        ],
    }
)
class QuotaField(ShownAsIs):
    def to_internal_value(self, data: Any) -> Any:
        if not isinstance(data, list | dict):
            raise serializers.ValidationError("Rows as in the document, or a map by cluster.")
        return data


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
    """The role of an account in a tenant."""

    user = ReferenceField()
    tenant = ReferenceField()
    role = serializers.ChoiceField(choices=TenantRole.choices, required=False, default=TenantRole.MEMBER)


class MemberPatch(ReasonMixin):
    """Another role."""

    role = serializers.ChoiceField(choices=TenantRole.choices)
