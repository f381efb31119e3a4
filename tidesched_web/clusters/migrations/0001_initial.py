import django.contrib.postgres.fields
import django.db.models.deletion
import tidesched_web.clusters.models
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [migrations.swappable_dependency(settings.AUTH_USER_MODEL)]

    operations = [
        migrations.CreateModel(
            name="Cluster",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("version", models.PositiveBigIntegerField(default=1, editable=False)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("updated_at", models.DateTimeField(auto_now=True)),
                ("api_url", models.CharField(max_length=300)),
                ("ca_certificate", models.TextField(blank=True)),
                ("tls_server_name", models.CharField(blank=True, max_length=253)),
                (
                    "connection_kind",
                    models.CharField(
                        choices=[
                            ("token", "Token"),
                            ("certificate", "Client certificate"),
                            ("in_cluster", "Service account of TideSched's own pod"),
                        ],
                        default="token",
                        max_length=16,
                    ),
                ),
                ("credentials", models.BinaryField(blank=True, null=True)),
                ("credentials_key_id", models.CharField(blank=True, editable=False, max_length=32)),
                ("credentials_subject", models.CharField(blank=True, max_length=300)),
                ("credentials_expire_at", models.DateTimeField(blank=True, null=True)),
                ("name", models.CharField(max_length=120, unique=True)),
                ("slug", models.SlugField(max_length=63, unique=True)),
                (
                    "mode",
                    models.CharField(
                        choices=[
                            ("observe", "Observe: decide and show, write nothing"),
                            ("quota", "Quota: push queues, Volcano schedules"),
                            ("schedule", "Schedule: TideSched is the scheduler"),
                        ],
                        default="observe",
                        max_length=16,
                    ),
                ),
                ("simulated", models.BooleanField(default=False)),
                ("credentials_set_at", models.DateTimeField(blank=True, null=True)),
                ("credentials_set_by", models.CharField(blank=True, max_length=200)),
                ("disconnected_at", models.DateTimeField(blank=True, null=True)),
                ("clock_rate", models.FloatField(default=1.0)),
                ("clock_anchor", models.DateTimeField(blank=True, null=True)),
                ("clock_wall_anchor", models.DateTimeField(blank=True, null=True)),
                ("time_zone", models.CharField(blank=True, default="", max_length=64)),
                (
                    "scheduler_names",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=63),
                        default=tidesched_web.clusters.models.default_scheduler_names,
                        size=None,
                    ),
                ),
                ("volcano_namespace", models.CharField(default="volcano-system", max_length=63)),
                ("volcano_config_map", models.CharField(default="volcano-scheduler-configmap", max_length=253)),
                ("overcommit_inference", models.DecimalField(decimal_places=2, default=1, max_digits=5)),
                ("overcommit_training", models.DecimalField(decimal_places=2, default=1, max_digits=5)),
                (
                    "approval_required",
                    models.BooleanField(
                        default=False, help_text="A second person has to approve every change of this cluster's quota."
                    ),
                ),
                (
                    "session_period_seconds",
                    models.FloatField(default=1.0, help_text="Wall seconds between two sessions."),
                ),
                ("paused_at", models.DateTimeField(blank=True, null=True)),
                ("paused_by", models.CharField(blank=True, max_length=200)),
                ("paused_reason", models.TextField(blank=True)),
                (
                    "evict_gangs_per_minute",
                    models.PositiveIntegerField(default=60, help_text="Per minute of the cluster's clock."),
                ),
                (
                    "evict_cards_per_minute",
                    models.PositiveIntegerField(default=600, help_text="Per minute of the cluster's clock."),
                ),
                (
                    "evict_share_of_training",
                    models.FloatField(
                        default=0.5, help_text="Largest share of the running training cards that one session may evict."
                    ),
                ),
                ("input_bytes_budget", models.PositiveBigIntegerField(default=268435456)),
            ],
            options={"ordering": ["name"]},
        ),
        migrations.CreateModel(
            name="CardType",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=120)),
                ("resource", models.CharField(blank=True, max_length=120)),
                (
                    "kind",
                    models.CharField(
                        choices=[("whole", "Whole card"), ("mig", "MIG slice"), ("mps", "MPS share")],
                        default="whole",
                        max_length=8,
                    ),
                ),
                ("hardware", models.PositiveIntegerField(default=0, help_text="How many the nodes have now.")),
                ("discovered", models.BooleanField(default=True)),
                (
                    "aliases",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=120), blank=True, default=list, size=None
                    ),
                ),
                ("version", models.PositiveBigIntegerField(default=1, editable=False)),
                ("first_seen_at", models.DateTimeField(auto_now_add=True)),
                ("last_seen_at", models.DateTimeField(null=True)),
                (
                    "parent",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="slices",
                        to="clusters.cardtype",
                    ),
                ),
                (
                    "cluster",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="card_types", to="clusters.cluster"
                    ),
                ),
            ],
            options={
                "ordering": ["name"],
                "constraints": [models.UniqueConstraint(fields=("cluster", "name"), name="card_type_in_cluster")],
            },
        ),
        migrations.CreateModel(
            name="ConnectionTest",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("api_url", models.CharField(max_length=300)),
                ("ca_certificate", models.TextField(blank=True)),
                ("tls_server_name", models.CharField(blank=True, max_length=253)),
                (
                    "connection_kind",
                    models.CharField(
                        choices=[
                            ("token", "Token"),
                            ("certificate", "Client certificate"),
                            ("in_cluster", "Service account of TideSched's own pod"),
                        ],
                        default="token",
                        max_length=16,
                    ),
                ),
                ("credentials", models.BinaryField(blank=True, null=True)),
                ("credentials_key_id", models.CharField(blank=True, editable=False, max_length=32)),
                ("credentials_subject", models.CharField(blank=True, max_length=300)),
                ("credentials_expire_at", models.DateTimeField(blank=True, null=True)),
                ("offer", models.BooleanField(default=False)),
                (
                    "mode",
                    models.CharField(
                        choices=[
                            ("observe", "Observe: decide and show, write nothing"),
                            ("quota", "Quota: push queues, Volcano schedules"),
                            ("schedule", "Schedule: TideSched is the scheduler"),
                        ],
                        max_length=16,
                    ),
                ),
                ("context", models.CharField(blank=True, max_length=300)),
                (
                    "contexts",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=300), blank=True, default=list, size=None
                    ),
                ),
                ("actor", models.CharField(max_length=200)),
                ("job_id", models.BigIntegerField(null=True)),
                ("started_at", models.DateTimeField(auto_now_add=True)),
                ("finished_at", models.DateTimeField(null=True)),
                ("percent", models.PositiveSmallIntegerField(default=0)),
                ("findings", models.JSONField(blank=True, default=list)),
                ("taken_at", models.DateTimeField(null=True)),
                (
                    "cluster",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="connection_tests",
                        to="clusters.cluster",
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        null=True, on_delete=django.db.models.deletion.SET_NULL, to=settings.AUTH_USER_MODEL
                    ),
                ),
            ],
            options={
                "ordering": ["-id"],
                "indexes": [models.Index(fields=["cluster", "-id"], name="connection_test_cluster")],
            },
        ),
        migrations.CreateModel(
            name="Node",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=253)),
                ("cpu_milli", models.BigIntegerField(default=0)),
                ("memory_mib", models.BigIntegerField(default=0)),
                ("pods", models.IntegerField(default=110)),
                ("cards", models.JSONField(default=dict)),
                ("labels", models.JSONField(default=dict)),
                ("taints", models.JSONField(default=list)),
                ("unschedulable", models.BooleanField(default=False)),
                ("last_seen_at", models.DateTimeField()),
                ("gone_at", models.DateTimeField(null=True)),
                (
                    "cluster",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="nodes", to="clusters.cluster"
                    ),
                ),
            ],
            options={
                "ordering": ["name"],
                "constraints": [models.UniqueConstraint(fields=("cluster", "name"), name="node_in_cluster")],
            },
        ),
        migrations.CreateModel(
            name="PolicyRevision",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("number", models.PositiveIntegerField()),
                ("text", models.TextField()),
                ("valid", models.BooleanField()),
                ("error", models.JSONField(null=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("created_by", models.CharField(max_length=200)),
                ("reason", models.TextField(blank=True)),
                ("released_at", models.DateTimeField(null=True)),
                (
                    "cluster",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="policies", to="clusters.cluster"
                    ),
                ),
            ],
            options={
                "ordering": ["-number"],
                "constraints": [models.UniqueConstraint(fields=("cluster", "number"), name="policy_number_in_cluster")],
            },
        ),
    ]
