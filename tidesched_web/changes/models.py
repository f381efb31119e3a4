"""Quota changes: draft, plan, approval, apply, roll back."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from tidesched_web.clusters.models import Cluster
from tidesched_web.common.models import Versioned


class ChangeState(models.TextChoices):
    """Where a change stands."""

    DRAFT = "draft", _("Draft")
    WAITING = "waiting", _("Waiting for approval")
    APPROVED = "approved", _("Approved")
    APPLYING = "applying", _("Applying")
    APPLIED = "applied", _("Applied")
    FAILED = "failed", _("Failed")
    ROLLED_BACK = "rolled_back", _("Rolled back")


class QuotaChange(Versioned):
    """A set of edits of one cluster's quota tree that is planned, approved and applied as one."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="quota_changes")
    state = models.CharField(max_length=16, choices=ChangeState, default=ChangeState.DRAFT)
    base_version = models.PositiveBigIntegerField()
    edits = models.JSONField(default=list)
    plan = models.JSONField(null=True)
    reason = models.TextField(blank=True)
    created_by = models.CharField(max_length=200)
    approved_by = models.CharField(max_length=200, blank=True)
    apply_at = models.DateTimeField(null=True, blank=True)
    applied_at = models.DateTimeField(null=True, blank=True)
    error = models.TextField(blank=True)
    rolls_back = models.ForeignKey(
        "self", on_delete=models.SET_NULL, null=True, blank=True, related_name="rolled_back_by"
    )

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return f"Change {self.pk}"
