import django.contrib.postgres.indexes
from django.db import migrations, models

from tidesched_web.common.partitions import CreatePartitionedModel


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="AuditHead",
            fields=[
                ("chain", models.CharField(max_length=80, primary_key=True, serialize=False)),
                ("seq", models.PositiveBigIntegerField(default=0)),
                ("hash", models.CharField(default="", max_length=64)),
                ("heads", models.PositiveIntegerField(default=0)),
            ],
        ),
        migrations.CreateModel(
            name="ChainCheck",
            fields=[
                ("chain", models.CharField(max_length=80, primary_key=True, serialize=False)),
                ("requested_at", models.DateTimeField(null=True)),
                ("requested_by", models.CharField(blank=True, max_length=200)),
                ("finished_at", models.DateTimeField(null=True)),
                ("first_seq", models.PositiveBigIntegerField(default=0)),
                ("checked", models.PositiveBigIntegerField(default=0)),
                ("last_hash", models.CharField(blank=True, max_length=64)),
                ("broken_seq", models.PositiveBigIntegerField(null=True)),
                ("kind", models.CharField(blank=True, default="", max_length=24)),
                ("problem", models.TextField(blank=True)),
            ],
        ),
        migrations.CreateModel(
            name="SigningKey",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("number", models.PositiveIntegerField(unique=True)),
                ("key_id", models.CharField(max_length=16, unique=True)),
                ("public_key", models.CharField(max_length=64)),
                ("private_key", models.BinaryField()),
                ("encrypted_with", models.CharField(max_length=32)),
                ("endorsed_by", models.CharField(blank=True, default="", max_length=16)),
                ("endorsement", models.BinaryField(default=bytes)),
                ("endorsement_signature", models.CharField(blank=True, default="", max_length=128)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
            ],
            options={"ordering": ["number"]},
        ),
        CreatePartitionedModel(
            partition_by="at",
            name="AuditEntry",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("chain", models.CharField(max_length=80)),
                ("seq", models.PositiveBigIntegerField()),
                ("at", models.DateTimeField()),
                ("actor", models.CharField(max_length=200)),
                ("actor_kind", models.CharField(blank=True, default="", max_length=16)),
                ("actor_id", models.CharField(blank=True, default="", max_length=40)),
                ("action", models.CharField(max_length=80)),
                ("object_type", models.CharField(max_length=80)),
                ("object_id", models.CharField(max_length=200)),
                ("object_label", models.CharField(blank=True, max_length=300)),
                ("cluster_id", models.BigIntegerField(null=True)),
                ("tenant_ids", models.JSONField(default=list)),
                ("request_id", models.CharField(blank=True, max_length=80)),
                ("address", models.CharField(blank=True, max_length=64)),
                ("reason", models.TextField(blank=True)),
                ("before", models.JSONField(null=True)),
                ("after", models.JSONField(null=True)),
                ("payload", models.BinaryField()),
                ("prev_hash", models.CharField(max_length=64)),
                ("hash", models.CharField(max_length=64)),
                ("key_id", models.CharField(blank=True, default="", max_length=16)),
                ("signature", models.CharField(blank=True, default="", max_length=128)),
            ],
            options={
                "verbose_name": "audit entry",
                "verbose_name_plural": "audit entries",
                "ordering": ["-id"],
                "indexes": [
                    models.Index(fields=["chain", "seq"], name="audit_chain_seq"),
                    models.Index(fields=["cluster_id", "-id"], name="audit_cluster"),
                    models.Index(fields=["object_type", "object_id"], name="audit_object"),
                    models.Index(fields=["request_id"], name="audit_request"),
                    django.contrib.postgres.indexes.GinIndex(
                        django.contrib.postgres.indexes.OpClass("tenant_ids", name="jsonb_path_ops"),
                        name="audit_tenants",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Segment",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("chain", models.CharField(max_length=80)),
                ("first_seq", models.PositiveBigIntegerField()),
                ("last_seq", models.PositiveBigIntegerField()),
                ("prev_hash", models.CharField(blank=True, max_length=64)),
                ("last_hash", models.CharField(max_length=64)),
                ("first_at", models.DateTimeField()),
                ("last_at", models.DateTimeField()),
                ("sha256", models.CharField(max_length=64)),
                ("size", models.PositiveBigIntegerField()),
                ("key_id", models.CharField(max_length=16)),
                ("statement", models.BinaryField()),
                ("signature", models.CharField(max_length=128)),
                ("sealed_at", models.DateTimeField()),
                ("sealed_by", models.CharField(max_length=200)),
                ("exported_at", models.DateTimeField(null=True)),
                ("exported_by", models.CharField(blank=True, max_length=200)),
                ("export_statement", models.BinaryField(default=bytes)),
                ("export_signature", models.CharField(blank=True, default="", max_length=128)),
                ("dropped_at", models.DateTimeField(null=True)),
                ("dropped_by", models.CharField(blank=True, max_length=200)),
                ("drop_statement", models.BinaryField(default=bytes)),
                ("drop_signature", models.CharField(blank=True, default="", max_length=128)),
                ("purged_at", models.DateTimeField(null=True)),
            ],
            options={
                "ordering": ["chain", "first_seq"],
                "constraints": [models.UniqueConstraint(fields=("chain", "first_seq"), name="one_segment_per_place")],
            },
        ),
        migrations.CreateModel(
            name="SignedHead",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("chain", models.CharField(max_length=80)),
                ("number", models.PositiveIntegerField(null=True)),
                ("seq", models.PositiveBigIntegerField()),
                ("hash", models.CharField(max_length=64)),
                ("at", models.DateTimeField()),
                ("key_id", models.CharField(max_length=16)),
                ("statement", models.BinaryField()),
                ("signature", models.CharField(max_length=128)),
            ],
            options={
                "ordering": ["-id"],
                "constraints": [models.UniqueConstraint(fields=("chain", "seq"), name="one_signature_per_head")],
            },
        ),
    ]
