from collections.abc import Collection, Iterable, Mapping
from typing import Any

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import (
    Case,
    Exists,
    ExpressionWrapper,
    F,
    IntegerField,
    OuterRef,
    QuerySet,
    Subquery,
    Sum,
    Value,
    When,
)
from django.db.models.expressions import Combinable, RawSQL
from django.db.models.functions import Coalesce, JSONObject

from tidesched_web.clusters.models import CardType, Cluster, Node
from tidesched_web.clusters.selectors import visible_clusters
from tidesched_web.common.models import ServiceType
from tidesched_web.common.permissions import Access
from tidesched_web.quota.models import CardQuota, ComputeQuota, NamespaceGrant, PriorityClass, Queue
from tidesched_web.quota.tree_rules import CPU, MEMORY


def cards_of_no_node(cluster_id: int, named_live: Collection[str] = ()) -> tuple[dict[str, int], dict[str, int]]:
    """``named_live``: cards that queues of the cluster itself name. Two queries."""
    promised = dict(
        CardQuota.objects.filter(cluster_id=cluster_id, queue__isnull=False)
        .order_by()
        .values_list("card_type__name")
        .annotate(cards=Sum("cards"))
    )
    lost, named = {}, {}
    known = set()
    for name, hardware, seen in CardType.objects.filter(cluster_id=cluster_id).values_list(
        "name", "hardware", "last_seen_at"
    ):
        known.add(name)
        if hardware:
            continue
        if seen is not None:
            lost[name] = promised.get(name, 0)
        elif promised.get(name):
            named[name] = promised[name]
    named |= {name: promised.get(name, 0) for name in sorted(set(named_live) - known)}
    return lost, named


# As ``workloads.models.GangState`` has them, which stands above this context: all but those that are over.
LIVE_GANGS = ("waiting", "admitted", "running", "reclaimed")


def visible_queues(access: Access) -> QuerySet[Queue]:
    """Queues of the caller's tenants; those of the platform's own business lines only for who sees everything."""
    queues = Queue.objects.select_related("cluster", "tenant", "project", "business_line")
    return queues if access.everything else queues.filter(tenant_id__in=access.tenant_ids)


def visible_queues_of(cluster: Cluster, access: Access) -> QuerySet[Queue]:
    """The visible queues of one cluster, each with this object as its cluster: no row reads it again."""
    queues = cluster.queues.select_related("tenant", "project", "business_line")
    return queues if access.everything else queues.filter(tenant_id__in=access.tenant_ids)


def tenants_of_queues(cluster_id: int) -> dict[str, tuple[int | None, str | None]]:
    rows = Queue.objects.filter(cluster_id=cluster_id).values_list("name", "tenant_id", "tenant__name")
    return {queue: (tenant, name) for queue, tenant, name in rows}


def visible_priority_classes(access: Access) -> QuerySet[PriorityClass]:
    return PriorityClass.objects.filter(cluster__in=visible_clusters(access)).select_related("cluster")


def queue_grants() -> Case:
    of_cluster = NamespaceGrant.objects.filter(cluster=OuterRef("cluster"))
    of_queue = NamespaceGrant.objects.filter(queue=OuterRef("pk")).order_by("namespace")
    return Case(When(Exists(of_cluster), then=ArraySubquery(of_queue.values("namespace"))), default=None)


def visible_grants(access: Access) -> QuerySet[NamespaceGrant]:
    grants = NamespaceGrant.objects.select_related("queue")
    return grants if access.everything else grants.filter(queue__tenant_id__in=access.tenant_ids)


def with_card_quota(queues: QuerySet[Queue]) -> QuerySet[Queue]:
    rows = CardQuota.objects.filter(queue=OuterRef("pk")).order_by("card_type__name")
    return queues.annotate(
        card_quota_rows=ArraySubquery(rows.values(row=JSONObject(card="card_type__name", cards="cards")))
    )


def card_quota_of(queue: Queue) -> dict[str, int]:
    return {row["card"]: row["cards"] for row in queue.card_quota_rows}  # type: ignore[attr-defined]


def effective_quota_of(queue: Queue) -> dict[str, int]:
    turned: dict[str, int] = queue.tide
    return card_quota_of(queue) | turned


def with_hardware(queues: QuerySet[Queue]) -> QuerySet[Queue]:
    seen = CardType.objects.filter(cluster=OuterRef("cluster"), last_seen_at__isnull=False).order_by("name")
    row = JSONObject(card="name", cards="hardware")
    return queues.annotate(hardware_rows=ArraySubquery(seen.values(row=row)))


