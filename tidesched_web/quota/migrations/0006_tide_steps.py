import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("quota", "0005_refused_pushes")]

    operations = [
        migrations.CreateModel(
            name="TideStep",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("card", models.CharField(max_length=120)),
                ("plans", models.JSONField(default=list)),
                ("layers", models.JSONField(default=list)),
                ("since", models.DateTimeField(null=True)),
                ("at", models.DateTimeField()),
                ("answered_at", models.DateTimeField()),
                ("before", models.PositiveIntegerField()),
                ("after", models.PositiveIntegerField()),
                ("wanted", models.PositiveIntegerField()),
                (
                    "answer",
                    models.CharField(
                        choices=[
                            ("taken", "In step"),
                            ("pending", "Pending"),
                            ("refused", "Refused by the cluster"),
                        ],
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
            options={
                "ordering": ["-id"],
                "indexes": [
                    models.Index(fields=["cluster", "-id"], name="tide_step_newest"),
                    models.Index(fields=["queue", "card", "-id"], name="tide_step_of_figure"),
                ],
            },
        ),
    ]
