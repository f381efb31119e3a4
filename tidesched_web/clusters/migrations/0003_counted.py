import django.db.models.deletion
from django.contrib.postgres.fields import ArrayField
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("clusters", "0002_server_uid")]
    operations = [
        migrations.CreateModel(
            "Counted",
            [
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("key", ArrayField(base_field=models.TextField(), size=None)),
                ("figure", models.FloatField()),
                ("cluster", models.ForeignKey("clusters.cluster", django.db.models.deletion.CASCADE, related_name="+")),
            ],
            options={"constraints": [models.UniqueConstraint(fields=("cluster", "key"), name="counted_once")]},
        )
    ]
