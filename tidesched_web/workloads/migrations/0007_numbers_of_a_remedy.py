from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("workloads", "0006_figures_of_one_session"),
    ]

    operations = [
        migrations.AddField(
            model_name="gangremedy",
            name="numbers",
            field=models.JSONField(default=dict),
        ),
    ]
