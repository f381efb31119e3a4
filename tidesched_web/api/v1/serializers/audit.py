from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from tidesched_web.api.v1.serializers.briefs import AddressField, ShownAsIs
from tidesched_web.api.v1.serializers.json_shapes import AUDIT_STATE
from tidesched_web.audit.sight import after_shown, content_hidden, tenants_shown


@extend_schema_field(AUDIT_STATE, component_name="AuditState")
class StateField(ShownAsIs):
    """What the object said before or after."""


class AuditEntryDocument(serializers.Serializer[Any]):
    """One entry of a chain. ``hash`` is SHA-256 over the bytes of ``payload``; docs/audit.md has the recipe.

    Who does not see everything gets neither payload nor address, and of an entry that also touches another
    tenant, or a queue of the platform's own, neither before nor after.
    """

    id = serializers.IntegerField()
    url = AddressField("audit")
    chain = serializers.CharField()
    seq = serializers.IntegerField()
    at = serializers.DateTimeField()
    actor = serializers.CharField()
    actor_kind = serializers.CharField(
        help_text="user, token, account, anonymous, process, operator or unknown; empty before recipe 2."
    )
    actor_id = serializers.CharField(help_text="The account's number for user, token and account.")
    actor_issuer = serializers.CharField(help_text="The provider that vouched for the person; empty with a password.")
    actor_subject = serializers.CharField(help_text="Whom the issuer says that it is; empty with a password.")
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
    key_id = serializers.CharField()
    signature = serializers.CharField(help_text="Ed25519, made when the entry was written; empty before recipe 2.")
    payload = serializers.SerializerMethodField(allow_null=True)

    @extend_schema_field({"type": ["string", "null"], "description": "The canonical bytes (RFC 8785), UTF-8."})
    def get_payload(self, entry: Any) -> str | None:
        return bytes(entry.payload).decode()

    def to_representation(self, instance: Any) -> dict[str, Any]:
        document = super().to_representation(instance)
        access = self.context["access"]
        if not access.everything:
            document |= {
                "address": "",
                "actor_issuer": "",
                "actor_subject": "",
                "payload": None,
                "tenants": tenants_shown(instance, access),
            }
        own_queues = self.context["own_queues"]
        document["after"] = after_shown(instance, access, own_queues)
        if content_hidden(instance, access, own_queues):
            document["before"] = None
        return document


class SignedHeadDocument(serializers.Serializer[Any]):
    """The end of a chain at a moment: ``signature`` is Ed25519 over the bytes of ``statement`` (docs/audit.md)."""

    id = serializers.IntegerField()
    chain = serializers.CharField()
    seq = serializers.IntegerField()
    hash = serializers.CharField()
    at = serializers.DateTimeField()
    key_id = serializers.CharField()
    statement = serializers.SerializerMethodField()
    signature = serializers.CharField()

    @extend_schema_field(str)
    def get_statement(self, row: Any) -> str:
        return bytes(row.statement).decode()


class SegmentDocument(serializers.Serializer[Any]):
    """A closed stretch of a chain; ``sha256`` is that of its file."""

    id = serializers.IntegerField()
    chain = serializers.CharField()
    state = serializers.ChoiceField(choices=["sealed", "exported", "dropped"])
    first_seq = serializers.IntegerField()
    last_seq = serializers.IntegerField()
    prev_hash = serializers.CharField()
    last_hash = serializers.CharField()
    entries = serializers.IntegerField()
    size = serializers.IntegerField()
    sha256 = serializers.CharField()
    key_id = serializers.CharField()
    statement = serializers.SerializerMethodField()
    signature = serializers.CharField()
    sealed_at = serializers.DateTimeField()
    sealed_by = serializers.CharField()
    exported_at = serializers.DateTimeField(allow_null=True)
    dropped_at = serializers.DateTimeField(allow_null=True)

    @extend_schema_field(str)
    def get_statement(self, row: Any) -> str:
        return bytes(row.statement).decode()


class ChainDocument(serializers.Serializer[Any]):
    """One chain: its end, and what its newest verification has found (null: none yet)."""

    chain = serializers.CharField()
    seq = serializers.IntegerField(source="head.seq")
    hash = serializers.CharField(source="head.hash")
    kept = serializers.IntegerField()
    anchor = serializers.IntegerField(help_text="The last entry that was dropped; 0 = none.")
    signed_seq = serializers.IntegerField(source="signed.seq", default=None, allow_null=True)
    verified_at = serializers.DateTimeField(source="check.finished_at", default=None, allow_null=True)
    intact = serializers.SerializerMethodField(allow_null=True)
    broken_seq = serializers.IntegerField(source="check.broken_seq", default=None, allow_null=True)
    problem = serializers.CharField(source="check.problem", default="")

    @extend_schema_field({"type": ["boolean", "null"]})
    def get_intact(self, chain: Any) -> bool | None:
        check = chain["check"]
        return None if check is None or check.finished_at is None else check.broken_seq is None
