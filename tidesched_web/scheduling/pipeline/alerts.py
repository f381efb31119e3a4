import datetime as dt
from collections.abc import Mapping
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.utils import timezone

from tidesched_web.common import live
from tidesched_web.scheduling.models import Alert, AlertSeverity


def raise_alert(
    *,
    cluster_id: int | None,
    key: str,
    severity: AlertSeverity,
    code: str,
    message: str,
    numbers: Mapping[str, Any] | None = None,
    session_id: int | None = None,
) -> bool:
    key, figures = key[:120], dict(numbers or {})
    known = _open(cluster_id, key).first()
    if known is not None:
        if (known.code, known.message, known.numbers, known.severity) != (code, message, figures, severity):
            _open(cluster_id, key).update(code=code, message=message, numbers=figures, severity=severity)
            _announce(cluster_id, key, "figures")
        return False
    try:
        with transaction.atomic():
            Alert.objects.create(
                cluster_id=cluster_id, key=key, severity=severity, code=code, message=message,
                numbers=figures, session_id=session_id, raised_at=timezone.now(),
            )  # fmt: skip
    except IntegrityError:
        return False
    _announce(cluster_id, key, "raised")
    return True


def resolve(*, cluster_id: int | None, key: str, by: str = "") -> bool:
    closed = _open(cluster_id, key[:120]).update(resolved_at=timezone.now(), resolved_by=by)
    if closed:
        _announce(cluster_id, key, "resolved")
    return bool(closed)


def _open(cluster_id: int | None, key: str) -> QuerySet[Alert]:
    return _of(cluster_id).filter(key=key, resolved_at__isnull=True)


def _of(cluster_id: int | None) -> QuerySet[Alert]:
    if cluster_id is None:
        return Alert.objects.filter(cluster__isnull=True)
    return Alert.objects.filter(cluster_id=cluster_id)


def _announce(cluster_id: int | None, key: str, what: str) -> None:
    about = live.About("alert", key, what)
    transaction.on_commit(lambda: live.publish("alerts", key, cluster_id=cluster_id, about=about), robust=True)


def keep_open(
    *,
    cluster_id: int | None,
    prefix: str,
    wanted: Mapping[str, dict[str, Any]],
    outlasts: dt.timedelta = dt.timedelta(),
) -> None:
    """Make the open alerts with ``prefix`` exactly ``wanted``; ``outlasts``: how long (wall) a cause has to be gone."""
    now = timezone.now()
    rows = _of(cluster_id).filter(resolved_at__isnull=True, key__startswith=prefix)
    there = dict(rows.values_list("key", "lapsed_at"))
    for key in there.keys() - wanted.keys():
        since = there[key] or now
        if now - since >= outlasts:
            resolve(cluster_id=cluster_id, key=key)
    first = [key for key, since in there.items() if since is None and key not in wanted]
    if outlasts and first:
        rows.filter(key__in=first).update(lapsed_at=now)
    if back := [key for key, since in there.items() if since is not None and key in wanted]:
        rows.filter(key__in=back).update(lapsed_at=None)
    for key, fields in wanted.items():
        raise_alert(cluster_id=cluster_id, key=key, **fields)


def raise_recut(*, cluster_id: int, node: str, before: Mapping[str, int], after: Mapping[str, int]) -> None:
    """The cards of a node are others now; cut back to what they were when the alert rose, they are right again."""
    key = f"node_recut:{node}"[:120]
    known = _open(cluster_id, key).values_list("numbers", flat=True).first()
    first = dict((known or {}).get("before") or before)
    if first == dict(after):
        resolve(cluster_id=cluster_id, key=key)
        return
    raise_alert(
        cluster_id=cluster_id,
        key=key,
        severity=AlertSeverity.WARNING,
        code="node_recut",
        message=f"The cards of node {node} have changed.",
        numbers={"node": node, "before": first, "after": dict(after)},
    )
