"""Whether the author of a change asks for quota that only a platform admin sets."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("changes", "0006_earlier_marks")]

    operations = [
        migrations.AddField(model_name="quotachange", name="asks_beyond", field=models.BooleanField(default=False)),
    ]
