from __future__ import annotations

from typing import ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from tidesched_web.accounts.models import User
from tidesched_web.clusters.models import Cluster
from tidesched_web.common.models import Versioned

# What a change may come from.
SOURCES = ("console", "api", "import", "adopt", "plan", "rollback")


class ChangeState(models.TextChoices):
    """``failed`` without ``committed_at``: nothing was written; with it: the cluster refused an object."""

    DRAFT = "draft", _("Draft")
    WAITING = "waiting", _("Waiting for approval")
    APPROVED = "approved", _("Approved")
    APPLYING = "applying", _("Applying")
    APPLIED = "applied", _("Applied")
    FAILED = "failed", _("Failed")
    REJECTED = "rejected", _("Rejected")
    CANCELLED = "cancelled", _("Cancelled")
    ROLLED_BACK = "rolled_back", _("Rolled back")


class QuotaChange(Versioned):
    """``base`` has the documents that ``edits`` (a merge patch) touches: applied only while they still are so."""

    # Nothing was written yet, and something still may be.
    OPEN: ClassVar = (ChangeState.DRAFT, ChangeState.WAITING, ChangeState.APPROVED)
    # It needs no approval and has none: it waits for its hour alone.
    SCHEDULED: ClassVar = Q(state=ChangeState.APPROVED, apply_at__isnull=False, approved_by="")

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="quota_changes")
    state = models.CharField(max_length=16, choices=ChangeState, default=ChangeState.DRAFT)
    base_version = models.PositiveBigIntegerField()
    edits = models.JSONField(default=dict)
    base = models.JSONField(default=dict)
    plan = models.JSONField(null=True)
    reason = models.TextField(blank=True)
    source = models.CharField(max_length=16, default="console", help_text=_("console, api, import, plan or rollback."))
    created_by = models.CharField(max_length=200)
    author = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    # Whose objects it touches; who sees no other tenant sees it only where all of it is theirs.
    # Counts the edits of what is reviewed (figures, base), not the steps of its life: what an approval is bound to.
    revision = models.PositiveIntegerField(default=1, editable=False)
    # Whether only a platform admin may make these edits, and so approve them.
    platform_only = models.BooleanField(default=False)
    # Whether its author asks for quota that only a platform admin sets (`ceiling_requests`).
    asks_beyond = models.BooleanField(default=False)
    # When its author asked for an approval.
    submitted_at = models.DateTimeField(null=True, blank=True)
    tenant_ids: ArrayField[list[int], list[int]] = ArrayField(models.BigIntegerField(), default=list)
    platform_wide = models.BooleanField(default=False)
    approved_by = models.CharField(max_length=200, blank=True)
    approver = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    approved_at = models.DateTimeField(null=True, blank=True)
    approved_reason = models.TextField(blank=True)
    closed_by = models.CharField(max_length=200, blank=True)
    closed_reason = models.TextField(blank=True)
    # Another person than its author closed it, and the author has not opened it since.
    closed_unseen = models.BooleanField(default=False, editable=False)
    # Set = it is to be applied, at that time or as soon as it is approved.
    apply_at = models.DateTimeField(null=True, blank=True)
    committed_at = models.DateTimeField(null=True, blank=True)
    tree_version = models.PositiveBigIntegerField(null=True)
    applied_at = models.DateTimeField(null=True, blank=True)
    error = models.TextField(blank=True)
    failure = models.JSONField(null=True)
    # Who carries it to the cluster holds it until then; a claim that ran out is free.
    claimed_until = models.DateTimeField(null=True)
    request_id = models.CharField(max_length=80, blank=True)
    rolls_back = models.ForeignKey(
        "self", on_delete=models.SET_NULL, null=True, blank=True, related_name="rolled_back_by"
    )

    class Meta:
        ordering = ["-id"]
        indexes = [
            models.Index(
                fields=["state", "apply_at"], name="change_to_do", condition=Q(state__in=("approved", "applying"))
            ),
            models.Index(fields=["cluster", "-id"], name="change_of_cluster"),
            models.Index(fields=["submitted_at"], name="change_waiting", condition=Q(state="waiting")),
            models.Index(fields=["author"], name="change_closed_unseen", condition=Q(closed_unseen=True)),
        ]

    def __str__(self) -> str:
        return f"Change {self.pk}"

    @property
    def scheduled(self) -> bool:
        return self.state == ChangeState.APPROVED and self.apply_at is not None and not self.approved_by

    @property
    def terms(self) -> dict[str, str | None]:
        return {"reason": self.reason, "apply_at": self.apply_at.isoformat() if self.apply_at else None}


