from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("quota", "0006_tide_steps")]

    operations = [migrations.AddField("driftlook", "unmanaged_classes", models.JSONField(default=list))]