def hardware_rows_of(queue: Queue) -> dict[str, int]:
    return {row["card"]: row["cards"] for row in queue.hardware_rows}  # type: ignore[attr-defined]  # annotated


def turned_by_plans(cluster: Cluster) -> dict[str, dict[str, int]]:
    return dict(Queue.objects.filter(cluster=cluster).exclude(tide={}).values_list("name", "tide"))


def with_limits(holders: QuerySet[Any], owner: str) -> QuerySet[Any]:
    cards = CardQuota.objects.filter(**{owner: OuterRef("pk")}).order_by("cluster", "service_type", "card_type__name")
    compute = ComputeQuota.objects.filter(**{owner: OuterRef("pk")}).order_by("cluster", "service_type")
    found: QuerySet[Any] = holders.annotate(
        card_rows=ArraySubquery(
            cards.values(
                row=JSONObject(cluster="cluster_id", service_type="service_type", card="card_type__name", cards="cards")
            )
        ),
        compute_rows=ArraySubquery(
            compute.values(
                row=JSONObject(
                    cluster="cluster_id", service_type="service_type", cpu_milli="cpu_milli", memory_mib="memory_mib"
                )
            )
        ),
    )
    return found


def limits_of(holder: Any) -> list[dict[str, Any]]:
    found: dict[tuple[int, str], dict[str, Any]] = {}

    def row_of(row: Mapping[str, Any]) -> dict[str, Any]:
        return found.setdefault(
            (row["cluster"], row["service_type"]),
            {
                "cluster": row["cluster"],
                "service_type": row["service_type"],
                "cards": None,
                "cpu_milli": None,
                "memory_bytes": None,
            },
        )

    for row in holder.card_rows:
        limit = row_of(row)
        limit["cards"] = (limit["cards"] or {}) | {row["card"]: row["cards"]}
    for row in holder.compute_rows:
        limit = row_of(row)
        limit["cpu_milli"] = row["cpu_milli"]
        limit["memory_bytes"] = None if row["memory_mib"] is None else row["memory_mib"] * 2**20
    return [found[key] for key in sorted(found)]


# What tide plans add to the base of a card type now, over all queues of a service type.
_TURNED = """
COALESCE((SELECT sum((queue.tide->>clusters_cardtype.name)::bigint - COALESCE(base.cards, 0))
          FROM quota_queue queue
          LEFT JOIN quota_cardquota base ON base.queue_id = queue.id AND base.card_type_id = clusters_cardtype.id
          WHERE queue.cluster_id = clusters_cardtype.cluster_id AND queue.service_type = %s
            AND jsonb_exists(queue.tide, clusters_cardtype.name)), 0)
"""


def with_promised(card_types: QuerySet[CardType], access: Access) -> QuerySet[CardType]:
    """None for who sees only some tenants: the sum less their own quota would be that of the others."""
    if not access.everything:
        unknown = Value(None, output_field=IntegerField())
        return card_types.annotate(inference_quota=unknown, training_quota=unknown)

    def promised(service_type: ServiceType) -> Combinable:
        rows = CardQuota.objects.filter(card_type=OuterRef("pk"), service_type=service_type, queue__isnull=False)
        base = Coalesce(Subquery(rows.order_by().values("card_type").annotate(n=Sum("cards")).values("n")), 0)
        turned = RawSQL(_TURNED, [service_type.value], output_field=IntegerField())  # noqa: S611 - bound
        return ExpressionWrapper(base + turned, output_field=IntegerField())

    return card_types.annotate(
        inference_quota=promised(ServiceType.INFERENCE), training_quota=promised(ServiceType.TRAINING)
    )


def hardware_of(cluster: Cluster) -> dict[str, int]:
    seen = CardType.objects.filter(cluster=cluster, last_seen_at__isnull=False)
    return {**dict(seen.values_list("name", "hardware")), **compute_hardware_of(cluster)}


def compute_hardware_of(cluster: Cluster) -> dict[str, int]:
    nodes = Node.objects.filter(cluster=cluster, gone_at__isnull=True).aggregate(
        cpu=Sum(F("cpu_milli")), memory=Sum(F("memory_mib"))
    )
    return {} if nodes["cpu"] is None else {CPU: nodes["cpu"], MEMORY: nodes["memory"]}


def queues_with_gangs(ids: Iterable[int]) -> set[int]:
    """Which of these queues the sessions see gangs in that are not over: a queue's own status may be behind."""
    wanted = list(ids)
    if not wanted:
        return set()
    rows = Queue.objects.filter(pk__in=wanted, gangs__gone_at__isnull=True, gangs__state__in=LIVE_GANGS)
    return set(rows.values_list("pk", flat=True))
