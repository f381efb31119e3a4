from django.db import models
from django.utils.translation import gettext_lazy as _


class ServiceType(models.TextChoices):
    """What a queue is for; it decides who may take whose cards."""

    INFERENCE = "inference", _("Inference")
    TRAINING = "training", _("Training")


class Versioned(models.Model):
    """A row that counts its own edits: the strong ETag of the REST API."""

    version = models.PositiveBigIntegerField(default=1, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        abstract = True
