import django.core.validators
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [("accounts", "0001_initial"), ("clusters", "0001_initial")]

    operations = [
        migrations.CreateModel(
            name="DriftLook",
            fields=[
                (
                    "cluster",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="drift_look",
                        serialize=False,
                        to="clusters.cluster",
                    ),
                ),
                ("looked_at", models.DateTimeField()),
                ("objects_compared", models.PositiveIntegerField(default=0)),
                ("unmanaged", models.JSONField(default=list)),
                ("unmanaged_classes", models.JSONField(default=list)),
            ],
        ),
        migrations.CreateModel(
            name="QuotaTree",
            fields=[
                (
                    "cluster",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="quota_tree",
                        serialize=False,
                        to="clusters.cluster",
                    ),
                ),
                ("version", models.PositiveBigIntegerField(default=1)),
            ],
        ),
        migrations.CreateModel(
            name="Queue",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("version", models.PositiveBigIntegerField(default=1, editable=False)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("updated_at", models.DateTimeField(auto_now=True)),
                ("name", models.CharField(max_length=63)),
                (
                    "service_type",
                    models.CharField(choices=[("inference", "Inference"), ("training", "Training")], max_length=16),
                ),
                (
                    "weight",
                    models.PositiveIntegerField(
                        default=1,
                        validators=[
                            django.core.validators.MinValueValidator(1),
                            django.core.validators.MaxValueValidator(65535),
                        ],
                    ),
                ),
                ("priority", models.PositiveIntegerField(default=20000)),
                ("reclaimable", models.BooleanField(default=True)),
                ("cpu_milli", models.BigIntegerField(blank=True, help_text="No limit when empty.", null=True)),
                ("memory_mib", models.BigIntegerField(blank=True, help_text="No limit when empty.", null=True)),
                ("parent", models.CharField(blank=True, max_length=63)),
                ("deserved", models.JSONField(blank=True, default=dict)),
                ("guarantee", models.JSONField(blank=True, default=dict)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("Open", "Open"),
                            ("Closing", "Closing"),
                            ("Closed", "Closed"),
                            ("Unknown", "Unknown"),
                        ],
                        default="Open",
                        max_length=16,
                    ),
                ),
                (
                    "live_state",
                    models.CharField(
                        choices=[
                            ("Open", "Open"),
                            ("Closing", "Closing"),
                            ("Closed", "Closed"),
                            ("Unknown", "Unknown"),
                        ],
                        default="Unknown",
                        max_length=16,
                    ),
                ),
                (
                    "sync_state",
                    models.CharField(
                        choices=[
                            ("pending", "Pending"),
                            ("in_step", "In step"),
                            ("drifted", "Drifted"),
                            ("failed", "Failed"),
                            ("unknown", "Unknown"),
                        ],
                        default="pending",
                        max_length=16,
                    ),
                ),
                ("sync_error", models.TextField(blank=True)),
                ("pushed_version", models.PositiveBigIntegerField(default=0)),
                ("pushed_at", models.DateTimeField(null=True)),
                ("refusals", models.PositiveSmallIntegerField(default=0)),
                ("retry_at", models.DateTimeField(null=True)),
                ("tide", models.JSONField(blank=True, default=dict, editable=False)),
                (
                    "business_line",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="queues",
                        to="accounts.businessline",
                    ),
                ),
                (
                    "cluster",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="queues", to="clusters.cluster"
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="queues",
                        to="accounts.project",
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="queues",
                        to="accounts.tenant",
                    ),
                ),
            ],
            options={"ordering": ["name"]},
        ),
        migrations.CreateModel(
            name="NamespaceGrant",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("namespace", models.CharField(max_length=63)),
                (
                    "cluster",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="namespace_grants",
                        to="clusters.cluster",
                    ),
                ),
                (
                    "queue",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="namespace_grants", to="quota.queue"
                    ),
                ),
            ],
            options={"ordering": ["namespace", "queue"]},
        ),
        migrations.CreateModel(
            name="Drift",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("kind", models.CharField(max_length=24)),
                ("name", models.CharField(max_length=253)),
                (
                    "what",
                    models.CharField(
                        choices=[
                            ("changed", "Changed by hand"),
                            ("missing", "Deleted"),
                            ("refused", "Refused by the cluster"),
                        ],
                        max_length=16,
                    ),
                ),
                ("refusal", models.TextField(blank=True)),
                (
                    "state",
                    models.CharField(
                        choices=[("open", "Open"), ("ignored", "Ignored"), ("resolved", "Resolved")],
                        default="open",
                        max_length=16,
                    ),
                ),
                ("fields", models.JSONField(default=list)),
                ("live", models.JSONField(null=True)),
                ("digest", models.CharField(max_length=64)),
                ("found_at", models.DateTimeField()),
                ("changed_at", models.DateTimeField()),
                ("decided_by", models.CharField(blank=True, max_length=200)),
                ("decided_at", models.DateTimeField(null=True)),
                ("reason", models.TextField(blank=True)),
                (
                    "asked",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("pushed", "Pushed again"),
                            ("adopted", "Adopted"),
                            ("reverted", "Changed back in the cluster"),
                            ("left", "No longer decided on here"),
                        ],
                        max_length=16,
                    ),
                ),
                ("change_id", models.BigIntegerField(null=True)),
                ("ended_at", models.DateTimeField(null=True)),
                (
                    "end",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("pushed", "Pushed again"),
                            ("adopted", "Adopted"),
                            ("reverted", "Changed back in the cluster"),
                            ("left", "No longer decided on here"),
                        ],
                        max_length=16,
                    ),
                ),
                (
                    "cluster",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="drifts", to="clusters.cluster"
                    ),
                ),
                (
                    "queue",
                    models.ForeignKey(
                        null=True, on_delete=django.db.models.deletion.SET_NULL, related_name="drifts", to="quota.queue"
                    ),
                ),
            ],
            options={"ordering": ["-id"]},
        ),
        migrations.CreateModel(
            name="CardQuota",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "service_type",
                    models.CharField(choices=[("inference", "Inference"), ("training", "Training")], max_length=16),
                ),
                ("cards", models.PositiveIntegerField()),
                (
                    "card_type",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="quotas", to="clusters.cardtype"
                    ),
                ),
                (
                    "cluster",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="card_quotas", to="clusters.cluster"
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="card_quotas",
                        to="accounts.project",
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="card_quotas",
                        to="accounts.tenant",
                    ),
                ),
                (
                    "queue",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="card_quotas",
                        to="quota.queue",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="TidePlan",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("version", models.PositiveBigIntegerField(default=1, editable=False)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("updated_at", models.DateTimeField(auto_now=True)),
                ("name", models.CharField(max_length=120)),
                ("position", models.PositiveIntegerField(default=0)),
                ("time_zone", models.CharField(default="UTC", max_length=64)),
                ("enabled", models.BooleanField(default=False)),
                ("exceptions", models.JSONField(blank=True, default=dict)),
                ("layers", models.JSONField(blank=True, default=list)),
                (
                    "cluster",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="tide_plans", to="clusters.cluster"
                    ),
                ),
            ],
            options={"ordering": ["position", "name"]},
        ),
        migrations.CreateModel(
            name="TideStep",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("card", models.CharField(max_length=120)),
                ("plans", models.JSONField(default=list)),
                ("layers", models.JSONField(default=list)),
                ("taken_back", models.JSONField(default=list)),
                ("since", models.DateTimeField(null=True)),
                ("at", models.DateTimeField()),
                ("answered_at", models.DateTimeField()),
                ("before", models.PositiveIntegerField()),
                ("after", models.PositiveIntegerField()),
                ("wanted", models.PositiveIntegerField()),
                (
                    "answer",
                    models.CharField(
                        choices=[("taken", "In step"), ("pending", "Pending"), ("refused", "Refused by the cluster")],
                        max_length=16,
                    ),
                ),
                ("message", models.TextField(blank=True)),
                (
                    "cluster",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="tide_steps", to="clusters.cluster"
                    ),
                ),
                (
                    "queue",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="tide_steps", to="quota.queue"
                    ),
                ),
            ],
            options={"ordering": ["-id"]},
        ),
        migrations.CreateModel(
            name="ComputeQuota",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "service_type",
                    models.CharField(choices=[("inference", "Inference"), ("training", "Training")], max_length=16),
                ),
                ("cpu_milli", models.BigIntegerField(blank=True, null=True)),
                ("memory_mib", models.BigIntegerField(blank=True, null=True)),
                (
                    "cluster",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="compute_quotas",
                        to="clusters.cluster",
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="compute_quotas",
                        to="accounts.project",
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="compute_quotas",
                        to="accounts.tenant",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("project__isnull", True), ("tenant__isnull", False)),
                            models.Q(("project__isnull", False), ("tenant__isnull", True)),
                            _connector="OR",
                        ),
                        name="compute_quota_has_one_owner",
                    ),
                    models.UniqueConstraint(
                        fields=("cluster", "service_type", "tenant", "project"),
                        name="one_compute_quota_per_owner",
                        nulls_distinct=False,
                    ),
                ]
            },
        ),
        migrations.CreateModel(
            name="PriorityClass",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("version", models.PositiveBigIntegerField(default=1, editable=False)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("updated_at", models.DateTimeField(auto_now=True)),
                ("name", models.CharField(max_length=253)),
                ("value", models.IntegerField()),
                ("global_default", models.BooleanField(default=False)),
                (
                    "preemption_policy",
                    models.CharField(
                        choices=[("PreemptLowerPriority", "PreemptLowerPriority"), ("Never", "Never")],
                        default="PreemptLowerPriority",
                        max_length=24,
                    ),
                ),
                ("description", models.TextField(blank=True)),
                (
                    "sync_state",
                    models.CharField(
                        choices=[
                            ("pending", "Pending"),
                            ("in_step", "In step"),
                            ("drifted", "Drifted"),
                            ("failed", "Failed"),
                            ("unknown", "Unknown"),
                        ],
                        default="pending",
                        max_length=16,
                    ),
                ),
                ("sync_error", models.TextField(blank=True)),
                ("pushed_version", models.PositiveBigIntegerField(default=0)),
                ("refusals", models.PositiveSmallIntegerField(default=0)),
                ("retry_at", models.DateTimeField(null=True)),
                (
                    "cluster",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="priority_classes",
                        to="clusters.cluster",
                    ),
                ),
            ],
            options={
                "ordering": ["-value", "name"],
                "constraints": [models.UniqueConstraint(fields=("cluster", "name"), name="priority_class_in_cluster")],
            },
        ),
        migrations.CreateModel(
            name="PushedObject",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("kind", models.CharField(max_length=24)),
                ("name", models.CharField(max_length=253)),
                ("fields", models.JSONField(default=dict)),
                ("version", models.PositiveBigIntegerField(default=0)),
                ("pushed_at", models.DateTimeField()),
                (
                    "cluster",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="pushed_objects",
                        to="clusters.cluster",
                    ),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("cluster", "kind", "name"), name="one_push_per_object")]
            },
        ),
        migrations.AddConstraint(
            model_name="queue", constraint=models.UniqueConstraint(fields=("cluster", "name"), name="queue_in_cluster")
        ),
        migrations.AddConstraint(
            model_name="queue",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("service_type", "inference"), _negated=True),
                    models.Q(("project__isnull", False), ("tenant__isnull", False)),
                    _connector="OR",
                ),
                name="inference_queue_has_project",
            ),
        ),
        migrations.AddConstraint(
            model_name="queue",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("service_type", "training"), _negated=True),
                    ("business_line__isnull", False),
                    _connector="OR",
                ),
                name="training_queue_has_business_line",
            ),
        ),
        migrations.AddConstraint(
            model_name="namespacegrant",
            constraint=models.UniqueConstraint(fields=("namespace", "queue"), name="one_grant_per_namespace"),
        ),
        migrations.AddIndex(model_name="drift", index=models.Index(fields=["cluster", "-id"], name="drift_newest")),
        migrations.AddConstraint(
            model_name="drift",
            constraint=models.UniqueConstraint(
                condition=models.Q(("state", "resolved"), _negated=True),
                fields=("cluster", "kind", "name"),
                name="one_drift_per_object",
            ),
        ),
        migrations.AddConstraint(
            model_name="cardquota",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("project__isnull", True), ("queue__isnull", False), ("tenant__isnull", True)),
                    models.Q(("project__isnull", True), ("queue__isnull", True), ("tenant__isnull", False)),
                    models.Q(("project__isnull", False), ("queue__isnull", True), ("tenant__isnull", True)),
                    _connector="OR",
                ),
                name="card_quota_has_one_owner",
            ),
        ),
        migrations.AddConstraint(
            model_name="cardquota",
            constraint=models.UniqueConstraint(
                fields=("cluster", "card_type", "service_type", "queue", "tenant", "project"),
                name="one_card_quota_per_owner",
                nulls_distinct=False,
            ),
        ),
        migrations.AddConstraint(
            model_name="tideplan",
            constraint=models.UniqueConstraint(fields=("cluster", "name"), name="tide_plan_in_cluster"),
        ),
        migrations.AddIndex(
            model_name="tidestep", index=models.Index(fields=["cluster", "-id"], name="tide_step_newest")
        ),
        migrations.AddIndex(
            model_name="tidestep", index=models.Index(fields=["queue", "card", "-id"], name="tide_step_of_figure")
        ),
    ]
