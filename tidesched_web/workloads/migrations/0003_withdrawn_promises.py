from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("workloads", "0002_queue_names_of_253")]
    operations = [migrations.AddField("gang", "withdrawn_until", models.DateTimeField(null=True, db_index=True))]
