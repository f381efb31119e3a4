"""Raising and resolving alerts; one open alert per cluster and key, so raising it again changes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone

from tidesched_web.common import live
from tidesched_web.scheduling.models import Alert, AlertSeverity


def raise_alert(
    *,
    cluster_id: int,
    key: str,
    severity: AlertSeverity,
    code: str,
    message: str,
    numbers: Mapping[str, Any] | None = None,
    session_id: int | None = None,
) -> bool:
    """Open an alert unless one with this key is open; True when it is new."""
    try:
        with transaction.atomic():
            Alert.objects.create(
                cluster_id=cluster_id, key=key, severity=severity, code=code, message=message,
                numbers=dict(numbers or {}), session_id=session_id, raised_at=timezone.now(),
            )  # fmt: skip
    except IntegrityError:
        return False
    transaction.on_commit(lambda: live.publish("alerts", key, cluster_id=cluster_id), robust=True)
    return True


def resolve(*, cluster_id: int, key: str, by: str = "") -> bool:
    """Close the open alert of this key; False when there is none."""
    closed = Alert.objects.filter(cluster_id=cluster_id, key=key, resolved_at__isnull=True).update(
        resolved_at=timezone.now(), resolved_by=by
    )
    if closed:
        transaction.on_commit(lambda: live.publish("alerts", key, cluster_id=cluster_id), robust=True)
    return bool(closed)


def keep_open(*, cluster_id: int, prefix: str, wanted: Mapping[str, dict[str, Any]]) -> None:
    """Make the open alerts whose key starts with ``prefix`` exactly ``wanted`` (key -> fields of ``raise_alert``)."""
    there = set(
        Alert.objects.filter(cluster_id=cluster_id, resolved_at__isnull=True, key__startswith=prefix).values_list(
            "key", flat=True
        )
    )
    for key in there - wanted.keys():
        resolve(cluster_id=cluster_id, key=key)
    for key, fields in wanted.items():
        if key not in there:
            raise_alert(cluster_id=cluster_id, key=key, **fields)
