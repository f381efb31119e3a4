"""What the quota tree of a cluster shows, summed by the database: three queries, however many queues there are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.db.models import BigIntegerField, Count, Exists, F, OuterRef, Q, QuerySet, Sum, Value
from django.db.models.functions import Coalesce

from tidesched_web.clusters.models import CardType, Cluster
from tidesched_web.common.models import ServiceType
from tidesched_web.common.permissions import Access
from tidesched_web.quota.models import CardQuota, Queue
from tidesched_web.scheduling.borrowing import CardTotals
from tidesched_web.scheduling.models import QueueUsage
from tidesched_web.scheduling.selectors import queues_with_usage
from tidesched_web.workloads.models import Gang


@dataclass(frozen=True, slots=True)
class Place:
    """Where a queue hangs: service type, tenant (0 = the platform), and its project, else its business line."""

    service_type: str
    tenant: int
    project: int = 0
    line: int = 0


@dataclass(slots=True)
class PlaceSums:
    """All queues of one place: how many, what they may use and what they use. Quotas in cards, use in milli-cards."""

    queues: int = 0
    quota: dict[str, int] = field(default_factory=dict)
    allocated: dict[str, int] = field(default_factory=dict)
    inqueue: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class TreeSums:
    """The tree without its queues, as far as the reader sees it.

    ``tenants``, ``projects`` and ``lines`` map ids to (slug, name); ``limits`` maps (service type, "tenant" or
    "project", id) to its own quota; ``totals`` are of the whole cluster and only say how much is borrowed.
    """

    tenants: dict[int, tuple[str, str]] = field(default_factory=dict)
    projects: dict[int, tuple[str, str, int]] = field(default_factory=dict)
    lines: dict[int, tuple[str, str]] = field(default_factory=dict)
    places: dict[Place, PlaceSums] = field(default_factory=lambda: defaultdict(PlaceSums))
    limits: dict[tuple[str, str, int], dict[str, int]] = field(default_factory=lambda: defaultdict(dict))
    hardware: dict[str, int] = field(default_factory=dict)
    totals: dict[str, CardTotals] = field(default_factory=dict)

    @property
    def queues(self) -> int:
        return sum(sums.queues for sums in self.places.values())


_PLACE = ("service_type", "tenant_id", "project_id", "business_line_id")
_OWNERS = ("tenant", "project", "business_line")
_NAMES = tuple(f"{owner}__{field}" for owner in _OWNERS for field in ("slug", "name"))


def tree_sums(access: Access, cluster: Cluster) -> TreeSums:
    """Read the sums of a cluster's tree. Two queries."""
    found = TreeSums()
    promised: dict[str, int] = defaultdict(int)
    training: dict[str, int] = defaultdict(int)

    def sees(tenant: int | None) -> bool:
        return access.everything or tenant in access.tenant_ids

    for row in _quota_rows(cluster):
        card, service, cards = row["name"], row["quotas__service_type"], row["cards"]
        if row["seen"]:
            found.hardware[card] = row["hardware"]
        if row["is_queue"] and service == ServiceType.INFERENCE:
            promised[card] += cards
        owner = row["quotas__tenant_id"] or row["quotas__project__tenant_id"] or row["quotas__queue__tenant_id"]
        if cards is None or not sees(owner):
            continue
        if tenant := row["quotas__tenant_id"]:
            found.tenants[tenant] = (row["quotas__tenant__slug"], row["quotas__tenant__name"])
            found.limits[service, "tenant", tenant][card] = cards
        elif project := row["quotas__project_id"]:
            found.projects[project] = (row["quotas__project__slug"], row["quotas__project__name"], owner)
            found.tenants.setdefault(owner, (row["owner_slug"], row["owner_name"]))
            found.limits[service, "project", project][card] = cards
        else:
            project = row["quotas__queue__project_id"] or 0
            line = 0 if project else row["quotas__queue__business_line_id"] or 0
            quota = found.places[Place(service, owner or 0, project, line)].quota
            quota[card] = quota.get(card, 0) + cards
    for values in _use_rows(cluster):
        service, tenant, project, line, *names, card, queues, allocated, inqueue = values
        if service == ServiceType.TRAINING and card:
            training[card] += allocated
        if not sees(tenant):
            continue
        tenant, project = tenant or 0, project or 0
        line = 0 if project else line or 0
        if tenant:
            found.tenants[tenant] = (names[0], names[1])
        if project:
            found.projects[project] = (names[2], names[3], tenant)
        if line:
            found.lines[line] = (names[4], names[5])
        sums = found.places[Place(service, tenant, project, line)]
        sums.queues += queues
        if card:
            sums.allocated[card] = sums.allocated.get(card, 0) + allocated
            sums.inqueue[card] = sums.inqueue.get(card, 0) + inqueue
    found.totals = {
        card: CardTotals(hardware * 1000, promised[card] * 1000, training[card])
        for card, hardware in found.hardware.items()
    }
    return found


