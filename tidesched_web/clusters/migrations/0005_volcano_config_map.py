"""Where Volcano's scheduler has its ConfigMap."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("clusters", "0004_card_aliases")]

    operations = [
        migrations.AddField(
            model_name="cluster",
            name="volcano_namespace",
            field=models.CharField(default="volcano-system", max_length=63),
        ),
        migrations.AddField(
            model_name="cluster",
            name="volcano_config_map",
            field=models.CharField(default="volcano-scheduler-configmap", max_length=253),
        ),
    ]
