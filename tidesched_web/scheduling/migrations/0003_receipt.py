from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("scheduling", "0002_observing"),
    ]

    operations = [
        migrations.AddField(
            model_name="reclaim",
            name="receipt",
            field=models.JSONField(default=dict),
        ),
    ]
