"""The append-only, hash-chained record of who did what."""

from __future__ import annotations

from django.contrib.postgres.indexes import GinIndex, OpClass
from django.db import models
from django.utils.translation import gettext_lazy as _


class AuditHead(models.Model):
    """The end of one chain; locked last in every transaction that appends (see ``common.locking``)."""

    chain = models.CharField(max_length=80, primary_key=True)
    seq = models.PositiveBigIntegerField(default=0)
    hash = models.CharField(max_length=64, default="")

    def __str__(self) -> str:
        return f"{self.chain} up to {self.seq}"


class AuditEntry(models.Model):
    """One entry of a chain. Partitioned by ``at``; never updated, never deleted row by row.

    ``payload`` holds the canonical bytes (RFC 8785) over which ``hash`` was taken; ``before`` and ``after`` repeat
    parts of it for search. The actor is text, so an entry outlives the account.
    """

    id = models.BigAutoField(primary_key=True)
    chain = models.CharField(max_length=80)
    seq = models.PositiveBigIntegerField()
    at = models.DateTimeField()
    actor = models.CharField(max_length=200)
    action = models.CharField(max_length=80)
    object_type = models.CharField(max_length=80)
    object_id = models.CharField(max_length=200)
    object_label = models.CharField(max_length=300, blank=True)
    cluster_id = models.BigIntegerField(null=True)
    tenant_ids = models.JSONField(default=list)
    request_id = models.CharField(max_length=80, blank=True)
    address = models.CharField(max_length=64, blank=True)
    reason = models.TextField(blank=True)
    before = models.JSONField(null=True)
    after = models.JSONField(null=True)
    payload = models.BinaryField()
    prev_hash = models.CharField(max_length=64)
    hash = models.CharField(max_length=64)

    class Meta:
        ordering = ["-id"]
        verbose_name = _("audit entry")
        verbose_name_plural = _("audit entries")
        indexes = [
            models.Index(fields=["chain", "seq"], name="audit_chain_seq"),
            models.Index(fields=["cluster_id", "-id"], name="audit_cluster"),
            models.Index(fields=["object_type", "object_id"], name="audit_object"),
            models.Index(fields=["request_id"], name="audit_request"),
            # A member's log: the few entries that touch their tenants.
            GinIndex(OpClass("tenant_ids", name="jsonb_path_ops"), name="audit_tenants"),
        ]

    def __str__(self) -> str:
        return f"{self.chain}#{self.seq} {self.action}"
