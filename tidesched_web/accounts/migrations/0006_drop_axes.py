"""Drop what django-axes kept: failed sign-ins are entries of the audit log now, and limits are counted in Redis."""

from django.db import migrations

_TABLES = ("axes_accessattemptexpiration", "axes_accessattempt", "axes_accessfailurelog", "axes_accesslog")


def drop(apps, schema_editor):
    with schema_editor.connection.cursor() as cursor:
        for table in _TABLES:
            cursor.execute(f"DROP TABLE IF EXISTS {table}")
        cursor.execute("DELETE FROM django_migrations WHERE app = 'axes'")
    apps.get_model("auth", "Permission").objects.filter(content_type__app_label="axes").delete()
    apps.get_model("contenttypes", "ContentType").objects.filter(app_label="axes").delete()


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0005_who_gave_rights"),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
    ]

    operations = [migrations.RunPython(drop, migrations.RunPython.noop)]
