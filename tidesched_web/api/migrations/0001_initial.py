from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="StoredAnswer",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("caller", models.CharField(max_length=80)),
                ("key", models.CharField(max_length=200)),
                ("request_hash", models.CharField(max_length=64)),
                ("started_at", models.DateTimeField()),
                ("status", models.PositiveSmallIntegerField(null=True)),
                ("body", models.BinaryField(default=b"")),
                ("body_key_id", models.CharField(blank=True, max_length=32)),
                ("headers", models.JSONField(default=dict)),
            ],
            options={"indexes": [models.Index(fields=["started_at"], name="answer_age")], "constraints": [models.UniqueConstraint(fields=("caller", "key"), name="one_answer_per_key")]},
        )
    ]
