from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("scheduling", "0006_drawn_history"),
    ]

    operations = [
        migrations.AddField(
            model_name="alert",
            name="lapsed_at",
            field=models.DateTimeField(null=True),
        ),
    ]
