from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from typing import Any

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from tidesched_web.clusters.kubernetes.verbs import VOLCANO_CONFIG_MAP, VOLCANO_NAMESPACE
from tidesched_web.common.models import Versioned


class ClusterMode(models.TextChoices):
    OBSERVE = "observe", _("Observe: decide and show, write nothing")
    QUOTA = "quota", _("Quota: push queues, Volcano schedules")
    SCHEDULE = "schedule", _("Schedule: TideSched is the scheduler")


# The scheduler name that Volcano's webhook gives to the pods of its jobs.
VOLCANO_SCHEDULER = "volcano"


def default_scheduler_names() -> list[str]:
    return ["tidesched"]


class ConnectionKind(models.TextChoices):
    TOKEN = "token", _("Token")
    CERTIFICATE = "certificate", _("Client certificate")
    IN_CLUSTER = "in_cluster", _("Service account of TideSched's own pod")


class SealedConnection(models.Model):
    """How an API server is reached. ``credentials`` holds all secrets, encrypted; `clusters.credentials` reads them."""

    api_url = models.CharField(max_length=300)
    ca_certificate = models.TextField(blank=True)
    tls_server_name = models.CharField(max_length=253, blank=True)
    connection_kind = models.CharField(max_length=16, choices=ConnectionKind, default=ConnectionKind.TOKEN)
    credentials = models.BinaryField(null=True, blank=True, editable=False)
    credentials_key_id = models.CharField(max_length=32, blank=True, editable=False)
    # Whom the credentials say that they are, and until when; neither is secret.
    credentials_subject = models.CharField(max_length=300, blank=True)
    credentials_expire_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        abstract = True


class Cluster(Versioned, SealedConnection):
    """``now = clock_anchor + (wall - clock_wall_anchor) * clock_rate``; a real cluster has rate 1 and no anchors."""

    name = models.CharField(max_length=120, unique=True)
    slug = models.SlugField(max_length=63, unique=True)
    mode = models.CharField(max_length=16, choices=ClusterMode, default=ClusterMode.OBSERVE)
    simulated = models.BooleanField(default=False)
    credentials_set_at = models.DateTimeField(null=True, blank=True)
    credentials_set_by = models.CharField(max_length=200, blank=True)
    # The uid of its namespace kube-system, which no other cluster has; empty = not known.
    server_uid = models.CharField(max_length=64, blank=True, default="", editable=False)
    # Nothing is read from it or sent to it, and its credentials are gone; what is known of it stays.
    disconnected_at = models.DateTimeField(null=True, blank=True)
    clock_rate = models.FloatField(default=1.0)
    clock_anchor = models.DateTimeField(null=True, blank=True)
    clock_wall_anchor = models.DateTimeField(null=True, blank=True)
    # Its own zone; empty = that of its first tide plan which is on, else UTC (``zone_of``).
    time_zone = models.CharField(max_length=64, blank=True, default="")
    scheduler_names: ArrayField[list[str], list[str]] = ArrayField(
        models.CharField(max_length=63), default=default_scheduler_names
    )
    volcano_namespace = models.CharField(max_length=63, default=VOLCANO_NAMESPACE)
    volcano_config_map = models.CharField(max_length=253, default=VOLCANO_CONFIG_MAP)
    overcommit_inference = models.DecimalField(max_digits=5, decimal_places=2, default=1)
    overcommit_training = models.DecimalField(max_digits=5, decimal_places=2, default=1)
    approval_required = models.BooleanField(
        default=False, help_text=_("A second person has to approve every change of this cluster's quota.")
    )
    session_period_seconds = models.FloatField(default=1.0, help_text=_("Wall seconds between two sessions."))
    paused_at = models.DateTimeField(null=True, blank=True)
    paused_by = models.CharField(max_length=200, blank=True)
    paused_reason = models.TextField(blank=True)
    # Guards: beyond these a session stops before it sends, raises an alert and waits for a person.
    evict_gangs_per_minute = models.PositiveIntegerField(default=60, help_text=_("Per minute of the cluster's clock."))
    evict_cards_per_minute = models.PositiveIntegerField(default=600, help_text=_("Per minute of the cluster's clock."))
    evict_share_of_training = models.FloatField(
        default=0.5, help_text=_("Largest share of the running training cards that one session may evict.")
    )
    input_bytes_budget = models.PositiveBigIntegerField(default=256 * 1024 * 1024)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    @property
    def paused(self) -> bool:
        return self.paused_at is not None

    @property
    def evicts(self) -> bool:
        """Whether TideSched itself takes cards back here; in the other modes another scheduler does."""
        return self.mode == ClusterMode.SCHEDULE

    @property
    def schedulers(self) -> list[str]:
        """The scheduler names whose pods are gangs here: Volcano's too, in the modes in which Volcano schedules."""
        others = [] if self.mode == ClusterMode.SCHEDULE else [VOLCANO_SCHEDULER]
        return list(dict.fromkeys([*self.scheduler_names, *others]))

    def clock(self, wall: dt.datetime | None = None) -> dt.datetime:
        wall = wall or timezone.now()
        if self.clock_anchor is None or self.clock_wall_anchor is None:
            return wall
        return self.clock_anchor + (wall - self.clock_wall_anchor) * self.clock_rate