class ForecastState(models.TextChoices):
    """How far a forecast has been compared with what came. ``void``: nothing was expected that can be followed."""

    FOLLOWING = "following", _("Being followed")
    DONE = "done", _("Compared")
    VOID = "void", _("Nothing expected")


class ChangeForecast(models.Model):
    """``rows`` name gangs of everybody: `forecasts.within_sight` cuts them."""

    change = models.OneToOneField(QuotaChange, on_delete=models.CASCADE, primary_key=True, related_name="forecast")
    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="+")
    state = models.CharField(max_length=12, choices=ForecastState, default=ForecastState.FOLLOWING)
    made_in = models.PositiveBigIntegerField(null=True, help_text=_("The number of the session it was tried on."))
    made_at = models.DateTimeField(null=True)
    rows = models.JSONField(default=list)
    counts = models.JSONField(default=dict)
    counted = models.BooleanField(default=True)
    sessions = models.PositiveIntegerField(default=0)
    compared_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [
            models.Index(fields=["cluster", "-change"], name="forecast_newest"),
            models.Index(fields=["state"], name="forecast_open", condition=Q(state="following")),
        ]

    def __str__(self) -> str:
        return f"Forecast of change {self.change_id}: {self.state}"


class ChangeRevision(models.Model):
    """What an open change was before it was edited: ``version`` is the last one of the change that had it."""

    change = models.ForeignKey(QuotaChange, on_delete=models.CASCADE, related_name="revisions")
    number = models.PositiveIntegerField()
    version = models.PositiveBigIntegerField()
    edits = models.JSONField()
    base = models.JSONField()
    # Its reason and its hour; empty of a revision that was kept before they counted.
    terms = models.JSONField(default=dict)
    replaced_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["number"]
        constraints = [models.UniqueConstraint(fields=["change", "number"], name="one_row_per_revision")]

    def __str__(self) -> str:
        return f"{self.change}, revision {self.number}"


class CarryState(models.TextChoices):
    QUEUED = "queued", _("Queued")
    APPLYING = "applying", _("Applying")
    APPLIED = "applied", _("Applied")
    FAILED = "failed", _("Failed")
    SKIPPED = "skipped", _("Not sent")


class CarryAct(models.TextChoices):
    APPLY = "apply", _("Apply")
    REPLACE = "replace", _("Replace")
    DELETE = "delete", _("Delete")


class ChangeObject(models.Model):
    change = models.ForeignKey(QuotaChange, on_delete=models.CASCADE, related_name="objects_carried")
    kind = models.CharField(max_length=32)
    name = models.CharField(max_length=253)
    act = models.CharField(max_length=8, choices=CarryAct, default=CarryAct.APPLY)
    wanted_version = models.PositiveBigIntegerField(default=0)
    state = models.CharField(max_length=8, choices=CarryState, default=CarryState.QUEUED)
    reason = models.TextField(blank=True)
    attempts = models.PositiveIntegerField(default=0)
    changed_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["kind", "name"]
        constraints = [models.UniqueConstraint(fields=["change", "kind", "name"], name="one_row_per_carried_object")]

    def __str__(self) -> str:
        return f"{self.kind} {self.name}: {self.state}"
