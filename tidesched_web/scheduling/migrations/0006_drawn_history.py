"""Reclaims that are drawn history say so."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("scheduling", "0005_restarted")]

    operations = [
        migrations.AlterField(
            model_name="reclaim",
            name="made_by",
            field=models.CharField(
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
        )
    ]
