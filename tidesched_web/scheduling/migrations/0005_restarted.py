"""Which members of a gang restarted with those that others evicted."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("scheduling", "0004_tide_quota")]

    operations = [
        migrations.AddField(model_name="reclaimvictim", name="restarted", field=models.JSONField(default=list))
    ]
