from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("quota", "0004_drift")]

    operations = [
        migrations.AddField("queue", "refusals", models.PositiveSmallIntegerField(default=0)),
        migrations.AddField("queue", "retry_at", models.DateTimeField(null=True)),
        migrations.AddField("priorityclass", "refusals", models.PositiveSmallIntegerField(default=0)),
        migrations.AddField("priorityclass", "retry_at", models.DateTimeField(null=True)),
        migrations.AddField("drift", "refusal", models.TextField(blank=True, default=""), preserve_default=False),
        migrations.AlterField(
            "drift",
            "what",
            models.CharField(
                choices=[("changed", "Changed by hand"), ("missing", "Deleted"), ("refused", "Refused by the cluster")],
                max_length=16,
            ),
        ),
    ]
