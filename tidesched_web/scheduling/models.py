from django.db import models
from django.utils.translation import gettext_lazy as _

from tidesched_web.clusters.models import Cluster, PolicyRevision
from tidesched_web.quota.models import Queue


class ClusterLease(models.Model):
    """Who may run sessions for a cluster. ``epoch`` grows with each new holder; expiry is by the database's clock."""

    cluster = models.OneToOneField(Cluster, on_delete=models.CASCADE, primary_key=True, related_name="lease")
    holder = models.CharField(max_length=120, blank=True)
    epoch = models.PositiveBigIntegerField(default=0)
    expires_at = models.DateTimeField(null=True)
    renewed_at = models.DateTimeField(null=True)


class SessionRequest(models.Model):
    """The work itself (a Celery message only wakes): one row a cluster, claimed with SKIP LOCKED, swept by the tick."""

    cluster = models.OneToOneField(Cluster, on_delete=models.CASCADE, primary_key=True, related_name="session_request")
    due_at = models.DateTimeField()
    asked_by = models.CharField(max_length=120, blank=True)
    failures = models.PositiveIntegerField(default=0)
    last_error = models.TextField(blank=True)


class SessionState(models.TextChoices):
    DECIDED = "decided", _("Decided")
    SENDING = "sending", _("Sending")
    DONE = "done", _("Done")
    DRY_RUN = "dry_run", _("Dry run")
    STOPPED = "stopped", _("Stopped by a guard")
    FAILED = "failed", _("Failed")


class Session(models.Model):
    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="sessions")
    number = models.PositiveBigIntegerField()
    epoch = models.PositiveBigIntegerField()
    state = models.CharField(max_length=16, choices=SessionState)
    mode = models.CharField(max_length=16)
    trigger = models.CharField(max_length=40, blank=True)
    now = models.DateTimeField()
    started_at = models.DateTimeField()
    decided_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    policy = models.ForeignKey(PolicyRevision, on_delete=models.SET_NULL, null=True)
    engine_version = models.CharField(max_length=40)
    result_hash = models.CharField(max_length=64)
    input_id = models.BigIntegerField(null=True)
    timings_ms = models.JSONField(default=dict)
    counts = models.JSONField(default=dict)
    error = models.TextField(blank=True)

    class Meta:
        ordering = ["-id"]
        constraints = [models.UniqueConstraint(fields=["cluster", "number"], name="session_number_in_cluster")]
        indexes = [
            models.Index(fields=["cluster", "-id"], name="session_newest"),
            models.Index(fields=["cluster"], name="session_open", condition=models.Q(state__in=["decided", "sending"])),
        ]

    def __str__(self) -> str:
        return f"{self.cluster} session {self.number}"


class SessionMemory(models.Model):
    cluster = models.OneToOneField(Cluster, on_delete=models.CASCADE, primary_key=True, related_name="session_memory")
    session = models.ForeignKey(Session, on_delete=models.SET_NULL, null=True)
    engine_version = models.CharField(max_length=40)
    payload = models.BinaryField()
    digest = models.CharField(max_length=64)


class SessionInput(models.Model):
    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="session_inputs")
    session = models.OneToOneField(Session, on_delete=models.CASCADE, related_name="input")
    base = models.ForeignKey("self", on_delete=models.CASCADE, null=True, related_name="differences")
    format = models.CharField(max_length=40)
    payload = models.BinaryField()
    memory = models.BinaryField()
    size = models.PositiveIntegerField()

    class Meta:
        indexes = [models.Index(fields=["cluster", "-id"], name="input_newest")]


class DecisionKind(models.TextChoices):
    BIND = "bind", _("Bind")
    EVICT = "evict", _("Evict")
    STATUS = "status", _("PodGroup status")
    EVENT = "event", _("Event")


class DecisionState(models.TextChoices):
    DECIDED = "decided", _("Decided")
    SENDING = "sending", _("Sending")
    DONE = "done", _("Done")
    FAILED = "failed", _("Failed")
    SUPERSEDED = "superseded", _("Superseded")


