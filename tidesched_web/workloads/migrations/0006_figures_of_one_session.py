import datetime as dt

import django.db.models.deletion
from django.db import migrations, models


def write_times(apps, _schema_editor):
    """Since when a holder is only promised what it has: as a time, no more as seconds since the epoch."""
    gangs = apps.get_model("workloads", "Gang").objects.exclude(reason_code="")
    for gang in gangs.filter(reason_numbers__has_key="holders").only("reason_numbers").iterator(chunk_size=1000):
        promised = [
            one for one in gang.reason_numbers["holders"] or () if isinstance(one.get("promised_since"), int | float)
        ]
        for holder in promised:
            holder["promised_since"] = dt.datetime.fromtimestamp(holder["promised_since"], dt.UTC).isoformat()
        if promised:
            gang.save(update_fields=["reason_numbers"])


class Migration(migrations.Migration):
    dependencies = [
        ("clusters", "0007_cluster_time_zone"),
        ("workloads", "0005_what_stands_in_the_way"),
    ]

    operations = [
        migrations.AddField(
            model_name="gang",
            name="figures_at",
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name="gang",
            name="figures_number",
            field=models.PositiveBigIntegerField(null=True),
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
        migrations.RunPython(write_times, migrations.RunPython.noop, elidable=True),
    ]
