from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("workloads", "0004_spared_gangs"),
    ]

    operations = [
        migrations.AddField(
            model_name="gangremedy",
            name="goes_first",
            field=models.CharField(blank=True, max_length=320),
        ),
        migrations.AddField(
            model_name="gangremedy",
            name="held_by_services",
            field=models.FloatField(default=0),
        ),
    ]
