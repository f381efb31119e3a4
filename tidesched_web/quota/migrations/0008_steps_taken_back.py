from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("quota", "0007_unmanaged_classes")]

    operations = [
        migrations.AddField(model_name="tidestep", name="taken_back", field=models.JSONField(default=list)),
    ]
