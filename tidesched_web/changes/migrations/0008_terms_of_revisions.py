"""The reason and the hour of a change are reviewed too: its earlier revisions keep them."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("changes", "0007_asks_beyond")]

    operations = [
        migrations.AddField(model_name="changerevision", name="terms", field=models.JSONField(default=dict)),
    ]