class Counted(models.Model):
    """A figure that only grows, and outlives the rows that it counts. ``key``: a metric and its labels (`metrics`)."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="+")
    key: ArrayField[list[str], list[str]] = ArrayField(models.TextField())
    figure = models.FloatField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["cluster", "key"], name="counted_once")]


class ConnectionTest(SealedConnection):
    """An **offer** has a connection of its own, whose secrets are gone once it is taken or an hour has passed."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, null=True, related_name="connection_tests")
    offer = models.BooleanField(default=False)
    mode = models.CharField(max_length=16, choices=ClusterMode)
    context = models.CharField(max_length=300, blank=True)
    contexts: ArrayField[list[str], list[str]] = ArrayField(models.CharField(max_length=300), default=list, blank=True)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True)
    actor = models.CharField(max_length=200)
    job_id = models.BigIntegerField(null=True)
    started_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True)
    percent = models.PositiveSmallIntegerField(default=0)
    # Of `kubernetes.probe.Finding`, in the order in which they were found.
    findings = models.JSONField(default=list, blank=True)
    taken_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-id"]
        indexes = [models.Index(fields=["cluster", "-id"], name="connection_test_cluster")]

    def __str__(self) -> str:
        return f"Connection test {self.pk}"

    def levels(self) -> list[str]:
        return [str(finding["level"]) for finding in self.findings]

    @property
    def verdict(self) -> str:
        if self.finished_at is None:
            return "running"
        levels = self.levels()
        return next((level for level in ("failed", "warning") if level in levels), "good")

    @property
    def open_offer(self) -> bool:
        has_secrets = bool(self.credentials) or self.connection_kind == ConnectionKind.IN_CLUSTER
        return self.offer and self.taken_at is None and has_secrets


class PolicyRevision(models.Model):
    """One text of a cluster's ``volcano-scheduler.conf``; the newest valid one rules."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="policies")
    number = models.PositiveIntegerField()
    text = models.TextField()
    valid = models.BooleanField()
    error = models.JSONField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)
    created_by = models.CharField(max_length=200)
    reason = models.TextField(blank=True)
    # A person has seen what its first session would do (the dry run); only then it sends anything.
    released_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-number"]
        constraints = [models.UniqueConstraint(fields=["cluster", "number"], name="policy_number_in_cluster")]

    def __str__(self) -> str:
        return f"{self.cluster} policy {self.number}"


class CardKind(models.TextChoices):
    WHOLE = "whole", _("Whole card")
    MIG = "mig", _("MIG slice")
    MPS = "mps", _("MPS share")


class CardType(models.Model):
    """A kind of accelerator in a cluster under its canonical name; found on nodes or declared ahead."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="card_types")
    name = models.CharField(max_length=120)
    resource = models.CharField(max_length=120, blank=True)
    kind = models.CharField(max_length=8, choices=CardKind, default=CardKind.WHOLE)
    parent = models.ForeignKey("self", on_delete=models.SET_NULL, null=True, blank=True, related_name="slices")
    hardware = models.PositiveIntegerField(default=0, help_text=_("How many the nodes have now."))
    discovered = models.BooleanField(default=True)
    # Other names that people may use for it wherever they write quota; what is stored is always the canonical one.
    aliases: ArrayField[list[str], list[str]] = ArrayField(models.CharField(max_length=120), default=list, blank=True)
    # Counts the edits by people, not what nodes show.
    version = models.PositiveBigIntegerField(default=1, editable=False)
    first_seen_at = models.DateTimeField(auto_now_add=True)
    last_seen_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["cluster", "name"], name="card_type_in_cluster")]

    def __str__(self) -> str:
        return self.name


NOT_READY_TAINTS = frozenset({"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"})


def says_not_ready(taints: Iterable[Mapping[str, Any]]) -> bool:
    """Kubernetes taints a node whose kubelet reports trouble, or nothing at all."""
    return any(taint.get("key") in NOT_READY_TAINTS for taint in taints)


class Node(models.Model):
    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="nodes")
    name = models.CharField(max_length=253)
    cpu_milli = models.BigIntegerField(default=0)
    memory_mib = models.BigIntegerField(default=0)
    pods = models.IntegerField(default=110)
    cards = models.JSONField(default=dict)
    labels = models.JSONField(default=dict)
    taints = models.JSONField(default=list)
    unschedulable = models.BooleanField(default=False)
    last_seen_at = models.DateTimeField()
    gone_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["cluster", "name"], name="node_in_cluster")]

    def __str__(self) -> str:
        return self.name

    @property
    def not_ready(self) -> bool:
        """Whether its kubelet reports trouble, or nothing at all."""
        return says_not_ready(self.taints)
