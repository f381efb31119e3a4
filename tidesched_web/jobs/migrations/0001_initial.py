import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [("clusters", "0001_initial"), migrations.swappable_dependency(settings.AUTH_USER_MODEL)]

    operations = [
        migrations.CreateModel(
            name="ReplacedProcess",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("key", models.CharField(max_length=32, unique=True)),
                ("role", models.CharField(max_length=60)),
                ("host", models.CharField(max_length=60)),
                ("pid", models.PositiveIntegerField()),
                ("at", models.DateTimeField()),
                ("activity", models.CharField(max_length=200)),
                ("step", models.CharField(blank=True, max_length=200)),
                ("seconds", models.FloatField()),
                ("ended_by", models.CharField(max_length=100)),
            ],
            options={"ordering": ["-at", "-id"]},
        ),
        migrations.CreateModel(
            name="Job",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("kind", models.CharField(choices=[("impact", "Impact on the current snapshot"), ("impact_day", "Impact over the last day"), ("export", "Export"), ("adopt", "Adoption of queues"), ("connection_test", "Connection test")], max_length=24)),
                ("subject", models.CharField(blank=True, max_length=120)),
                ("actor", models.CharField(max_length=200)),
                ("worker", models.CharField(default="work", max_length=24)),
                ("state", models.CharField(choices=[("queued", "Queued"), ("running", "Running"), ("done", "Done"), ("failed", "Failed"), ("cancelled", "Cancelled")], default="queued", max_length=12)),
                ("progress", models.FloatField(default=0)),
                ("log", models.JSONField(default=list)),
                ("params", models.JSONField(default=dict)),
                ("checkpoint", models.JSONField(null=True)),
                ("result", models.JSONField(null=True)),
                ("error", models.TextField(blank=True)),
                ("attempt", models.PositiveIntegerField(default=0)),
                ("cancel_asked_at", models.DateTimeField(null=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("started_at", models.DateTimeField(null=True)),
                ("heard_at", models.DateTimeField(null=True)),
                ("finished_at", models.DateTimeField(null=True)),
                ("cluster", models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name="jobs", to="clusters.cluster")),
                ("owner", models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name="jobs", to=settings.AUTH_USER_MODEL)),
            ],
            options={"ordering": ["-id"], "indexes": [models.Index(fields=["owner", "-id"], name="job_owner"), models.Index(condition=models.Q(("state__in", ["queued", "running"])), fields=["worker", "id"], name="job_open")]},
        ),
    ]
