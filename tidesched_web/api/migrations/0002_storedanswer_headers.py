from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("api", "0001_initial")]

    operations = [migrations.AddField("storedanswer", "headers", models.JSONField(default=dict))]
