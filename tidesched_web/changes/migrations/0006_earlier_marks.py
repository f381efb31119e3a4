from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("changes", "0005_approved_reason")]

    operations = [
        migrations.AddField(
            model_name="quotachange",
            name="earlier_marks",
            field=models.JSONField(default=list),
        ),
    ]
