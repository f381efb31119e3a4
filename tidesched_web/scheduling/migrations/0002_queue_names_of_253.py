from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("scheduling", "0001_initial")]
    operations = [
        migrations.AlterField(model, "queue_name", models.CharField(max_length=253))
        for model in ("reclaim", "reclaimvictim")
    ]
