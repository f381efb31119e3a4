"""Card, cpu and memory quotas of queues, projects and tenants."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db import transaction
from django.db.models import F

from tidesched_web.accounts.models import Project, Tenant
from tidesched_web.clusters.models import CardType, Cluster
from tidesched_web.common.errors import DomainError
from tidesched_web.common.models import ServiceType
from tidesched_web.engine.cards import near_card
from tidesched_web.quota.models import CardQuota, ComputeQuota, Queue, SyncState
from tidesched_web.quota.services.recording import record
from tidesched_web.quota.services.tree import pointer_of, quota_write

Owner = Queue | Project | Tenant


def card_types_of(cluster: Cluster, cards: Mapping[str, int]) -> dict[str, CardType]:
    """The card types that ``cards`` names; an unknown name is answered with the nearest known one."""
    known = {card.name: card for card in CardType.objects.filter(cluster=cluster)}
    for name, count in cards.items():
        if name not in known:
            near = near_card(name, known)
            hint = f" Did you mean {near!r}?" if near else f" Known: {', '.join(sorted(known)) or 'none yet'}."
            raise DomainError.for_field(
                pointer_of(name), f"{cluster.name} has no card type {name!r}.{hint}", code="unknown_card"
            )
        if isinstance(count, bool) or not isinstance(count, int) or count < 0:
            raise DomainError.for_field(pointer_of(name), f"{count!r} is no number of cards: 0, 1, 2, …")
    return known


def card_rows_of(cluster: Cluster, owner: Owner, service_type: str) -> dict[str, int]:
    """What ``owner`` may use now: card name → count."""
    rows = CardQuota.objects.filter(cluster=cluster, service_type=service_type, **{_column(owner): owner})
    return dict(rows.values_list("card_type__name", "cards"))


def write_card_rows(cluster: Cluster, owner: Owner, service_type: str, cards: Mapping[str, int]) -> None:
    """Make the rows of ``owner`` say ``cards`` and nothing else. Under the tree lock."""
    known = card_types_of(cluster, cards)
    key: dict[str, Any] = {"cluster": cluster, "service_type": service_type, _column(owner): owner}
    CardQuota.objects.filter(**key).exclude(card_type__name__in=list(cards)).delete()
    for name, count in sorted(cards.items()):
        CardQuota.objects.update_or_create(**key, card_type=known[name], defaults={"cards": count})


def _column(owner: Owner) -> str:
    return owner._meta.model_name or ""


def _tenant_of(owner: Owner) -> int | None:
    return owner.pk if isinstance(owner, Tenant) else owner.tenant_id


def _count_version(owner: Owner) -> None:
    extra: dict[str, Any] = {"sync_state": SyncState.PENDING} if isinstance(owner, Queue) else {}
    type(owner)._base_manager.filter(pk=owner.pk).update(version=F("version") + 1, **extra)
    owner.refresh_from_db(fields=["version", *extra])


def _label(owner: Owner) -> str:
    if isinstance(owner, Project):
        return f"{owner.tenant.slug}/{owner.slug}"
    return owner.slug if isinstance(owner, Tenant) else owner.name


def _record(
    owner: Owner,
    cluster: Cluster,
    verb: str,
    service_type: str,
    *,
    actor: str,
    reason: str,
    before: Mapping[str, Any],
    after: Mapping[str, Any],
) -> None:
    record(
        owner,
        kind=_column(owner),
        verb=verb,
        actor=actor,
        label=_label(owner),
        cluster=cluster,
        tenant_ids=[_tenant_of(owner)],
        reason=reason,
        before={"service_type": service_type, **before},
        after={"service_type": service_type, **after},
    )


@transaction.atomic
def set_card_quota(
    *,
    cluster: Cluster,
    owner: Owner,
    cards: Mapping[str, int],
    actor: str,
    service_type: str | None = None,
    reason: str = "",
) -> bool:
    """Set the whole card quota of ``owner`` for a service type (a queue's own one by default); False = no change.

    An empty map means 0 of everything on a queue, and no limit on a project or tenant.
    """
    kind = service_type or (owner.service_type if isinstance(owner, Queue) else "")
    if kind not in ServiceType.values or (isinstance(owner, Queue) and kind != owner.service_type):
        raise DomainError.for_field("/service_type", f"A quota is for one of {', '.join(ServiceType.values)}.")
    with quota_write(cluster) as write:
        before = card_rows_of(cluster, owner, kind)
        write.changed = before != dict(cards)
        if write.changed:
            write_card_rows(cluster, owner, kind, cards)
            _count_version(owner)
    if write.changed:
        said = {"before": {"card_quota": before}, "after": {"card_quota": dict(cards)}}
        _record(owner, cluster, "set_card_quota", kind, actor=actor, reason=reason, **said)
    return write.changed


@transaction.atomic
def set_compute_quota(
    *,
    cluster: Cluster,
    owner: Tenant | Project,
    service_type: str,
    cpu_milli: int | None,
    memory_mib: int | None,
    actor: str,
    reason: str = "",
) -> bool:
    """Set the cpu and memory ceiling of a tenant or project for a service type; None is no limit; False = no change."""
    if service_type not in ServiceType.values:
        raise DomainError.for_field("/service_type", f"A quota is for one of {', '.join(ServiceType.values)}.")
    after = {"cpu_milli": cpu_milli, "memory_mib": memory_mib}
    for name, figure in after.items():
        if figure is not None and figure < 0:
            raise DomainError.for_field(f"/{name}", f"{figure} is negative.")
    key: dict[str, Any] = {"cluster": cluster, "service_type": service_type, _column(owner): owner}
    with quota_write(cluster) as write:
        row = ComputeQuota.objects.filter(**key).first()
        before = {"cpu_milli": row.cpu_milli, "memory_mib": row.memory_mib} if row else dict.fromkeys(after)
        write.changed = before != after
        if write.changed:
            ComputeQuota.objects.update_or_create(**key, defaults=after)
            _count_version(owner)
    if write.changed:
        said = {"before": before, "after": after}
        _record(owner, cluster, "set_compute_quota", service_type, actor=actor, reason=reason, **said)
    return write.changed
