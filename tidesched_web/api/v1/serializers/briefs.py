from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from tidesched_web.api.v1.serializers.json_shapes import CARDS, COUNT, map_of


@extend_schema_field(OpenApiTypes.URI)
class AddressField(serializers.Field[Any, Any, str, Any]):
    def __init__(self, resource: str, **kwargs: Any) -> None:
        super().__init__(read_only=True, source="*", **kwargs)
        self.resource = resource

    def to_representation(self, value: Any) -> str:
        number = value["id"] if isinstance(value, dict) else value.pk
        return f"{self.context.get('base', '/api/v1/')}{self.resource}/{number}/"


class ShownAsIs(serializers.Field[Any, Any, Any, Any]):
    """JSON that is shown as it is kept; its shape is said by the field of the kind."""

    def to_representation(self, value: Any) -> Any:
        return value


@extend_schema_field(CARDS)
class CountsField(ShownAsIs):
    """Card name → count."""


@extend_schema_field(map_of(COUNT))
class WholeCountsField(CountsField):
    """Card name → whole number of cards."""


class MemoryField(serializers.IntegerField):
    def __init__(self, **kwargs: Any) -> None:
        super().__init__(read_only=True, **kwargs)

    def to_representation(self, value: int) -> int:
        return int(value) * 2**20


class BriefCluster(serializers.Serializer[Any]):
    """A cluster."""

    id = serializers.IntegerField()
    url = AddressField("clusters")
    display = serializers.CharField(source="name")
    slug = serializers.CharField()


class BriefTenant(serializers.Serializer[Any]):
    """A tenant."""

    id = serializers.IntegerField()
    url = AddressField("tenants")
    display = serializers.CharField(source="name")
    slug = serializers.CharField()


class BriefProject(serializers.Serializer[Any]):
    """A project of a tenant."""

    id = serializers.IntegerField()
    url = AddressField("projects")
    display = serializers.CharField(source="name")
    slug = serializers.CharField()


class BriefBusinessLine(serializers.Serializer[Any]):
    """What training is done for."""

    id = serializers.IntegerField()
    display = serializers.CharField(source="name")
    slug = serializers.CharField()


class BriefUser(serializers.Serializer[Any]):
    """An account."""

    id = serializers.IntegerField()
    display = serializers.SerializerMethodField()
    username = serializers.CharField()

    def get_display(self, user: Any) -> str:
        return user.get_full_name() or str(user.username)


class BriefSession(serializers.Serializer[Any]):
    """A session of the scheduler."""

    id = serializers.IntegerField()
    url = AddressField("sessions")
    display = serializers.SerializerMethodField()
    number = serializers.IntegerField()

    def get_display(self, session: Any) -> str:
        return f"Session {session.number}"
