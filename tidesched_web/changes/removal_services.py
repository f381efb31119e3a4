"""The audit log alone stays."""

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from tidesched_web.audit import services as audit
from tidesched_web.clusters.connection_services import about
from tidesched_web.clusters.models import Cluster
from tidesched_web.common.errors import DomainError, need_reason
from tidesched_web.common.locking import lock_row, lock_tree
from tidesched_web.quota.models import CardQuota
from tidesched_web.scheduling.models import ClusterLease


def hanging_on(cluster: Cluster) -> dict[str, int]:
    counts: dict[str, int] = {}
    for relation in cluster._meta.related_objects:
        model = relation.related_model
        rows = model._base_manager.filter(**{relation.field.name: cluster}).count()
        if rows:
            counts[str(model._meta.model_name)] = rows
    return dict(sorted(counts.items()))


@transaction.atomic
def remove_cluster(*, cluster: Cluster, name: str, actor: str, reason: str) -> dict[str, int]:
    """``name`` is typed by the person, so that it is this one that they mean. In the cluster itself nothing changes."""
    reason = need_reason(reason)
    lock_tree(cluster.pk)
    row = lock_row(Cluster, cluster.pk)
    if row.disconnected_at is None:
        raise DomainError("conflict", _("Disconnect %(cluster)s first.") % {"cluster": row.name})
    if ClusterLease.objects.filter(cluster=row, expires_at__gt=timezone.now()).exists():
        raise DomainError(
            "conflict", _("A session of %(cluster)s still ends: try again in a minute.") % {"cluster": row}
        )
    if name.strip() != row.name:
        text = _("Type the cluster's name: %(name)s.") % {"name": row.name}
        raise DomainError.for_field("/name", text, code="against_rules")
    pk, before, counts = row.pk, {"name": row.name, "slug": row.slug, **about(row)}, hanging_on(row)
    CardQuota.objects.filter(cluster=row).delete()  # they keep their card types from being deleted
    row.delete()
    audit.append(
        chain=audit.cluster_chain(pk),
        actor=actor,
        action="cluster.remove",
        cluster_id=pk,
        object_type="cluster",
        object_id=pk,
        object_label=row.slug,
        reason=reason,
        before=before,
        after={"went_along": counts},
    )
    return counts
