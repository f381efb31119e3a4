"""Other names for card types."""

import django.contrib.postgres.fields
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("clusters", "0003_connections")]

    operations = [
        migrations.AddField(
            model_name="cardtype",
            name="aliases",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.CharField(max_length=120), blank=True, default=list, size=None
            ),
        ),
    ]
