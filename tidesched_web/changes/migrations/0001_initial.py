import django.contrib.postgres.fields
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [("clusters", "0001_initial"), migrations.swappable_dependency(settings.AUTH_USER_MODEL)]

    operations = [
        migrations.CreateModel(
            name="QuotaChange",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("version", models.PositiveBigIntegerField(default=1, editable=False)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("updated_at", models.DateTimeField(auto_now=True)),
                (
                    "state",
                    models.CharField(choices=[("draft", "Draft"), ("waiting", "Waiting for approval"), ("approved", "Approved"), ("applying", "Applying"), ("applied", "Applied"), ("failed", "Failed"), ("rejected", "Rejected"), ("cancelled", "Cancelled"), ("rolled_back", "Rolled back")], default="draft", max_length=16),
                ),
                ("base_version", models.PositiveBigIntegerField()),
                ("edits", models.JSONField(default=dict)),
                ("base", models.JSONField(default=dict)),
                ("plan", models.JSONField(null=True)),
                ("reason", models.TextField(blank=True)),
                ("source", models.CharField(default="console", help_text="console, api, import, plan or rollback.", max_length=16)),
                ("created_by", models.CharField(max_length=200)),
                ("mark", models.CharField(blank=True, max_length=64)),
                ("earlier_marks", models.JSONField(default=list)),
                ("revision", models.PositiveIntegerField(default=1, editable=False)),
                ("platform_only", models.BooleanField(default=False)),
                ("asks_beyond", models.BooleanField(default=False)),
                ("submitted_at", models.DateTimeField(blank=True, null=True)),
                ("tenant_ids", django.contrib.postgres.fields.ArrayField(base_field=models.BigIntegerField(), default=list, size=None)),
                ("platform_wide", models.BooleanField(default=False)),
                ("approved_by", models.CharField(blank=True, max_length=200)),
                ("approved_at", models.DateTimeField(blank=True, null=True)),
                ("approved_reason", models.TextField(blank=True)),
                ("closed_by", models.CharField(blank=True, max_length=200)),
                ("closed_reason", models.TextField(blank=True)),
                ("closed_unseen", models.BooleanField(default=False, editable=False)),
                ("apply_at", models.DateTimeField(blank=True, null=True)),
                ("committed_at", models.DateTimeField(blank=True, null=True)),
                ("tree_version", models.PositiveBigIntegerField(null=True)),
                ("applied_at", models.DateTimeField(blank=True, null=True)),
                ("error", models.TextField(blank=True)),
                ("failure", models.JSONField(null=True)),
                ("claimed_until", models.DateTimeField(null=True)),
                ("request_id", models.CharField(blank=True, max_length=80)),
                ("approver", models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name="+", to=settings.AUTH_USER_MODEL)),
                ("author", models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name="+", to=settings.AUTH_USER_MODEL)),
                ("cluster", models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="quota_changes", to="clusters.cluster")),
                ("rolls_back", models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name="rolled_back_by", to="changes.quotachange")),
            ],
            options={"ordering": ["-id"]},
        ),
        migrations.CreateModel(
            name="ChangeObject",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("kind", models.CharField(max_length=32)),
                ("name", models.CharField(max_length=253)),
                ("act", models.CharField(choices=[("apply", "Apply"), ("replace", "Replace"), ("delete", "Delete")], default="apply", max_length=8)),
                ("wanted_version", models.PositiveBigIntegerField(default=0)),
                ("state", models.CharField(choices=[("queued", "Queued"), ("applying", "Applying"), ("applied", "Applied"), ("failed", "Failed"), ("skipped", "Not sent")], default="queued", max_length=8)),
                ("reason", models.TextField(blank=True)),
                ("attempts", models.PositiveIntegerField(default=0)),
                ("changed_at", models.DateTimeField(auto_now=True)),
                ("change", models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="objects_carried", to="changes.quotachange")),
            ],
            options={"ordering": ["kind", "name"]},
        ),
        migrations.CreateModel(
            name="ChangeRevision",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("number", models.PositiveIntegerField()),
                ("version", models.PositiveBigIntegerField()),
                ("edits", models.JSONField()),
                ("base", models.JSONField()),
                ("terms", models.JSONField(default=dict)),
                ("replaced_at", models.DateTimeField(auto_now_add=True)),
                ("change", models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="revisions", to="changes.quotachange")),
            ],
            options={"ordering": ["number"]},
        ),
        migrations.CreateModel(
            name="ChangeForecast",
            fields=[
                ("change", models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name="forecast", serialize=False, to="changes.quotachange")),
                ("state", models.CharField(choices=[("following", "Being followed"), ("done", "Compared"), ("void", "Nothing expected")], default="following", max_length=12)),
                ("made_in", models.PositiveBigIntegerField(help_text="The number of the session it was tried on.", null=True)),
                ("made_at", models.DateTimeField(null=True)),
                ("rows", models.JSONField(default=list)),
                ("counts", models.JSONField(default=dict)),
                ("counted", models.BooleanField(default=True)),
                ("sessions", models.PositiveIntegerField(default=0)),
                ("compared_at", models.DateTimeField(null=True)),
                ("cluster", models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="+", to="clusters.cluster")),
            ],
        ),
        migrations.AddIndex(model_name="quotachange", index=models.Index(condition=models.Q(("state__in", ("approved", "applying"))), fields=["state", "apply_at"], name="change_to_do")),
        migrations.AddIndex(model_name="quotachange", index=models.Index(fields=["cluster", "-id"], name="change_of_cluster")),
        migrations.AddIndex(model_name="quotachange", index=models.Index(condition=models.Q(("state", "waiting")), fields=["submitted_at"], name="change_waiting")),
        migrations.AddIndex(model_name="quotachange", index=models.Index(condition=models.Q(("closed_unseen", True)), fields=["author"], name="change_closed_unseen")),
        migrations.AddConstraint(model_name="quotachange", constraint=models.UniqueConstraint(condition=models.Q(("mark", ""), _negated=True), fields=("author", "mark"), name="one_change_of_a_mark")),
        migrations.AddConstraint(model_name="changeobject", constraint=models.UniqueConstraint(fields=("change", "kind", "name"), name="one_row_per_carried_object")),
        migrations.AddConstraint(model_name="changerevision", constraint=models.UniqueConstraint(fields=("change", "number"), name="one_row_per_revision")),
        migrations.AddIndex(model_name="changeforecast", index=models.Index(fields=["cluster", "-change"], name="forecast_newest")),
        migrations.AddIndex(model_name="changeforecast", index=models.Index(condition=models.Q(("state", "following")), fields=["state"], name="forecast_open")),
    ]
