from django.db import models


class StoredAnswer(models.Model):
    """In flight until ``status`` is set. The body is encrypted: the answer to `POST /tokens/` holds a token."""

    caller = models.CharField(max_length=80)
    key = models.CharField(max_length=200)
    request_hash = models.CharField(max_length=64)
    started_at = models.DateTimeField()
    status = models.PositiveSmallIntegerField(null=True)
    body = models.BinaryField(default=b"")
    body_key_id = models.CharField(max_length=32, blank=True)
    headers = models.JSONField(default=dict)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["caller", "key"], name="one_answer_per_key")]
        indexes = [models.Index(fields=["started_at"], name="answer_age")]

    def __str__(self) -> str:
        return f"{self.caller} {self.key}"
