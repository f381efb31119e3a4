from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from django.db import connection
from django.db.models import Exists, OuterRef, Q, QuerySet

from tidesched_web.clusters.models import Cluster
from tidesched_web.common.models import ServiceType
from tidesched_web.common.permissions import Access
from tidesched_web.quota.models import CardQuota, Queue
from tidesched_web.scheduling.models import QueueUsage
from tidesched_web.scheduling.selectors import queues_with_usage
from tidesched_web.scheduling.usage_selectors import CardTotals
from tidesched_web.workloads.models import Gang


class Place(NamedTuple):
    service_type: str
    tenant: int
    project: int = 0
    line: int = 0


@dataclass(slots=True)
class PlaceSums:
    """Quotas in cards, use in milli-cards; ``quota`` is the base, ``turned`` what tide plans add to it now."""

    queues: int = 0
    quota: dict[str, int] = field(default_factory=dict)
    turned: dict[str, int] = field(default_factory=dict)
    allocated: dict[str, int] = field(default_factory=dict)
    inqueue: dict[str, int] = field(default_factory=dict)

    def add(self, kind: str, card: str, first: int, second: int) -> None:
        if kind == "queues":
            self.queues += first
        elif kind == "quota":
            self.quota[card] = self.quota.get(card, 0) + first
        elif kind == "tide":
            self.turned[card] = self.turned.get(card, 0) + first
        else:
            self.allocated[card] = self.allocated.get(card, 0) + first
            self.inqueue[card] = self.inqueue.get(card, 0) + second


@dataclass(slots=True)
class TreeSums:
    """``totals`` are of the whole cluster and only say how much is borrowed, from the quotas of the newest session."""

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
# What was deleted while its sums were read.
_GONE = ("", "", None)


def tree_sums(access: Access, cluster: Cluster) -> TreeSums:
    found = TreeSums()
    sums = _rows(_SUMS, cluster)  # before the names: what is made in between is then named
    names: dict[str, dict[int, tuple[str, str, int | None]]] = {"card": {}, "tenant": {}, "project": {}, "line": {}}
    for kind, pk, slug, name, number in _rows(_NAMES, cluster):
        names[kind][pk] = (slug, name, number)
    found.hardware = {name: seen for name, _title, seen in names["card"].values() if seen is not None}
    promised: dict[str, int] = defaultdict(int)
    training: dict[str, int] = defaultdict(int)
    for kind, service, own_tenant, own_project, in_tenant, project, line, card_type, card_name, *figures in sums:
        first, second, standing = figures
        card = names["card"].get(card_type, _GONE)[0] if kind == "quota" else card_name
        if kind == "use" and service == ServiceType.INFERENCE:
            promised[card] += standing
        elif kind == "use":
            training[card] += first
        owner = own_tenant or in_tenant or 0
        if own_project:
            owner = names["project"].get(own_project, _GONE)[2] or 0
        if not (access.everything or owner in access.tenant_ids):
            continue
        if owner:
            found.tenants[owner] = names["tenant"].get(owner, _GONE)[:2]
        if shown := own_project or project:
            found.projects[shown] = (*names["project"].get(shown, _GONE)[:2], owner)
        if own_tenant:
            found.limits[service, "tenant", own_tenant][card] = first
        elif own_project:
            found.limits[service, "project", own_project][card] = first
        else:
            place = Place(service, owner, project or 0, 0 if project else line or 0)
            if place.line:
                found.lines[place.line] = names["line"].get(place.line, _GONE)[:2]
            found.places[place].add(kind, card, first, second)
    found.totals = {
        card: CardTotals(hardware * 1000, promised[card], training[card]) for card, hardware in found.hardware.items()
    }
    return found