class Decision(models.Model):
    """One write to a cluster: written here first, then sent, then marked. Partitioned by ``at`` (wall time)."""

    id = models.BigAutoField(primary_key=True)
    at = models.DateTimeField()
    cluster = models.ForeignKey(
        Cluster, on_delete=models.CASCADE, db_index=False, db_constraint=False, related_name="+"
    )
    session = models.ForeignKey(
        Session, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="decisions"
    )
    epoch = models.PositiveBigIntegerField()
    kind = models.CharField(max_length=16, choices=DecisionKind)
    state = models.CharField(max_length=16, choices=DecisionState, default=DecisionState.DECIDED)
    gang = models.CharField(max_length=320)
    target = models.CharField(max_length=320)
    uid = models.CharField(max_length=64, blank=True)
    node = models.CharField(max_length=253, blank=True)
    detail = models.JSONField(default=dict)
    reclaim_id = models.BigIntegerField(null=True)
    outcome = models.TextField(blank=True)
    settled_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["id"]
        indexes = [
            models.Index(fields=["session", "id"], name="decision_session"),
            models.Index(
                fields=["cluster", "id"], name="decision_open", condition=models.Q(state__in=["decided", "sending"])
            ),
            models.Index(fields=["cluster", "gang", "-id"], name="decision_gang"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.target}"


class ReclaimSource(models.TextChoices):
    OWN = "own", _("TideSched")
    OBSERVED = "observed", _("Observed")


# What takes cards back: the actions of a session, plugins of theirs, and an eviction whose maker says no more.
RECLAIM_ACTIONS = ("reclaim", "preempt", "gangreclaim", "gangpreempt", "shuffle", "tdm", "evict")


class ReclaimMaker(models.TextChoices):
    TIDESCHED = "tidesched", _("TideSched")
    VOLCANO = "volcano", _("Volcano")
    SCHEDULER = "scheduler", _("Another scheduler")
    UNKNOWN = "unknown", _("Unknown")
    # History that the medium demo begins with: no pod was evicted.
    DRAWN = "drawn", _("Drawn history")


class ReclaimState(models.TextChoices):
    """What came of it. Cancelled: nothing was evicted; left: all was, and the reclaimer left before it ran."""

    DECIDED = "decided", _("Decided")
    EVICTING = "evicting", _("Evicting")
    PROMISED = "promised", _("Waiting for the cards")
    DONE = "done", _("Reclaimer runs")
    PARTIAL = "partial", _("Partly evicted")
    LEFT = "left", _("Reclaimer left")
    CANCELLED = "cancelled", _("Cancelled")
    SEEN = "seen", _("Seen")


class Reclaim(models.Model):
    """Which gang needed what and which were evicted. Amounts as in the result document (cards as counts)."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="reclaims")
    session = models.ForeignKey(Session, on_delete=models.DO_NOTHING, db_constraint=False, related_name="reclaims")
    at = models.DateTimeField(help_text=_("The cluster's clock."))
    wall_at = models.DateTimeField()
    source = models.CharField(max_length=16, choices=ReclaimSource, default=ReclaimSource.OWN)
    made_by = models.CharField(max_length=16, choices=ReclaimMaker, default=ReclaimMaker.TIDESCHED)
    # Of an observed one: what the own session decided at that moment (see `pipeline.observed_instead`).
    instead = models.JSONField(null=True)
    action = models.CharField(max_length=24)
    state = models.CharField(max_length=16, choices=ReclaimState, default=ReclaimState.DECIDED)
    reclaimer = models.CharField(max_length=320)
    queue = models.ForeignKey(Queue, on_delete=models.SET_NULL, null=True, related_name="reclaims_made")
    queue_name = models.CharField(max_length=253)
    needed = models.JSONField()
    freed = models.JSONField()
    work_lost_card_seconds = models.FloatField(default=0)
    rule = models.CharField(max_length=200)
    votes = models.JSONField(default=list)
    refused = models.JSONField(default=list)
    # Quota and use of the queues at that moment, and what gangs that were not taken would have cost (see
    # `pipeline.receipts`); empty of what others evicted.
    receipt = models.JSONField(default=dict)
    # The reclaimer's pods that were promised what falls free; the reclaim is done when they run.
    promised_pods = models.JSONField(default=list)
    audit_entry_id = models.BigIntegerField(null=True)
    promised_at = models.DateTimeField(null=True)
    running_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-id"]
        indexes = [
            models.Index(fields=["cluster", "-id"], name="reclaim_newest"),
            models.Index(fields=["cluster", "reclaimer", "-id"], name="reclaim_reclaimer"),
            models.Index(fields=["session"], name="reclaim_session"),
        ]

    def __str__(self) -> str:
        return f"{self.reclaimer} reclaims"


class ReclaimVictim(models.Model):
    reclaim = models.ForeignKey(Reclaim, on_delete=models.CASCADE, related_name="victims")
    gang = models.CharField(max_length=320)
    queue = models.ForeignKey(Queue, on_delete=models.SET_NULL, null=True, related_name="reclaims_suffered")
    queue_name = models.CharField(max_length=253)
    pods = models.JSONField(default=list)
    cards = models.JSONField(default=dict)
    work_lost_card_seconds = models.FloatField(default=0)
    # Of an observed one: uids of the members that were not evicted and restart with those that were; their work is lost
    # too, and counted above.
    restarted = models.JSONField(default=list)
    # Keys of the pods that had left by themselves when their eviction was sent: nothing was taken from them.
    ended = models.JSONField(default=list)

    class Meta:
        ordering = ["gang"]
        indexes = [models.Index(fields=["gang", "-id"], name="victim_gang")]

    def __str__(self) -> str:
        return self.gang


class ObservedEviction(models.Model):
    """A pod that another scheduler or a person evicted: once per pod, however often it is seen."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="+")
    uid = models.CharField(max_length=64)
    pod = models.CharField(max_length=320)
    reclaim = models.ForeignKey(Reclaim, on_delete=models.CASCADE, related_name="observed_pods")
    # How the reclaimer was found: by an event, by a nominated pod, or not at all.
    evidence = models.CharField(max_length=16, blank=True)
    wall_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["cluster", "uid"], name="eviction_observed_once")]

    def __str__(self) -> str:
        return self.pod


