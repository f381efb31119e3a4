"""Audit entries as the API shows them."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from tidesched_web.api.v1.serializers.briefs import AddressField
from tidesched_web.audit.sight import content_hidden, tenants_shown


@extend_schema_field({"type": ["object", "null"], "additionalProperties": True})
class StateField(serializers.Field[Any, Any, Any, Any]):
    """What the object said before or after."""

    def to_representation(self, value: Any) -> Any:
        return value


class AuditEntryDocument(serializers.Serializer[Any]):
    """One entry of a chain. ``hash`` is SHA-256 over the bytes of ``payload``; docs/audit.md has the recipe.

    Who does not see everything gets neither payload nor address, and of an entry that also touches somebody else's
    tenant neither before nor after.
    """

    id = serializers.IntegerField()
    url = AddressField("audit")
    chain = serializers.CharField()
    seq = serializers.IntegerField()
    at = serializers.DateTimeField()
    actor = serializers.CharField()
    action = serializers.CharField()
    object_type = serializers.CharField()
    object_id = serializers.CharField()
    object_label = serializers.CharField()
    cluster = serializers.IntegerField(source="cluster_id", allow_null=True)
    tenants = serializers.ListField(source="tenant_ids", child=serializers.IntegerField())
    request_id = serializers.CharField()
    address = serializers.CharField()
    reason = serializers.CharField()
    before = StateField()
    after = StateField()
    prev_hash = serializers.CharField()
    hash = serializers.CharField()
    payload = serializers.SerializerMethodField(allow_null=True)

    @extend_schema_field({"type": ["string", "null"], "description": "The canonical bytes (RFC 8785), UTF-8."})
    def get_payload(self, entry: Any) -> str | None:
        return bytes(entry.payload).decode()

    def to_representation(self, instance: Any) -> dict[str, Any]:
        document = super().to_representation(instance)
        access = self.context["access"]
        if not access.everything:
            document |= {"address": "", "payload": None, "tenants": tenants_shown(instance, access)}
        if content_hidden(instance, access):
            document |= {"before": None, "after": None}
        return document
