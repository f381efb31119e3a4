"""Each entry is signed when it is written; heads are counted; exports and drops of segments are signed."""

from django.db import migrations, models


def _text(length: int) -> models.CharField:
    return models.CharField(blank=True, default="", max_length=length)


class Migration(migrations.Migration):
    dependencies = [("audit", "0002_signed_heads_and_segments")]

    operations = [
        migrations.AddField("audithead", "heads", models.PositiveIntegerField(default=0)),
        migrations.AddField("auditentry", "actor_kind", _text(16)),
        migrations.AddField("auditentry", "actor_id", _text(40)),
        migrations.AddField("auditentry", "key_id", _text(16)),
        migrations.AddField("auditentry", "signature", _text(128)),
        migrations.AddField("chaincheck", "kind", _text(24)),
        migrations.AddField("signedhead", "number", models.PositiveIntegerField(null=True)),
        migrations.AddField("signingkey", "endorsed_by", _text(16)),
        migrations.AddField("signingkey", "endorsement", models.BinaryField(default=bytes)),
        migrations.AddField("signingkey", "endorsement_signature", _text(128)),
        migrations.AddField("segment", "export_statement", models.BinaryField(default=bytes)),
        migrations.AddField("segment", "export_signature", _text(128)),
        migrations.AddField("segment", "drop_statement", models.BinaryField(default=bytes)),
        migrations.AddField("segment", "drop_signature", _text(128)),
    ]
