"""What the inference queues might use at a moment of the tide."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("scheduling", "0003_receipt")]

    operations = [migrations.AddField(model_name="tidepoint", name="quota", field=models.BigIntegerField(null=True))]