def _quota_rows(cluster: Cluster) -> Iterable[Mapping[str, Any]]:
    """Each card type with its quotas, those of queues summed by place; a card type without any is one row too."""
    return (
        CardType.objects.filter(cluster=cluster)
        .order_by()
        .values(
            "name",
            "hardware",
            "quotas__service_type",
            "quotas__tenant_id",
            "quotas__tenant__slug",
            "quotas__tenant__name",
            "quotas__project_id",
            "quotas__project__slug",
            "quotas__project__name",
            "quotas__project__tenant_id",
            "quotas__queue__tenant_id",
            "quotas__queue__project_id",
            "quotas__queue__business_line_id",
            seen=F("last_seen_at"),
            owner_slug=F("quotas__project__tenant__slug"),
            owner_name=F("quotas__project__tenant__name"),
        )
        .annotate(cards=Sum("quotas__cards"), is_queue=Count("quotas__queue_id"))
    )


def _use_rows(cluster: Cluster) -> QuerySet[Queue, tuple[Any, ...]]:
    """(place, its names, card, queues, allocated, inqueue): a row without a card counts the queues of a place."""
    number = BigIntegerField()
    queues = Queue.objects.filter(cluster=cluster).order_by()
    counted = queues.values(*_PLACE, *_NAMES).annotate(
        card=Value(""), n=Count("pk"), used=Value(0, number), asked=Value(0, number)
    )
    used = queues.values(*_PLACE, *_NAMES, card=F("usage__card")).annotate(
        n=Value(0, number), used=Coalesce(Sum("usage__allocated"), 0), asked=Coalesce(Sum("usage__inqueue"), 0)
    )
    columns = (*_PLACE, *_NAMES, "card", "n", "used", "asked")
    return counted.values_list(*columns).union(used.filter(card__isnull=False).values_list(*columns), all=True)


def tree_queues(access: Access, cluster: Cluster) -> QuerySet[Queue]:
    """Visible queues of a cluster as rows of the tree."""
    return queues_with_usage(access, cluster).order_by("name")


def named_like(text: str) -> Q:
    """Queues that, or whose owners, have this text in their name."""
    found = Q(name__icontains=text)
    for owner in _OWNERS:
        found |= Q(**{f"{owner}__name__icontains": text}) | Q(**{f"{owner}__slug__icontains": text})
    return found


def of_tenant(queues: QuerySet[Queue], tenant: int) -> QuerySet[Queue]:
    """The queues of one tenant, 0 = of the platform."""
    return queues.filter(tenant_id=tenant) if tenant else queues.filter(tenant_id__isnull=True)


def of_place(queues: QuerySet[Queue], place: Place) -> QuerySet[Queue]:
    """The queues of one place."""
    found = of_tenant(queues.filter(service_type=place.service_type), place.tenant)
    if place.project:
        return found.filter(project_id=place.project)
    return found.filter(project_id__isnull=True, business_line_id=place.line)


def has_waiting() -> Q:
    """A gang waits in the queue: who is starved is among these."""
    return Q(Exists(Gang.objects.filter(queue=OuterRef("pk"), needs=True, gone_at__isnull=True)))


def uses_nothing() -> Q:
    """The queue has a card quota of which nothing is in use or promised."""
    quota = CardQuota.objects.filter(queue=OuterRef("pk"), cards__gt=0)
    use = QueueUsage.objects.filter(Q(allocated__gt=0) | Q(inqueue__gt=0), queue=OuterRef("pk"))
    return Q(Exists(quota)) & ~Q(Exists(use))
