import django.db.models.deletion
from django.contrib.postgres.fields import ArrayField
from django.db import migrations, models

_ids = {"base_field": models.BigIntegerField(), "default": list, "size": None}
_cluster = {"on_delete": django.db.models.deletion.CASCADE, "related_name": "+", "to": "clusters.cluster"}


class Migration(migrations.Migration):
    initial = True
    dependencies = [("clusters", "0002_server_uid")]
    operations = [
        migrations.CreateModel(
            "Cursor",
            [
                ("cluster", models.OneToOneField(primary_key=True, serialize=False, **_cluster)),
                ("session", models.BigIntegerField(default=0)),
                ("reclaim", models.BigIntegerField(default=0)),
                ("event", models.BigIntegerField(default=0)),
                ("open_sessions", ArrayField(**_ids)),
                ("open_reclaims", ArrayField(**_ids)),
            ],
        )
    ]
