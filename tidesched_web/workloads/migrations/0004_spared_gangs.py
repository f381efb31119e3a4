from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("workloads", "0003_order_of_gangs")]

    operations = [
        migrations.AddIndex(
            model_name="gang",
            index=models.Index(
                condition=models.Q(("spared_until__isnull", False)),
                fields=["cluster", "spared_until"],
                name="gang_spared",
            ),
        ),
    ]
