from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("clusters", "0006_cardtype_version")]

    operations = [
        migrations.AddField(
            model_name="cluster",
            name="time_zone",
            field=models.CharField(blank=True, default="", max_length=64),
        ),
    ]
