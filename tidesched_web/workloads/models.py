import datetime as dt

from django.db import models
from django.db.models.functions import Coalesce
from django.utils.translation import gettext_lazy as _

from tidesched_web.clusters.models import Cluster
from tidesched_web.quota.models import Queue


class GangState(models.TextChoices):
    """The word that a person reads; made from phase, reason and what was evicted."""

    WAITING = "waiting", _("Waiting")
    ADMITTED = "admitted", _("Admitted")
    RUNNING = "running", _("Running")
    RECLAIMED = "reclaimed", _("Reclaimed")
    FINISHED = "finished", _("Finished")
    FAILED = "failed", _("Failed")


TERMINAL_GANG_STATES = (GangState.FINISHED, GangState.FAILED)

# The order of the list of gangs, in a query and in the index that serves it: who waits, the longest wait first, then
# who runs, then who is over.
_WAITS = models.Q(gone_at__isnull=True) & (
    models.Q(needs=True) | models.Q(state__in=(GangState.WAITING, GangState.ADMITTED))
)
_OVER = models.Q(gone_at__isnull=False) | models.Q(state__in=TERMINAL_GANG_STATES)
_NO_WAIT = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
RANK = models.Case(
    models.When(_WAITS, then=0), models.When(_OVER, then=2), default=1, output_field=models.IntegerField()
)
WAITS_FROM = models.Case(
    models.When(_WAITS, then=Coalesce("waiting_since", "submitted_at")),
    default=models.Value(_NO_WAIT),
    output_field=models.DateTimeField(),
)


