"""Invitations by the admins of a tenant."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("accounts", "0003_tenant_approval")]

    operations = [
        migrations.AddField(
            model_name="accesslink",
            name="tenant",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="access_links",
                to="accounts.tenant",
            ),
        ),
    ]
