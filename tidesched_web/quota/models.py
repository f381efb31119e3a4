import datetime as dt
from typing import Any, ClassVar, Final

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from tidesched_web.accounts.models import BusinessLine, Project, Tenant
from tidesched_web.clusters.models import CardType, Cluster
from tidesched_web.common.models import ServiceType, Versioned


class QuotaTree(models.Model):
    """The row that every quota write of a cluster locks first, so that the sum rules hold under concurrency."""

    cluster = models.OneToOneField(Cluster, on_delete=models.CASCADE, primary_key=True, related_name="quota_tree")
    version = models.PositiveBigIntegerField(default=1)

    def __str__(self) -> str:
        return f"Quota tree {self.cluster_id}, version {self.version}"


class QueueState(models.TextChoices):
    OPEN = "Open", _("Open")
    CLOSING = "Closing", _("Closing")
    CLOSED = "Closed", _("Closed")
    UNKNOWN = "Unknown", _("Unknown")


class SyncState(models.TextChoices):
    PENDING = "pending", _("Pending")
    IN_STEP = "in_step", _("In step")
    DRIFTED = "drifted", _("Drifted")
    FAILED = "failed", _("Failed")
    UNKNOWN = "unknown", _("Unknown")


class Queue(Versioned):
    """A queue of a cluster. Inference queues belong to a tenant's project, training queues to a business line."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="queues")
    name = models.CharField(max_length=253)
    service_type = models.CharField(max_length=16, choices=ServiceType)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, null=True, blank=True, related_name="queues")
    project = models.ForeignKey(Project, on_delete=models.PROTECT, null=True, blank=True, related_name="queues")
    business_line = models.ForeignKey(
        BusinessLine, on_delete=models.PROTECT, null=True, blank=True, related_name="queues"
    )
    weight = models.PositiveIntegerField(default=1, validators=[MinValueValidator(1), MaxValueValidator(65535)])
    priority = models.PositiveIntegerField(default=20000)
    reclaimable = models.BooleanField(default=True)
    cpu_milli = models.BigIntegerField(null=True, blank=True, help_text=_("No limit when empty."))
    memory_mib = models.BigIntegerField(null=True, blank=True, help_text=_("No limit when empty."))
    parent = models.CharField(max_length=253, blank=True)
    deserved = models.JSONField(default=dict, blank=True)
    guarantee = models.JSONField(default=dict, blank=True)
    state = models.CharField(max_length=16, choices=QueueState, default=QueueState.OPEN)
    live_state = models.CharField(max_length=16, choices=QueueState, default=QueueState.UNKNOWN)
    sync_state = models.CharField(max_length=16, choices=SyncState, default=SyncState.PENDING)
    sync_error = models.TextField(blank=True)
    pushed_version = models.PositiveBigIntegerField(default=0)
    pushed_at = models.DateTimeField(null=True)
    # How often in a row the cluster has refused it, and when it is sent again without an edit.
    refusals = models.PositiveSmallIntegerField(default=0)
    retry_at = models.DateTimeField(null=True)
    # What was last sent to the cluster where tide plans made it other than the base: card name → cards.
    tide = models.JSONField(default=dict, blank=True, editable=False)

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(fields=["cluster", "name"], name="queue_in_cluster"),
            models.CheckConstraint(
                name="inference_queue_has_project",
                condition=~Q(service_type="inference") | Q(tenant__isnull=False, project__isnull=False),
            ),
            models.CheckConstraint(
                name="training_queue_has_business_line",
                condition=~Q(service_type="training") | Q(business_line__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return self.name


class CardQuota(models.Model):
    """How many cards of a type a queue may use, or a tenant or project per service type. Exactly one owner is set."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="card_quotas")
    card_type = models.ForeignKey(CardType, on_delete=models.PROTECT, related_name="quotas")
    service_type = models.CharField(max_length=16, choices=ServiceType)
    queue = models.ForeignKey(Queue, on_delete=models.CASCADE, null=True, blank=True, related_name="card_quotas")
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, null=True, blank=True, related_name="card_quotas")
    project = models.ForeignKey(Project, on_delete=models.CASCADE, null=True, blank=True, related_name="card_quotas")
    cards = models.PositiveIntegerField()

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="card_quota_has_one_owner",
                condition=(
                    Q(queue__isnull=False, tenant__isnull=True, project__isnull=True)
                    | Q(queue__isnull=True, tenant__isnull=False, project__isnull=True)
                    | Q(queue__isnull=True, tenant__isnull=True, project__isnull=False)
                ),
            ),
            models.UniqueConstraint(
                fields=["cluster", "card_type", "service_type", "queue", "tenant", "project"],
                name="one_card_quota_per_owner",
                nulls_distinct=False,
            ),
        ]

    def __str__(self) -> str:
        return f"{self.queue or self.project or self.tenant}: {self.cards} × {self.card_type}"


