"""What the quota tree of a cluster shows, summed by the database: two queries, however many queues there are."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from django.db.models import BigIntegerField, Case, Count, Exists, F, OuterRef, Q, QuerySet, Sum, Value, When
from django.db.models.functions import Cast

from tidesched_web.accounts.models import BusinessLine, Project, Tenant
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

    def add(self, kind: str, card: str, first: int, second: int) -> None:
        """One row of `_sum_rows`."""
        if kind == "queues":
            self.queues += first
        elif kind == "quota":
            self.quota[card] = self.quota.get(card, 0) + first
        else:
            self.allocated[card] = self.allocated.get(card, 0) + first
            self.inqueue[card] = self.inqueue.get(card, 0) + second


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


_OWNERS = ("tenant", "project", "business_line")


def tree_sums(access: Access, cluster: Cluster) -> TreeSums:
    """Read the sums of a cluster's tree. Two queries."""
    found = TreeSums()
    names: dict[str, dict[int, tuple[str, str, int | None]]] = {"card": {}, "tenant": {}, "project": {}, "line": {}}
    for kind, pk, slug, name, number in _names(cluster):
        names[kind][pk] = (slug, name, number)
    found.hardware = {name: seen for name, _title, seen in names["card"].values() if seen is not None}
    promised: dict[str, int] = defaultdict(int)
    training: dict[str, int] = defaultdict(int)
    for row in _sum_rows(cluster):
        kind, service, own_tenant, own_project, tenant, project, line, card_type, card, first, second = row
        if kind == "quota":
            card = names["card"][card_type][0]
            if not own_tenant and not own_project and service == ServiceType.INFERENCE:
                promised[card] += first
        elif kind == "use" and service == ServiceType.TRAINING:
            training[card] += first
        if own_project:
            tenant = names["project"][own_project][2]
        owner = own_tenant or tenant or 0
        if not (access.everything or owner in access.tenant_ids):
            continue
        if owner:
            found.tenants[owner] = names["tenant"][owner][:2]
        if shown := own_project or project:
            found.projects[shown] = (*names["project"][shown][:2], owner)
        if own_tenant:
            found.limits[service, "tenant", own_tenant][card] = first
        elif own_project:
            found.limits[service, "project", own_project][card] = first
        else:
            place = Place(service, owner, project or 0, 0 if project else line or 0)
            if place.line:
                found.lines[place.line] = names["line"][place.line][:2]
            found.places[place].add(kind, card, first, second)
    found.totals = {
        card: CardTotals(hardware * 1000, promised[card] * 1000, training[card])
        for card, hardware in found.hardware.items()
    }
    return found


_NUMBER = BigIntegerField()
_NAME_COLUMNS = ("of", "pk", "short", "long", "figure")


def _names(cluster: Cluster) -> QuerySet[Any, Any]:
    """(kind, id, slug, name, number) of all that sums are of. The number is a card type's hardware, None where it was
    never seen, and a project's tenant."""
    none = Value(None, _NUMBER)
    cards = CardType.objects.filter(cluster=cluster).annotate(
        of=Value("card"),
        short=F("name"),
        long=F("name"),
        figure=Case(When(last_seen_at__isnull=False, then=Cast("hardware", _NUMBER)), default=none),
    )
    owners = [
        model.objects.annotate(of=Value(kind), short=F("slug"), long=F("name"), figure=figure)
        for kind, model, figure in (
            ("tenant", Tenant, none),
            ("project", Project, F("tenant_id")),
            ("line", BusinessLine, none),
        )
    ]
    first, *others = (queryset.order_by().values_list(*_NAME_COLUMNS) for queryset in (cards, *owners))
    return first.union(*others, all=True)


_SUM_COLUMNS = (
    "kind", "service", "own_tenant", "own_project", "in_tenant", "in_project", "in_line", "card_key", "card_name",
    "first", "second",
)  # fmt: skip


def _sum_rows(cluster: Cluster) -> QuerySet[Any, Any]:
    """Quotas by owner or place and card type, what is in use and promised by place and card, queues by place.

    Grouped by numbers alone: names are many times as slow to group by.
    """
    nothing, unnamed = Value(0, _NUMBER), Value("")

    def of(queryset: QuerySet[Any], kind: str, prefix: str = "", **columns: Any) -> QuerySet[Any, Any]:
        places = {
            "kind": Value(kind),
            "service": F("service_type") if kind == "quota" else F(f"{prefix}service_type"),
            "own_tenant": nothing,
            "own_project": nothing,
            "in_tenant": F(f"{prefix}tenant_id"),
            "in_project": F(f"{prefix}project_id"),
            "in_line": F(f"{prefix}business_line_id"),
            "card_key": nothing,
            "card_name": unnamed,
            "second": nothing,
        } | columns
        sums = {name: places.pop(name) for name in ("first", "second")}
        return queryset.order_by().values(**places).annotate(**sums).values_list(*_SUM_COLUMNS)

    quotas = of(
        CardQuota.objects.filter(cluster=cluster),
        "quota",
        "queue__",
        own_tenant=F("tenant_id"),
        own_project=F("project_id"),
        card_key=F("card_type_id"),
        first=Sum("cards"),
    )
    use = of(
        QueueUsage.objects.filter(queue__cluster=cluster),
        "use",
        "queue__",
        card_name=F("card"),
        first=Cast(Sum("allocated"), _NUMBER),
        second=Cast(Sum("inqueue"), _NUMBER),
    )
    queues = of(Queue.objects.filter(cluster=cluster), "queues", first=Count("pk"))
    return quotas.union(use, queues, all=True)


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
