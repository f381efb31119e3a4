"""What every quota write says afterwards: an audit entry, and an event for the open pages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from django.db import models, transaction

from tidesched_web.audit import services as audit
from tidesched_web.clusters.models import Cluster
from tidesched_web.common import live
from tidesched_web.quota.events import about_queue
from tidesched_web.quota.models import Queue


def record(
    row: models.Model,
    *,
    kind: str,
    verb: str,
    actor: str,
    label: str,
    cluster: Cluster | None = None,
    tenant_ids: Iterable[int | None] = (),
    reason: str = "",
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
) -> None:
    """Audit a write of ``row`` in the chain of ``cluster`` (or the platform's). Call it last in the transaction."""
    audit.append(
        chain=audit.cluster_chain(cluster.pk) if cluster else audit.PLATFORM_CHAIN,
        actor=actor,
        action=f"{kind}.{verb}",
        object_type=kind,
        object_id=row.pk,
        object_label=label,
        cluster_id=cluster.pk if cluster else None,
        tenant_ids=[tenant for tenant in tenant_ids if tenant is not None],
        reason=reason,
        before=before,
        after=after,
    )
    if cluster is not None and isinstance(row, Queue):
        transaction.on_commit(
            lambda: live.publish("queues", row.pk, row.version, cluster_id=cluster.pk, about=about_queue(row, verb)),
            robust=True,
        )