class Gang(models.Model):
    """The cluster's clock unless it says wall. ``cards`` maps card names (``A|B`` for a choice) to counts."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="gangs")
    namespace = models.CharField(max_length=63)
    name = models.CharField(max_length=253)
    uid = models.CharField(max_length=64)
    queue = models.ForeignKey(Queue, on_delete=models.SET_NULL, null=True, related_name="gangs")
    queue_name = models.CharField(max_length=253)
    service_type = models.CharField(max_length=16)
    owner_kind = models.CharField(max_length=63, blank=True)
    owner_name = models.CharField(max_length=253, blank=True)
    priority = models.IntegerField(default=0)
    priority_class = models.CharField(max_length=253, blank=True)
    min_member = models.PositiveIntegerField(default=1)
    replicas = models.PositiveIntegerField(default=0)
    ready = models.PositiveIntegerField(default=0)
    bound = models.PositiveIntegerField(default=0)
    phase = models.CharField(max_length=16)
    state = models.CharField(max_length=16, choices=GangState, default=GangState.WAITING)
    # True while the gang still needs something: then it has a reason.
    needs = models.BooleanField(default=False)
    cards = models.JSONField(default=dict)
    cpu_milli = models.BigIntegerField(default=0)
    memory_mib = models.BigIntegerField(default=0)
    position = models.PositiveIntegerField(null=True)
    reason_code = models.CharField(max_length=32, blank=True)
    reason_numbers = models.JSONField(default=dict)
    reason_message = models.TextField(blank=True)
    reason_since = models.DateTimeField(null=True)
    # The session that the reason's figures in this row are of, by number, and its time; see `reason_figures.as_of`.
    figures_number = models.PositiveBigIntegerField(null=True)
    figures_at = models.DateTimeField(null=True)
    submitted_at = models.DateTimeField()
    waiting_since = models.DateTimeField(null=True)
    # Since when it holds a promise (phase Inqueue) without running; null for all others.
    admitted_at = models.DateTimeField(null=True)
    # Until when it is not admitted, since a person has withdrawn its promise.
    withdrawn_until = models.DateTimeField(null=True, db_index=True)
    # Until when it is no victim, or was none: evicted before, it has the cool-down of the scheduler.
    spared_until = models.DateTimeField(null=True)
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    # Wall time of the session that saw it last; gone_at (wall) when the object left the cluster.
    seen_at = models.DateTimeField()
    gone_at = models.DateTimeField(null=True)
    session_id = models.BigIntegerField(null=True)
    manifest = models.JSONField(default=dict)

    class Meta:
        ordering = ["-submitted_at", "id"]
        constraints = [models.UniqueConstraint(fields=["cluster", "namespace", "name", "uid"], name="gang_in_cluster")]
        indexes = [
            models.Index(fields=["cluster", "state", "waiting_since", "id"], name="gang_waiting"),
            models.Index(fields=["cluster", "-submitted_at", "-id"], name="gang_newest"),
            models.Index(
                "cluster", RANK, WAITS_FROM, models.F("submitted_at").desc(), models.F("id").desc(), name="gang_by_need"
            ),
            models.Index(fields=["queue", "state"], name="gang_queue"),
            models.Index(fields=["cluster", "namespace", "name"], name="gang_key"),
            models.Index(fields=["cluster", "reason_code"], name="gang_reason", condition=models.Q(needs=True)),
            models.Index(
                fields=["cluster", "spared_until"], name="gang_spared", condition=models.Q(spared_until__isnull=False)
            ),
            models.Index(fields=["gone_at"], name="gang_gone", condition=models.Q(gone_at__isnull=False)),
        ]

    def __str__(self) -> str:
        return self.key

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def left_waiting(self) -> bool:
        """Whether it left the cluster before it ran: when it was seen last, no pod of it had a node."""
        over = self.gone_at is not None and self.state == GangState.FINISHED
        return over and self.started_at is None and not self.bound and self.phase in ("Pending", "Inqueue")


class ReasonFigures(models.Model):
    """The session that the figures of all waiting gangs of a cluster are of; a row that says a newer one is newer."""

    cluster = models.OneToOneField(Cluster, on_delete=models.CASCADE, primary_key=True, related_name="reason_figures")
    number = models.PositiveBigIntegerField()
    at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.cluster_id}: session {self.number}"


class GangRemedy(models.Model):
    """Holds for ``basis``. ``starts``: with it the gang starts, else it is admitted."""

    gang = models.OneToOneField(Gang, on_delete=models.CASCADE, primary_key=True, related_name="worked_out")
    basis = models.JSONField(default=dict)
    # All figures of that reason in the session that it was worked out over; who holds what is not kept.
    numbers = models.JSONField(default=dict)
    remedy = models.JSONField(null=True)
    starts = models.BooleanField(default=True)
    until = models.DateTimeField(null=True)
    until_why = models.CharField(max_length=24, blank=True)
    # What each pod asks for beyond what the largest node has: [{resource, asked, largest}].
    too_large = models.JSONField(default=list)
    # Where nothing helps: the gang that would get what another one's end frees, and how much services hold.
    goes_first = models.CharField(max_length=320, blank=True)
    held_by_services = models.FloatField(default=0)
    session_id = models.BigIntegerField()
    number = models.PositiveBigIntegerField()
    at = models.DateTimeField()
    worked_out_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.gang_id}: {self.remedy}"


class GangPod(models.Model):
    gang = models.ForeignKey(Gang, on_delete=models.CASCADE, related_name="pods")
    name = models.CharField(max_length=253)
    uid = models.CharField(max_length=64)
    role = models.CharField(max_length=63, blank=True)
    phase = models.CharField(max_length=16)
    leaving = models.BooleanField(default=False)
    node = models.CharField(max_length=253, blank=True)
    card = models.CharField(max_length=120, blank=True)
    card_milli = models.IntegerField(default=0)
    card_indices = models.JSONField(default=list)
    started_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["gang", "uid"], name="pod_in_gang")]

    def __str__(self) -> str:
        return self.name


class GangEventKind(models.TextChoices):
    SUBMITTED = "submitted", _("Submitted")
    REASON = "reason", _("Waits for another reason")
    ADMITTED = "admitted", _("Admitted")
    PROMISED = "promised", _("Promised")
    BOUND = "bound", _("Bound")
    RUNNING = "running", _("Running")
    RECLAIMED = "reclaimed", _("Reclaimed")
    RESTARTED = "restarted", _("Restarted")
    FINISHED = "finished", _("Finished")
    FAILED = "failed", _("Failed")
    GONE = "gone", _("Left the cluster")


class GangEvent(models.Model):
    """One point of a gang's timeline; ``at`` in the cluster's clock, ``wall_at`` when it was written."""

    gang = models.ForeignKey(Gang, on_delete=models.CASCADE, related_name="events")
    kind = models.CharField(max_length=16, choices=GangEventKind)
    at = models.DateTimeField()
    wall_at = models.DateTimeField()
    session_id = models.BigIntegerField(null=True)
    reclaim_id = models.BigIntegerField(null=True)
    detail = models.JSONField(default=dict)

    class Meta:
        ordering = ["at", "id"]

    def __str__(self) -> str:
        return f"{self.gang} {self.kind}"
