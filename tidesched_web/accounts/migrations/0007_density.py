"""How dense a person wants lists to be."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("accounts", "0006_drop_axes")]

    operations = [
        migrations.AddField(
            model_name="user",
            name="density",
            field=models.CharField(
                choices=[("dense", "One line for each row"), ("comfortable", "As many lines as the texts need")],
                default="dense",
                max_length=16,
                verbose_name="density of lists",
            ),
        ),
    ]