class ComputeQuota(models.Model):
    """CPU and memory ceiling of a tenant or project per service type; an empty figure is no limit."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="compute_quotas")
    service_type = models.CharField(max_length=16, choices=ServiceType)
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, null=True, blank=True, related_name="compute_quotas")
    project = models.ForeignKey(Project, on_delete=models.CASCADE, null=True, blank=True, related_name="compute_quotas")
    cpu_milli = models.BigIntegerField(null=True, blank=True)
    memory_mib = models.BigIntegerField(null=True, blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="compute_quota_has_one_owner",
                condition=Q(tenant__isnull=False, project__isnull=True) | Q(tenant__isnull=True, project__isnull=False),
            ),
            models.UniqueConstraint(
                fields=["cluster", "service_type", "tenant", "project"],
                name="one_compute_quota_per_owner",
                nulls_distinct=False,
            ),
        ]

    def __str__(self) -> str:
        return f"{self.project or self.tenant}: cpu {self.cpu_milli}, memory {self.memory_mib}"


# The four levels of the founding documents.
DEFAULT_PRIORITY_CLASSES: Final = {"pc-high": 80000, "pc-medium": 60000, "pc-normal": 40000, "pc-low": 20000}


class PriorityClass(Versioned):
    """A named priority; Kubernetes cannot edit the value of a live one, so replacing it is an act of its own."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="priority_classes")
    name = models.CharField(max_length=253)
    value = models.IntegerField()
    global_default = models.BooleanField(default=False)
    preemption_policy = models.CharField(
        max_length=24,
        choices=[("PreemptLowerPriority", "PreemptLowerPriority"), ("Never", "Never")],
        default="PreemptLowerPriority",
    )
    description = models.TextField(blank=True)
    sync_state = models.CharField(max_length=16, choices=SyncState, default=SyncState.PENDING)
    sync_error = models.TextField(blank=True)
    pushed_version = models.PositiveBigIntegerField(default=0)
    refusals = models.PositiveSmallIntegerField(default=0)
    retry_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-value", "name"]
        constraints = [models.UniqueConstraint(fields=["cluster", "name"], name="priority_class_in_cluster")]

    def __str__(self) -> str:
        return f"{self.name} ({self.value})"


class NamespaceGrant(models.Model):
    """A namespace that may use a queue. A cluster without any grant lets every namespace use every queue."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="namespace_grants")
    namespace = models.CharField(max_length=63)
    queue = models.ForeignKey(Queue, on_delete=models.CASCADE, related_name="namespace_grants")

    # It is made and taken back, never edited.
    version: ClassVar[int] = 1

    class Meta:
        ordering = ["namespace", "queue"]
        constraints = [models.UniqueConstraint(fields=["namespace", "queue"], name="one_grant_per_namespace")]

    def __str__(self) -> str:
        return f"{self.namespace} → {self.queue}"


class TidePlan(Versioned):
    """Layers over the base quota by the clock; what they add is computed, never stored over the base."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="tide_plans")
    name = models.CharField(max_length=120)
    position = models.PositiveIntegerField(default=0)
    time_zone = models.CharField(max_length=64, default="UTC")
    enabled = models.BooleanField(default=False)
    exceptions = models.JSONField(default=dict, blank=True)
    layers = models.JSONField(default=list, blank=True)

    class Meta:
        ordering = ["position", "name"]
        constraints = [models.UniqueConstraint(fields=["cluster", "name"], name="tide_plan_in_cluster")]

    def __str__(self) -> str:
        return self.name


class TideAnswer(models.TextChoices):
    TAKEN = "taken", _("In step")
    PENDING = "pending", _("Pending")
    REFUSED = "refused", _("Refused by the cluster")


