from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from tidesched_web.clusters.models import Cluster


class JobState(models.TextChoices):
    QUEUED = "queued", _("Queued")
    RUNNING = "running", _("Running")
    DONE = "done", _("Done")
    FAILED = "failed", _("Failed")
    CANCELLED = "cancelled", _("Cancelled")


OPEN_JOB_STATES = (JobState.QUEUED, JobState.RUNNING)


class JobKind(models.TextChoices):
    """What a job does; who does it stands in `settings.JOB_HANDLERS`."""

    IMPACT = "impact", _("Impact on the current snapshot")
    IMPACT_DAY = "impact_day", _("Impact over the last day")
    EXPORT = "export", _("Export")
    ADOPT = "adopt", _("Adoption of queues")
    CONNECTION_TEST = "connection_test", _("Connection test")


class Job(models.Model):
    """``result`` may name what its reader must not see: who shows it cuts it to their sight."""

    kind = models.CharField(max_length=24, choices=JobKind)
    subject = models.CharField(max_length=120, blank=True)
    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, null=True, related_name="jobs")
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="jobs")
    actor = models.CharField(max_length=200)
    worker = models.CharField(max_length=24, default="work")
    state = models.CharField(max_length=12, choices=JobState, default=JobState.QUEUED)
    progress = models.FloatField(default=0)
    log = models.JSONField(default=list)
    params = models.JSONField(default=dict)
    checkpoint = models.JSONField(null=True)
    result = models.JSONField(null=True)
    error = models.TextField(blank=True)
    attempt = models.PositiveIntegerField(default=0)
    cancel_asked_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True)
    heard_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-id"]
        indexes = [
            models.Index(fields=["owner", "-id"], name="job_owner"),
            models.Index(fields=["worker", "id"], name="job_open", condition=models.Q(state__in=["queued", "running"])),
        ]

    def __str__(self) -> str:
        return f"Job {self.pk}"

    @property
    def open(self) -> bool:
        return self.state in OPEN_JOB_STATES
