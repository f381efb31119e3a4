from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.utils import timezone

from tidesched_web.quota.drift_fields import fields_of
from tidesched_web.quota.models import PushedObject


@dataclass(frozen=True)
class Written:
    """An object that the cluster has taken: what was sent, of which version of the row, in which state it is wanted."""

    kind: str
    name: str
    manifest: Mapping[str, Any]
    version: int
    state: str = ""


def note_pushed(*, cluster_id: int, written: Iterable[Written]) -> None:
    """Keep the fields of what was written, in one statement; called after the cluster's answer."""
    now = timezone.now()
    rows = [
        PushedObject(
            cluster_id=cluster_id,
            kind=one.kind,
            name=one.name,
            fields=fields_of(one.manifest, state=one.state),
            version=one.version,
            pushed_at=now,
        )
        for one in written
    ]
    if rows:
        PushedObject.objects.bulk_create(
            rows,
            update_conflicts=True,
            unique_fields=("cluster", "kind", "name"),
            update_fields=("fields", "version", "pushed_at"),
        )
