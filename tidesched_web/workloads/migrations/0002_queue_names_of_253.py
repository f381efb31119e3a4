from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("workloads", "0001_initial")]
    operations = [migrations.AlterField("gang", "queue_name", models.CharField(max_length=253))]
