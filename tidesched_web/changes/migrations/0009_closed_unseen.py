"""Whether the author of a change that another person rejected or cancelled has still to see it."""

from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [("changes", "0008_terms_of_revisions")]

    operations = [
        migrations.AddField(
            model_name="quotachange", name="closed_unseen", field=models.BooleanField(default=False, editable=False)
        ),
        migrations.AddIndex(
            model_name="quotachange",
            index=models.Index(fields=["author"], name="change_closed_unseen", condition=Q(closed_unseen=True)),
        ),
    ]
