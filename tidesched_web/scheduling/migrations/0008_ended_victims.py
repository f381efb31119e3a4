"""Receipts say which pods had left by themselves, and distinguish a reclaimer that left from a cancelled reclaim."""

from django.db import migrations, models

# Evictions were made and the reclaimer left: they stood as cancelled, as if nothing had been evicted.
_LEFT = "UPDATE scheduling_reclaim SET state = 'left' WHERE state = 'cancelled' AND promised_at IS NOT NULL"


class Migration(migrations.Migration):
    dependencies = [("scheduling", "0007_lapsed_alerts")]

    operations = [
        migrations.AddField(
            model_name="reclaimvictim",
            name="ended",
            field=models.JSONField(default=list),
        ),
        migrations.AlterField(
            model_name="reclaim",
            name="state",
            field=models.CharField(
                choices=[
                    ("decided", "Decided"),
                    ("evicting", "Evicting"),
                    ("promised", "Waiting for the cards"),
                    ("done", "Reclaimer runs"),
                    ("partial", "Partly evicted"),
                    ("left", "Reclaimer left"),
                    ("cancelled", "Cancelled"),
                    ("seen", "Seen"),
                ],
                default="decided",
                max_length=16,
            ),
        ),
        migrations.RunSQL(_LEFT, migrations.RunSQL.noop),
    ]
