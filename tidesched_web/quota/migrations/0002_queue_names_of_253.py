from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("quota", "0001_initial")]
    operations = [
        migrations.AlterField("queue", "name", models.CharField(max_length=253)),
        migrations.AlterField("queue", "parent", models.CharField(blank=True, max_length=253)),
    ]
