from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models

from tidesched_web.clusters.models import Cluster


class Cursor(models.Model):
    """The last row of each table that was looked at, and those up to it that had not ended then."""

    cluster = models.OneToOneField(Cluster, on_delete=models.CASCADE, primary_key=True, related_name="+")
    session = models.BigIntegerField(default=0)
    reclaim = models.BigIntegerField(default=0)
    event = models.BigIntegerField(default=0)
    open_sessions: ArrayField[list[int], list[int]] = ArrayField(models.BigIntegerField(), default=list)
    open_reclaims: ArrayField[list[int], list[int]] = ArrayField(models.BigIntegerField(), default=list)