class UsageChange(models.Model):
    """Queue × card at each change, in milli-cards: a step function. Partitioned by ``wall_at``."""

    id = models.BigAutoField(primary_key=True)
    wall_at = models.DateTimeField()
    at = models.DateTimeField(help_text=_("The cluster's clock."))
    cluster = models.ForeignKey(
        Cluster, on_delete=models.CASCADE, db_index=False, db_constraint=False, related_name="+"
    )
    queue = models.ForeignKey(Queue, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+")
    card = models.CharField(max_length=120)
    quota = models.BigIntegerField()
    allocated = models.BigIntegerField()
    inqueue = models.BigIntegerField()
    elastic = models.BigIntegerField()

    class Meta:
        ordering = ["at", "id"]
        indexes = [models.Index(fields=["queue", "card", "-at"], name="usage_queue_card")]


class QueueUsage(models.Model):
    queue = models.ForeignKey(Queue, on_delete=models.CASCADE, related_name="usage")
    card = models.CharField(max_length=120)
    at = models.DateTimeField()
    quota = models.BigIntegerField()
    allocated = models.BigIntegerField()
    inqueue = models.BigIntegerField()
    elastic = models.BigIntegerField()

    class Meta:
        ordering = ["card"]
        constraints = [models.UniqueConstraint(fields=["queue", "card"], name="one_usage_per_queue_card")]


class UsageRollup(models.Model):
    queue = models.ForeignKey(Queue, on_delete=models.CASCADE, related_name="usage_rollups")
    card = models.CharField(max_length=120)
    step_seconds = models.PositiveIntegerField()
    at = models.DateTimeField()
    quota = models.BigIntegerField()
    allocated_mean = models.FloatField()
    allocated_max = models.BigIntegerField()

    class Meta:
        ordering = ["at"]
        constraints = [
            models.UniqueConstraint(fields=["queue", "card", "step_seconds", "at"], name="one_rollup_per_step")
        ]


class TidePoint(models.Model):
    """Milli-cards, ``total = inference + training + foreign + idle``; a hole means that no session ran."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="tide_points")
    at = models.DateTimeField(help_text=_("The cluster's clock."))
    wall_at = models.DateTimeField()
    card = models.CharField(max_length=120)
    total = models.BigIntegerField()
    inference = models.BigIntegerField()
    training = models.BigIntegerField()
    borrowed = models.BigIntegerField()
    foreign = models.BigIntegerField()
    idle = models.BigIntegerField()
    waiting = models.BigIntegerField()
    quota = models.BigIntegerField(null=True)

    class Meta:
        ordering = ["at", "id"]
        indexes = [models.Index(fields=["cluster", "card", "-at"], name="tide_card")]


class AlertSeverity(models.TextChoices):
    INFO = "info", _("Notice")
    WARNING = "warning", _("Warning")
    CRITICAL = "critical", _("Critical")


class Alert(models.Model):
    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, null=True, related_name="alerts")
    key = models.CharField(max_length=120)
    severity = models.CharField(max_length=16, choices=AlertSeverity)
    code = models.CharField(max_length=60)
    numbers = models.JSONField(default=dict)
    message = models.TextField()
    session_id = models.BigIntegerField(null=True)
    raised_at = models.DateTimeField()
    # Since when its cause is not seen, where an alert outlasts it for a while (`alerts.keep_open`).
    lapsed_at = models.DateTimeField(null=True)
    acknowledged_at = models.DateTimeField(null=True)
    acknowledged_by = models.CharField(max_length=200, blank=True)
    note = models.TextField(blank=True)
    resolved_at = models.DateTimeField(null=True)
    resolved_by = models.CharField(max_length=200, blank=True)

    class Meta:
        ordering = ["-raised_at"]
        constraints = [
            models.UniqueConstraint(
                fields=["cluster", "key"],
                name="one_open_alert",
                condition=models.Q(resolved_at__isnull=True),
                nulls_distinct=False,
            )
        ]

    def __str__(self) -> str:
        return self.message

    @property
    def state(self) -> str:
        return "resolved" if self.resolved_at else "acknowledged" if self.acknowledged_at else "open"


class ReachState(models.TextChoices):
    CONNECTED = "connected", _("Connected")
    UNREACHABLE = "unreachable", _("Not reachable")
    REFUSED = "refused", _("Credential refused")
    FORBIDDEN = "forbidden", _("Rights missing")
    KINDS_MISSING = "kinds_missing", _("Volcano's kinds are missing")
    FAILING = "failing", _("Answers with errors")


class ClusterReach(models.Model):
    cluster = models.OneToOneField(Cluster, on_delete=models.CASCADE, primary_key=True, related_name="reach")
    state = models.CharField(max_length=16, choices=ReachState, default=ReachState.CONNECTED)
    since = models.DateTimeField()
    detail = models.TextField(blank=True)
    kinds = models.JSONField(default=list)

    def __str__(self) -> str:
        return f"{self.cluster_id}: {self.state}"
