import datetime as dt
import django.db.models.deletion
import django.db.models.functions.comparison
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [("clusters", "0001_initial"), ("quota", "0001_initial")]

    operations = [
        migrations.CreateModel(
            name="Gang",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("namespace", models.CharField(max_length=63)),
                ("name", models.CharField(max_length=253)),
                ("uid", models.CharField(max_length=64)),
                ("queue_name", models.CharField(max_length=63)),
                ("service_type", models.CharField(max_length=16)),
                ("owner_kind", models.CharField(blank=True, max_length=63)),
                ("owner_name", models.CharField(blank=True, max_length=253)),
                ("priority", models.IntegerField(default=0)),
                ("priority_class", models.CharField(blank=True, max_length=253)),
                ("min_member", models.PositiveIntegerField(default=1)),
                ("replicas", models.PositiveIntegerField(default=0)),
                ("ready", models.PositiveIntegerField(default=0)),
                ("bound", models.PositiveIntegerField(default=0)),
                ("phase", models.CharField(max_length=16)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("waiting", "Waiting"),
                            ("admitted", "Admitted"),
                            ("running", "Running"),
                            ("reclaimed", "Reclaimed"),
                            ("finished", "Finished"),
                            ("failed", "Failed"),
                        ],
                        default="waiting",
                        max_length=16,
                    ),
                ),
                ("needs", models.BooleanField(default=False)),
                ("cards", models.JSONField(default=dict)),
                ("cpu_milli", models.BigIntegerField(default=0)),
                ("memory_mib", models.BigIntegerField(default=0)),
                ("position", models.PositiveIntegerField(null=True)),
                ("reason_code", models.CharField(blank=True, max_length=32)),
                ("reason_numbers", models.JSONField(default=dict)),
                ("reason_message", models.TextField(blank=True)),
                ("reason_since", models.DateTimeField(null=True)),
                ("figures_number", models.PositiveBigIntegerField(null=True)),
                ("figures_at", models.DateTimeField(null=True)),
                ("submitted_at", models.DateTimeField()),
                ("waiting_since", models.DateTimeField(null=True)),
                ("admitted_at", models.DateTimeField(null=True)),
                ("spared_until", models.DateTimeField(null=True)),
                ("started_at", models.DateTimeField(null=True)),
                ("ended_at", models.DateTimeField(null=True)),
                ("seen_at", models.DateTimeField()),
                ("gone_at", models.DateTimeField(null=True)),
                ("session_id", models.BigIntegerField(null=True)),
                ("manifest", models.JSONField(default=dict)),
                (
                    "cluster",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="gangs", to="clusters.cluster"
                    ),
                ),
                (
                    "queue",
                    models.ForeignKey(
                        null=True, on_delete=django.db.models.deletion.SET_NULL, related_name="gangs", to="quota.queue"
                    ),
                ),
            ],
            options={"ordering": ["-submitted_at", "id"]},
        ),
        migrations.CreateModel(
            name="ReasonFigures",
            fields=[
                (
                    "cluster",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="reason_figures",
                        serialize=False,
                        to="clusters.cluster",
                    ),
                ),
                ("number", models.PositiveBigIntegerField()),
                ("at", models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name="GangRemedy",
            fields=[
                (
                    "gang",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="worked_out",
                        serialize=False,
                        to="workloads.gang",
                    ),
                ),
                ("basis", models.JSONField(default=dict)),
                ("numbers", models.JSONField(default=dict)),
                ("remedy", models.JSONField(null=True)),
                ("starts", models.BooleanField(default=True)),
                ("until", models.DateTimeField(null=True)),
                ("until_why", models.CharField(blank=True, max_length=24)),
                ("too_large", models.JSONField(default=list)),
                ("goes_first", models.CharField(blank=True, max_length=320)),
                ("held_by_services", models.FloatField(default=0)),
                ("session_id", models.BigIntegerField()),
                ("number", models.PositiveBigIntegerField()),
                ("at", models.DateTimeField()),
                ("worked_out_at", models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name="GangEvent",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("submitted", "Submitted"),
                            ("reason", "Waits for another reason"),
                            ("admitted", "Admitted"),
                            ("promised", "Promised"),
                            ("bound", "Bound"),
                            ("running", "Running"),
                            ("reclaimed", "Reclaimed"),
                            ("restarted", "Restarted"),
                            ("finished", "Finished"),
                            ("failed", "Failed"),
                            ("gone", "Left the cluster"),
                        ],
                        max_length=16,
                    ),
                ),
                ("at", models.DateTimeField()),
                ("wall_at", models.DateTimeField()),
                ("session_id", models.BigIntegerField(null=True)),
                ("reclaim_id", models.BigIntegerField(null=True)),
                ("detail", models.JSONField(default=dict)),
                (
                    "gang",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="events", to="workloads.gang"
                    ),
                ),
            ],
            options={"ordering": ["at", "id"]},
        ),
        migrations.CreateModel(
            name="GangPod",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=253)),
                ("uid", models.CharField(max_length=64)),
                ("role", models.CharField(blank=True, max_length=63)),
                ("phase", models.CharField(max_length=16)),
                ("leaving", models.BooleanField(default=False)),
                ("node", models.CharField(blank=True, max_length=253)),
                ("card", models.CharField(blank=True, max_length=120)),
                ("card_milli", models.IntegerField(default=0)),
                ("card_indices", models.JSONField(default=list)),
                ("started_at", models.DateTimeField(null=True)),
                (
                    "gang",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="pods", to="workloads.gang"
                    ),
                ),
            ],
            options={"ordering": ["name"]},
        ),
        migrations.AddIndex(
            model_name="gang",
            index=models.Index(fields=["cluster", "state", "waiting_since", "id"], name="gang_waiting"),
        ),
        migrations.AddIndex(
            model_name="gang", index=models.Index(fields=["cluster", "-submitted_at", "-id"], name="gang_newest")
        ),
        migrations.AddIndex(
            model_name="gang",
            index=models.Index(
                models.F("cluster"),
                models.Case(
                    models.When(
                        models.Q(
                            ("gone_at__isnull", True),
                            models.Q(("needs", True), ("state__in", ("waiting", "admitted")), _connector="OR"),
                        ),
                        then=0,
                    ),
                    models.When(
                        models.Q(("gone_at__isnull", False), ("state__in", ("finished", "failed")), _connector="OR"),
                        then=2,
                    ),
                    default=1,
                    output_field=models.IntegerField(),
                ),
                models.Case(
                    models.When(
                        models.Q(
                            ("gone_at__isnull", True),
                            models.Q(("needs", True), ("state__in", ("waiting", "admitted")), _connector="OR"),
                        ),
                        then=django.db.models.functions.comparison.Coalesce("waiting_since", "submitted_at"),
                    ),
                    default=models.Value(dt.datetime(1970, 1, 1, 0, 0, tzinfo=dt.UTC)),
                    output_field=models.DateTimeField(),
                ),
                models.OrderBy(models.F("submitted_at"), descending=True),
                models.OrderBy(models.F("id"), descending=True),
                name="gang_by_need",
            ),
        ),
        migrations.AddIndex(model_name="gang", index=models.Index(fields=["queue", "state"], name="gang_queue")),
        migrations.AddIndex(
            model_name="gang", index=models.Index(fields=["cluster", "namespace", "name"], name="gang_key")
        ),
        migrations.AddIndex(
            model_name="gang",
            index=models.Index(
                condition=models.Q(("needs", True)), fields=["cluster", "reason_code"], name="gang_reason"
            ),
        ),
        migrations.AddIndex(
            model_name="gang",
            index=models.Index(
                condition=models.Q(("spared_until__isnull", False)),
                fields=["cluster", "spared_until"],
                name="gang_spared",
            ),
        ),
        migrations.AddIndex(
            model_name="gang",
            index=models.Index(condition=models.Q(("gone_at__isnull", False)), fields=["gone_at"], name="gang_gone"),
        ),
        migrations.AddConstraint(
            model_name="gang",
            constraint=models.UniqueConstraint(fields=("cluster", "namespace", "name", "uid"), name="gang_in_cluster"),
        ),
        migrations.AddConstraint(
            model_name="gangpod", constraint=models.UniqueConstraint(fields=("gang", "uid"), name="pod_in_gang")
        ),
    ]
