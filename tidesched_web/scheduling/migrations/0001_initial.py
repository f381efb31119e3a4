import django.db.models.deletion
from django.db import migrations, models

from tidesched_web.common.partitions import CreatePartitionedModel


class Migration(migrations.Migration):
    initial = True

    dependencies = [("clusters", "0001_initial"), ("quota", "0001_initial")]

    operations = [
        migrations.CreateModel(
            name="ClusterLease",
            fields=[
                (
                    "cluster",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="lease",
                        serialize=False,
                        to="clusters.cluster",
                    ),
                ),
                ("holder", models.CharField(blank=True, max_length=120)),
                ("epoch", models.PositiveBigIntegerField(default=0)),
                ("expires_at", models.DateTimeField(null=True)),
                ("renewed_at", models.DateTimeField(null=True)),
            ],
        ),
        migrations.CreateModel(
            name="ClusterReach",
            fields=[
                (
                    "cluster",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="reach",
                        serialize=False,
                        to="clusters.cluster",
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("connected", "Connected"),
                            ("unreachable", "Not reachable"),
                            ("refused", "Credential refused"),
                            ("forbidden", "Rights missing"),
                            ("kinds_missing", "Volcano's kinds are missing"),
                            ("failing", "Answers with errors"),
                        ],
                        default="connected",
                        max_length=16,
                    ),
                ),
                ("since", models.DateTimeField()),
                ("detail", models.TextField(blank=True)),
                ("kinds", models.JSONField(default=list)),
            ],
        ),
        migrations.CreateModel(
            name="SessionRequest",
            fields=[
                (
                    "cluster",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="session_request",
                        serialize=False,
                        to="clusters.cluster",
                    ),
                ),
                ("due_at", models.DateTimeField()),
                ("asked_by", models.CharField(blank=True, max_length=120)),
                ("failures", models.PositiveIntegerField(default=0)),
                ("last_error", models.TextField(blank=True)),
            ],
        ),
        migrations.CreateModel(
            name="Session",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("number", models.PositiveBigIntegerField()),
                ("epoch", models.PositiveBigIntegerField()),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("decided", "Decided"),
                            ("sending", "Sending"),
                            ("done", "Done"),
                            ("dry_run", "Dry run"),
                            ("stopped", "Stopped by a guard"),
                            ("failed", "Failed"),
                        ],
                        max_length=16,
                    ),
                ),
                ("mode", models.CharField(max_length=16)),
                ("trigger", models.CharField(blank=True, max_length=40)),
                ("now", models.DateTimeField()),
                ("started_at", models.DateTimeField()),
                ("decided_at", models.DateTimeField(null=True)),
                ("finished_at", models.DateTimeField(null=True)),
                ("engine_version", models.CharField(max_length=40)),
                ("result_hash", models.CharField(max_length=64)),
                ("input_id", models.BigIntegerField(null=True)),
                ("timings_ms", models.JSONField(default=dict)),
                ("counts", models.JSONField(default=dict)),
                ("error", models.TextField(blank=True)),
                (
                    "cluster",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="sessions", to="clusters.cluster"
                    ),
                ),
                (
                    "policy",
                    models.ForeignKey(
                        null=True, on_delete=django.db.models.deletion.SET_NULL, to="clusters.policyrevision"
                    ),
                ),
            ],
            options={"ordering": ["-id"]},
        ),
        migrations.CreateModel(
            name="Reclaim",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("at", models.DateTimeField(help_text="The cluster's clock.")),
                ("wall_at", models.DateTimeField()),
                (
                    "source",
                    models.CharField(
                        choices=[("own", "TideSched"), ("observed", "Observed")], default="own", max_length=16
                    ),
                ),
                (
                    "made_by",
                    models.CharField(
                        choices=[
                            ("tidesched", "TideSched"),
                            ("volcano", "Volcano"),
                            ("scheduler", "Another scheduler"),
                            ("unknown", "Unknown"),
                            ("drawn", "Drawn history"),
                        ],
                        default="tidesched",
                        max_length=16,
                    ),
                ),
                ("instead", models.JSONField(null=True)),
                ("action", models.CharField(max_length=24)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("decided", "Decided"),
                            ("evicting", "Evicting"),
                            ("promised", "Waiting for the cards"),
                            ("done", "Reclaimer runs"),
                            ("partial", "Partly evicted"),
                            ("left", "Reclaimer left"),
                            ("cancelled", "Cancelled"),
                            ("seen", "Seen"),
                        ],
                        default="decided",
                        max_length=16,
                    ),
                ),
                ("reclaimer", models.CharField(max_length=320)),
                ("queue_name", models.CharField(max_length=63)),
                ("needed", models.JSONField()),
                ("freed", models.JSONField()),
                ("work_lost_card_seconds", models.FloatField(default=0)),
                ("rule", models.CharField(max_length=200)),
                ("votes", models.JSONField(default=list)),
                ("refused", models.JSONField(default=list)),
                ("receipt", models.JSONField(default=dict)),
                ("promised_pods", models.JSONField(default=list)),
                ("audit_entry_id", models.BigIntegerField(null=True)),
                ("promised_at", models.DateTimeField(null=True)),
                ("running_at", models.DateTimeField(null=True)),
                (
                    "cluster",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="reclaims", to="clusters.cluster"
                    ),
                ),
                (
                    "queue",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="reclaims_made",
                        to="quota.queue",
                    ),
                ),
                (
                    "session",
                    models.ForeignKey(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="reclaims",
                        to="scheduling.session",
                    ),
                ),
            ],
            options={"ordering": ["-id"]},
        ),
        CreatePartitionedModel(
            partition_by="at",
            name="Decision",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("at", models.DateTimeField()),
                ("epoch", models.PositiveBigIntegerField()),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("bind", "Bind"),
                            ("evict", "Evict"),
                            ("status", "PodGroup status"),
                            ("event", "Event"),
                        ],
                        max_length=16,
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("decided", "Decided"),
                            ("sending", "Sending"),
                            ("done", "Done"),
                            ("failed", "Failed"),
                            ("superseded", "Superseded"),
                        ],
                        default="decided",
                        max_length=16,
                    ),
                ),
                ("gang", models.CharField(max_length=320)),
                ("target", models.CharField(max_length=320)),
                ("uid", models.CharField(blank=True, max_length=64)),
                ("node", models.CharField(blank=True, max_length=253)),
                ("detail", models.JSONField(default=dict)),
                ("reclaim_id", models.BigIntegerField(null=True)),
                ("outcome", models.TextField(blank=True)),
                ("settled_at", models.DateTimeField(null=True)),
                (
                    "cluster",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="clusters.cluster",
                    ),
                ),
                (
                    "session",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="decisions",
                        to="scheduling.session",
                    ),
                ),
            ],
            options={"ordering": ["id"]},
        ),
        migrations.CreateModel(
            name="SessionInput",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("format", models.CharField(max_length=40)),
                ("payload", models.BinaryField()),
                ("memory", models.BinaryField()),
                ("size", models.PositiveIntegerField()),
                (
                    "base",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="differences",
                        to="scheduling.sessioninput",
                    ),
                ),
                (
                    "cluster",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="session_inputs",
                        to="clusters.cluster",
                    ),
                ),
                (
                    "session",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE, related_name="input", to="scheduling.session"
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="SessionMemory",
            fields=[
                (
                    "cluster",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="session_memory",
                        serialize=False,
                        to="clusters.cluster",
                    ),
                ),
                ("engine_version", models.CharField(max_length=40)),
                ("payload", models.BinaryField()),
                ("digest", models.CharField(max_length=64)),
                (
                    "session",
                    models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, to="scheduling.session"),
                ),
            ],
        ),
        migrations.CreateModel(
            name="TidePoint",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("at", models.DateTimeField(help_text="The cluster's clock.")),
                ("wall_at", models.DateTimeField()),
                ("card", models.CharField(max_length=120)),
                ("total", models.BigIntegerField()),
                ("inference", models.BigIntegerField()),
                ("training", models.BigIntegerField()),
                ("borrowed", models.BigIntegerField()),
                ("foreign", models.BigIntegerField()),
                ("idle", models.BigIntegerField()),
                ("waiting", models.BigIntegerField()),
                ("quota", models.BigIntegerField(null=True)),
                (
                    "cluster",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="tide_points", to="clusters.cluster"
                    ),
                ),
            ],
            options={"ordering": ["at", "id"]},
        ),
        CreatePartitionedModel(
            partition_by="wall_at",
            name="UsageChange",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("wall_at", models.DateTimeField()),
                ("at", models.DateTimeField(help_text="The cluster's clock.")),
                ("card", models.CharField(max_length=120)),
                ("quota", models.BigIntegerField()),
                ("allocated", models.BigIntegerField()),
                ("inqueue", models.BigIntegerField()),
                ("elastic", models.BigIntegerField()),
                (
                    "cluster",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="clusters.cluster",
                    ),
                ),
                (
                    "queue",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="quota.queue",
                    ),
                ),
            ],
            options={"ordering": ["at", "id"]},
        ),
        migrations.CreateModel(
            name="UsageRollup",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("card", models.CharField(max_length=120)),
                ("step_seconds", models.PositiveIntegerField()),
                ("at", models.DateTimeField()),
                ("quota", models.BigIntegerField()),
                ("allocated_mean", models.FloatField()),
                ("allocated_max", models.BigIntegerField()),
                (
                    "queue",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="usage_rollups", to="quota.queue"
                    ),
                ),
            ],
            options={"ordering": ["at"]},
        ),
        migrations.CreateModel(
            name="Alert",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("key", models.CharField(max_length=120)),
                (
                    "severity",
                    models.CharField(
                        choices=[("info", "Notice"), ("warning", "Warning"), ("critical", "Critical")], max_length=16
                    ),
                ),
                ("code", models.CharField(max_length=60)),
                ("numbers", models.JSONField(default=dict)),
                ("message", models.TextField()),
                ("session_id", models.BigIntegerField(null=True)),
                ("raised_at", models.DateTimeField()),
                ("lapsed_at", models.DateTimeField(null=True)),
                ("acknowledged_at", models.DateTimeField(null=True)),
                ("acknowledged_by", models.CharField(blank=True, max_length=200)),
                ("note", models.TextField(blank=True)),
                ("resolved_at", models.DateTimeField(null=True)),
                ("resolved_by", models.CharField(blank=True, max_length=200)),
                (
                    "cluster",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="alerts",
                        to="clusters.cluster",
                    ),
                ),
            ],
            options={
                "ordering": ["-raised_at"],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("resolved_at__isnull", True)),
                        fields=("cluster", "key"),
                        name="one_open_alert",
                        nulls_distinct=False,
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="QueueUsage",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("card", models.CharField(max_length=120)),
                ("at", models.DateTimeField()),
                ("quota", models.BigIntegerField()),
                ("allocated", models.BigIntegerField()),
                ("inqueue", models.BigIntegerField()),
                ("elastic", models.BigIntegerField()),
                (
                    "queue",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="usage", to="quota.queue"
                    ),
                ),
            ],
            options={
                "ordering": ["card"],
                "constraints": [models.UniqueConstraint(fields=("queue", "card"), name="one_usage_per_queue_card")],
            },
        ),
        migrations.CreateModel(
            name="ObservedEviction",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("uid", models.CharField(max_length=64)),
                ("pod", models.CharField(max_length=320)),
                ("evidence", models.CharField(blank=True, max_length=16)),
                ("wall_at", models.DateTimeField()),
                (
                    "cluster",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="clusters.cluster"
                    ),
                ),
                (
                    "reclaim",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="observed_pods",
                        to="scheduling.reclaim",
                    ),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("cluster", "uid"), name="eviction_observed_once")]
            },
        ),
        migrations.CreateModel(
            name="ReclaimVictim",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("gang", models.CharField(max_length=320)),
                ("queue_name", models.CharField(max_length=63)),
                ("pods", models.JSONField(default=list)),
                ("cards", models.JSONField(default=dict)),
                ("work_lost_card_seconds", models.FloatField(default=0)),
                ("restarted", models.JSONField(default=list)),
                ("ended", models.JSONField(default=list)),
                (
                    "queue",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="reclaims_suffered",
                        to="quota.queue",
                    ),
                ),
                (
                    "reclaim",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="victims", to="scheduling.reclaim"
                    ),
                ),
            ],
            options={"ordering": ["gang"], "indexes": [models.Index(fields=["gang", "-id"], name="victim_gang")]},
        ),
        migrations.AddIndex(model_name="session", index=models.Index(fields=["cluster", "-id"], name="session_newest")),
        migrations.AddIndex(
            model_name="session",
            index=models.Index(
                condition=models.Q(("state__in", ["decided", "sending"])), fields=["cluster"], name="session_open"
            ),
        ),
        migrations.AddConstraint(
            model_name="session",
            constraint=models.UniqueConstraint(fields=("cluster", "number"), name="session_number_in_cluster"),
        ),
        migrations.AddIndex(model_name="reclaim", index=models.Index(fields=["cluster", "-id"], name="reclaim_newest")),
        migrations.AddIndex(
            model_name="reclaim", index=models.Index(fields=["cluster", "reclaimer", "-id"], name="reclaim_reclaimer")
        ),
        migrations.AddIndex(model_name="reclaim", index=models.Index(fields=["session"], name="reclaim_session")),
        migrations.AddIndex(
            model_name="decision", index=models.Index(fields=["session", "id"], name="decision_session")
        ),
        migrations.AddIndex(
            model_name="decision",
            index=models.Index(
                condition=models.Q(("state__in", ["decided", "sending"])),
                fields=["cluster", "id"],
                name="decision_open",
            ),
        ),
        migrations.AddIndex(
            model_name="decision", index=models.Index(fields=["cluster", "gang", "-id"], name="decision_gang")
        ),
        migrations.AddIndex(
            model_name="sessioninput", index=models.Index(fields=["cluster", "-id"], name="input_newest")
        ),
        migrations.AddIndex(
            model_name="tidepoint", index=models.Index(fields=["cluster", "card", "-at"], name="tide_card")
        ),
        migrations.AddIndex(
            model_name="usagechange", index=models.Index(fields=["queue", "card", "-at"], name="usage_queue_card")
        ),
        migrations.AddConstraint(
            model_name="usagerollup",
            constraint=models.UniqueConstraint(
                fields=("queue", "card", "step_seconds", "at"), name="one_rollup_per_step"
            ),
        ),
    ]