class TideStep(models.Model):
    """The cluster's clock. ``wanted`` is what the layers make; ``after`` may be more where inference still uses it."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="tide_steps")
    queue = models.ForeignKey(Queue, on_delete=models.CASCADE, related_name="tide_steps")
    card = models.CharField(max_length=120)
    # The names of the plans that are about the figure, and of the layers that are open ("plan: layer").
    plans = models.JSONField(default=list)
    layers = models.JSONField(default=list)
    taken_back = models.JSONField(default=list)
    since = models.DateTimeField(null=True)
    at = models.DateTimeField()
    answered_at = models.DateTimeField()
    before = models.PositiveIntegerField()
    after = models.PositiveIntegerField()
    wanted = models.PositiveIntegerField()
    answer = models.CharField(max_length=16, choices=TideAnswer)
    message = models.TextField(blank=True)

    class Meta:
        ordering = ["-id"]
        indexes = [
            models.Index(fields=["cluster", "-id"], name="tide_step_newest"),
            models.Index(fields=["queue", "card", "-id"], name="tide_step_of_figure"),
        ]

    def __str__(self) -> str:
        return f"{self.queue_id} {self.card}: {self.before} → {self.after}"

    @property
    def ended_by_hand(self) -> list[dict[str, Any]]:
        moments = ((one, one["opens_next"]) for one in self.taken_back)
        return [{**one, "opens_next": dt.datetime.fromisoformat(then) if then else None} for one, then in moments]


class PushedObject(models.Model):
    """One object as last sent to a cluster, field by field; the push writes it once the cluster has taken it."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="pushed_objects")
    kind = models.CharField(max_length=24)
    name = models.CharField(max_length=253)
    fields = models.JSONField(default=dict)
    version = models.PositiveBigIntegerField(default=0)
    pushed_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["cluster", "kind", "name"], name="one_push_per_object")]

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


class DriftState(models.TextChoices):
    OPEN = "open", pgettext_lazy("of a drift", "Open")
    IGNORED = "ignored", _("Ignored")
    RESOLVED = "resolved", _("Resolved")


class DriftWhat(models.TextChoices):
    CHANGED = "changed", _("Changed by hand")
    MISSING = "missing", _("Deleted")
    REFUSED = "refused", _("Refused by the cluster")


class DriftEnd(models.TextChoices):
    PUSHED = "pushed", _("Pushed again")
    ADOPTED = "adopted", _("Adopted")
    REVERTED = "reverted", _("Changed back in the cluster")
    LEFT = "left", _("No longer decided on here")


class Drift(models.Model):
    """One row until it ends. ``digest`` is of the live values: an ignored drift opens again when it changes."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="drifts")
    kind = models.CharField(max_length=24)
    name = models.CharField(max_length=253)
    queue = models.ForeignKey(Queue, on_delete=models.SET_NULL, null=True, related_name="drifts")
    what = models.CharField(max_length=16, choices=DriftWhat)
    # What the cluster answered to the newest push, where it refused it.
    refusal = models.TextField(blank=True)
    state = models.CharField(max_length=16, choices=DriftState, default=DriftState.OPEN)
    fields = models.JSONField(default=list)
    live = models.JSONField(null=True)
    digest = models.CharField(max_length=64)
    found_at = models.DateTimeField()
    changed_at = models.DateTimeField()
    decided_by = models.CharField(max_length=200, blank=True)
    decided_at = models.DateTimeField(null=True)
    reason = models.TextField(blank=True)
    # What a person asked for and is under way: a push, or the change that adopts it.
    asked = models.CharField(max_length=16, choices=DriftEnd, blank=True)
    change_id = models.BigIntegerField(null=True)
    ended_at = models.DateTimeField(null=True)
    end = models.CharField(max_length=16, choices=DriftEnd, blank=True)

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["cluster", "kind", "name"], name="one_drift_per_object", condition=~Q(state="resolved")
            )
        ]
        indexes = [models.Index(fields=["cluster", "-id"], name="drift_newest")]

    def __str__(self) -> str:
        return f"{self.kind} {self.name}: {self.what}"


class DriftLook(models.Model):
    cluster = models.OneToOneField(Cluster, on_delete=models.CASCADE, primary_key=True, related_name="drift_look")
    looked_at = models.DateTimeField()
    objects_compared = models.PositiveIntegerField(default=0)
    unmanaged = models.JSONField(default=list)
    unmanaged_classes = models.JSONField(default=list)

    def __str__(self) -> str:
        return f"{self.cluster_id} looked at {self.looked_at}"
