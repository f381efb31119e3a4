from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("changes", "0001_initial")]
    operations = [migrations.RemoveConstraint(model_name="quotachange", name="one_change_of_a_mark"), migrations.RemoveField(model_name="quotachange", name="earlier_marks"), migrations.RemoveField(model_name="quotachange", name="mark")]
