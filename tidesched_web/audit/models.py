from django.contrib.postgres.indexes import GinIndex, OpClass
from django.db import models
from django.utils.translation import gettext_lazy as _


class AuditHead(models.Model):
    """The end of one chain; locked last in every transaction that appends (see ``common.locking``)."""

    chain = models.CharField(max_length=80, primary_key=True)
    seq = models.PositiveBigIntegerField(default=0)
    hash = models.CharField(max_length=64, default="")
    # How many signed heads the chain has; each entry repeats it, so that one that is taken out is missed.
    heads = models.PositiveIntegerField(default=0)

    def __str__(self) -> str:
        return f"{self.chain} up to {self.seq}"


class AuditEntry(models.Model):
    """``hash`` is over ``payload``, its canonical bytes; the columns repeat them for search."""

    id = models.BigAutoField(primary_key=True)
    chain = models.CharField(max_length=80)
    seq = models.PositiveBigIntegerField()
    at = models.DateTimeField()
    actor = models.CharField(max_length=200)
    actor_kind = models.CharField(max_length=16, blank=True, default="")
    actor_id = models.CharField(max_length=40, blank=True, default="")
    actor_issuer = models.CharField(max_length=500, blank=True, default="", db_default="")
    actor_subject = models.CharField(max_length=255, blank=True, default="", db_default="")
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
    key_id = models.CharField(max_length=16, blank=True, default="")
    signature = models.CharField(max_length=128, blank=True, default="")

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


class SigningKey(models.Model):
    """``endorsement``: signed by the key before it. ``TIDESCHED_KEYS`` encrypts the private half."""

    number = models.PositiveIntegerField(unique=True)
    key_id = models.CharField(max_length=16, unique=True)
    public_key = models.CharField(max_length=64)
    private_key = models.BinaryField()
    encrypted_with = models.CharField(max_length=32)
    endorsed_by = models.CharField(max_length=16, blank=True, default="")
    endorsement = models.BinaryField(default=bytes)
    endorsement_signature = models.CharField(max_length=128, blank=True, default="")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["number"]

    def __str__(self) -> str:
        return self.key_id


class SignedHead(models.Model):
    """A statement has the number of the head and the digest of the one before it; those of recipe 1 neither."""

    chain = models.CharField(max_length=80)
    number = models.PositiveIntegerField(null=True)
    seq = models.PositiveBigIntegerField()
    hash = models.CharField(max_length=64)
    at = models.DateTimeField()
    key_id = models.CharField(max_length=16)
    statement = models.BinaryField()
    signature = models.CharField(max_length=128)

    class Meta:
        ordering = ["-id"]
        constraints = [models.UniqueConstraint(fields=["chain", "seq"], name="one_signature_per_head")]

    def __str__(self) -> str:
        return f"{self.chain}#{self.seq} signed"


class Segment(models.Model):
    """A closed stretch of one chain; dropped, what comes after it starts at its signed end. ``sha256``: of its file."""

    chain = models.CharField(max_length=80)
    first_seq = models.PositiveBigIntegerField()
    last_seq = models.PositiveBigIntegerField()
    prev_hash = models.CharField(max_length=64, blank=True)
    last_hash = models.CharField(max_length=64)
    first_at = models.DateTimeField()
    last_at = models.DateTimeField()
    sha256 = models.CharField(max_length=64)
    size = models.PositiveBigIntegerField()
    key_id = models.CharField(max_length=16)
    statement = models.BinaryField()
    signature = models.CharField(max_length=128)
    sealed_at = models.DateTimeField()
    sealed_by = models.CharField(max_length=200)
    exported_at = models.DateTimeField(null=True)
    exported_by = models.CharField(max_length=200, blank=True)
    export_statement = models.BinaryField(default=bytes)
    export_signature = models.CharField(max_length=128, blank=True, default="")
    dropped_at = models.DateTimeField(null=True)
    dropped_by = models.CharField(max_length=200, blank=True)
    drop_statement = models.BinaryField(default=bytes)
    drop_signature = models.CharField(max_length=128, blank=True, default="")
    purged_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["chain", "first_seq"]
        constraints = [models.UniqueConstraint(fields=["chain", "first_seq"], name="one_segment_per_place")]

    def __str__(self) -> str:
        return f"{self.chain}#{self.first_seq}-{self.last_seq}"

    @property
    def entries(self) -> int:
        return self.last_seq - self.first_seq + 1

    @property
    def state(self) -> str:
        return "dropped" if self.dropped_at else "exported" if self.exported_at else "sealed"


class ChainCheck(models.Model):
    chain = models.CharField(max_length=80, primary_key=True)
    requested_at = models.DateTimeField(null=True)
    requested_by = models.CharField(max_length=200, blank=True)
    finished_at = models.DateTimeField(null=True)
    first_seq = models.PositiveBigIntegerField(default=0)
    checked = models.PositiveBigIntegerField(default=0)
    last_hash = models.CharField(max_length=64, blank=True)
    broken_seq = models.PositiveBigIntegerField(null=True)
    kind = models.CharField(max_length=24, blank=True, default="")
    problem = models.TextField(blank=True)

    def __str__(self) -> str:
        return f"{self.chain}: {self.problem or 'intact'}"
