from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("changes", "0004_revisions")]

    operations = [
        migrations.AddField(
            model_name="quotachange",
            name="approved_reason",
            field=models.TextField(blank=True),
        ),
    ]