# (kind, id, slug, name, number) of all that sums are of. The number is a card type's hardware, null where it was never
# seen, and a project's tenant.
_NAMES = """
SELECT 'card', id, name, name, CASE WHEN last_seen_at IS NOT NULL THEN hardware END
  FROM clusters_cardtype WHERE cluster_id = %(cluster)s
UNION ALL SELECT 'tenant', id, slug, name, NULL FROM accounts_tenant
UNION ALL SELECT 'project', id, slug, name, tenant_id FROM accounts_project
UNION ALL SELECT 'line', id, slug, name, NULL FROM accounts_businessline
"""
# Quotas by owner or place and card type; what tide plans add to those of queues; what is in use and promised by place
# and card, with the quota of the newest session in milli-cards; how many queues a place has.
# Grouped by numbers as far as may be, since grouping by names takes several times as long.
_SUMS = """
SELECT 'quota', quota.service_type, quota.tenant_id, quota.project_id, queue.tenant_id, queue.project_id,
       queue.business_line_id, quota.card_type_id, '', sum(quota.cards)::bigint, 0, 0
  FROM quota_cardquota quota LEFT JOIN quota_queue queue ON queue.id = quota.queue_id
 WHERE quota.cluster_id = %(cluster)s GROUP BY 2, 3, 4, 5, 6, 7, 8
UNION ALL
SELECT 'tide', queue.service_type, NULL, NULL, queue.tenant_id, queue.project_id, queue.business_line_id, 0, turn.key,
       sum(turn.value::bigint - coalesce(quota.cards, 0))::bigint, 0, 0
  FROM quota_queue queue CROSS JOIN LATERAL jsonb_each_text(queue.tide) AS turn
  LEFT JOIN clusters_cardtype card ON card.cluster_id = queue.cluster_id AND card.name = turn.key
  LEFT JOIN quota_cardquota quota ON quota.queue_id = queue.id AND quota.card_type_id = card.id
 WHERE queue.cluster_id = %(cluster)s AND queue.tide <> '{}' GROUP BY 2, 5, 6, 7, 9
UNION ALL
SELECT 'use', queue.service_type, NULL, NULL, queue.tenant_id, queue.project_id, queue.business_line_id, 0, usage.card,
       sum(usage.allocated)::bigint, sum(usage.inqueue)::bigint, sum(usage.quota)::bigint
  FROM scheduling_queueusage usage JOIN quota_queue queue ON queue.id = usage.queue_id
 WHERE queue.cluster_id = %(cluster)s GROUP BY 2, 5, 6, 7, 9
UNION ALL
SELECT 'queues', service_type, NULL, NULL, tenant_id, project_id, business_line_id, 0, '', count(*), 0, 0
  FROM quota_queue WHERE cluster_id = %(cluster)s GROUP BY 2, 5, 6, 7
"""


def _rows(sql: str, cluster: Cluster) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql, {"cluster": cluster.pk})
        return cursor.fetchall()


def tree_queues(access: Access, cluster: Cluster) -> QuerySet[Queue]:
    return queues_with_usage(access, cluster).select_related(None).order_by("name")


def named_like(text: str) -> Q:
    found = Q(name__icontains=text)
    for owner in _OWNERS:
        found |= Q(**{f"{owner}__name__icontains": text}) | Q(**{f"{owner}__slug__icontains": text})
    return found


def of_tenant(queues: QuerySet[Queue], tenant: int) -> QuerySet[Queue]:
    return queues.filter(tenant_id=tenant) if tenant else queues.filter(tenant_id__isnull=True)


def of_place(queues: QuerySet[Queue], place: Place) -> QuerySet[Queue]:
    found = of_tenant(queues.filter(service_type=place.service_type), place.tenant)
    if place.project:
        return found.filter(project_id=place.project)
    return found.filter(project_id__isnull=True, business_line_id=place.line)


def has_waiting() -> Q:
    return Q(Exists(Gang.objects.filter(queue=OuterRef("pk"), needs=True, gone_at__isnull=True)))


def uses_nothing() -> Q:
    quota = CardQuota.objects.filter(queue=OuterRef("pk"), cards__gt=0)
    use = QueueUsage.objects.filter(Q(allocated__gt=0) | Q(inqueue__gt=0), queue=OuterRef("pk"))
    return Q(Exists(quota)) & ~Q(Exists(use))
