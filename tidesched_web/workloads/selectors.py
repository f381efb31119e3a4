from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import BigIntegerField, Case, Count, Exists, OuterRef, Q, QuerySet, TextField, Value, When
from django.db.models.expressions import RawSQL
from django.db.models.functions import Cast, JSONObject

from tidesched_web.clusters.models import Cluster, Node
from tidesched_web.common.permissions import Access
from tidesched_web.quota.models import NamespaceGrant, Queue
from tidesched_web.workloads.models import RANK, TERMINAL_GANG_STATES, WAITS_FROM, Gang, GangEvent, GangPod, GangState
from tidesched_web.workloads.reason_figures import with_figures

# What of a node's cards no pod holds, in milli-cards: what is in use is summed once for all nodes.
_FREE_MILLI = """
GREATEST(0, 1000 * (
  SELECT COALESCE(SUM(held.value::numeric), 0) FROM jsonb_each_text(clusters_node.cards) AS held
  WHERE %s = '' OR held.key = %s
) - COALESCE(((
  SELECT jsonb_object_agg(used.node, used.milli) FROM (
    SELECT pod.node, SUM(CASE WHEN pod.card_milli > 0 THEN pod.card_milli ELSE 1000 END) AS milli
    FROM workloads_gangpod AS pod JOIN workloads_gang AS gang ON gang.id = pod.gang_id
    WHERE gang.cluster_id = %s AND gang.gone_at IS NULL AND pod.phase IN ('Pending', 'Running')
      AND pod.card <> '' AND (%s = '' OR pod.card = %s)
    GROUP BY pod.node
  ) AS used
) ->> clusters_node.name)::numeric, 0))::bigint
"""


def visible_gangs(access: Access) -> QuerySet[Gang]:
    """Gangs in queues of the caller's tenants, and gangs of their namespaces that name a queue they may not use."""
    gangs = Gang.objects.all()
    if access.everything:
        return gangs
    return gangs.filter(Q(queue__tenant_id__in=access.tenant_ids) | _misdirected(access))


def _misdirected(access: Access) -> Q:
    """Gangs of a namespace of the caller's tenants (by a grant), in an unknown queue or one it has no grant for."""
    grants = NamespaceGrant.objects.filter(namespace=OuterRef("namespace"))
    ours = grants.filter(cluster=OuterRef("cluster"), queue__tenant_id__in=access.tenant_ids)
    return Q(Exists(ours)) & ~Q(Exists(grants.filter(queue=OuterRef("queue"))))


def with_own_queue(gangs: QuerySet[Gang], access: Access) -> QuerySet[Gang]:
    """Whether the figures of its queue are for the caller (`sight.shown_reason`). An unknown queue has none."""
    own: Value | Case = Value(True)
    if not access.everything:
        mine = Q(queue__isnull=True) | Q(queue__tenant_id__in=access.tenant_ids)
        own = Case(When(mine, then=True), default=False)
    return gangs.annotate(own_queue=own)


def with_granted(gangs: QuerySet[Gang], access: Access) -> QuerySet[Gang]:
    """Where a cluster has no grant at all every namespace may use every queue."""
    queues = Queue.objects.filter(cluster=OuterRef("cluster"))
    if not access.everything:
        queues = queues.filter(tenant_id__in=access.tenant_ids)
    named = NamespaceGrant.objects.filter(queue=OuterRef("pk"), namespace=OuterRef(OuterRef("namespace")))
    free = NamespaceGrant.objects.filter(cluster=OuterRef("cluster"))
    queues = queues.filter(Q(Exists(named)) | ~Q(Exists(free))).order_by("name")
    return gangs.annotate(granted=ArraySubquery(queues.values("name")[:100]))


def pods_of(gang: Gang) -> QuerySet[GangPod]:
    return GangPod.objects.filter(gang=gang).order_by("id")


def timeline_of(gang: Gang) -> QuerySet[GangEvent]:
    return GangEvent.objects.filter(gang=gang).order_by("id")


def visible_gang_keys(access: Access, cluster_ids: Iterable[int], keys: Iterable[str]) -> set[tuple[int, str]]:
    wanted = set(keys)
    parts = [key.partition("/") for key in wanted]
    rows = (
        visible_gangs(access)
        .filter(
            cluster_id__in=set(cluster_ids),
            namespace__in={namespace for namespace, _, _ in parts},
            name__in={name for _, _, name in parts},
        )
        .values_list("cluster_id", "namespace", "name")
        .distinct()
    )
    found = {(cluster, f"{namespace}/{name}") for cluster, namespace, name in rows}
    return {(cluster, key) for cluster, key in found if key in wanted}


@dataclass(frozen=True, slots=True)
class Waiting:
    gangs: list[Gang]
    by_reason: list[dict[str, Any]]


def that_wait(gangs: QuerySet[Gang]) -> QuerySet[Gang]:
    """Those of these gangs that still need something: the one meaning of "waits" in counts and lists."""
    return gangs.filter(needs=True, gone_at__isnull=True)


def waiting_gangs(access: Access, cluster: Cluster) -> QuerySet[Gang]:
    return that_wait(visible_gangs(access).filter(cluster=cluster))


def holding_gangs(access: Access, cluster: Cluster, card: str, queue: str = "") -> QuerySet[Gang]:
    held = (GangState.ADMITTED, GangState.RUNNING)
    gangs = visible_gangs(access).filter(cluster=cluster, gone_at__isnull=True, state__in=held, cards__has_key=card)
    return gangs.filter(queue_name=queue) if queue else gangs


def spared_gangs(access: Access, cluster: Cluster) -> QuerySet[Gang]:
    gangs = visible_gangs(access).filter(cluster=cluster, gone_at__isnull=True, spared_until__gt=cluster.clock())
    return gangs.order_by("spared_until", "id")


# The keys of `by_need`, from the first to the last.
BY_NEED = ("rank", "waits_from", "-submitted_at", "-id")


def by_need(gangs: QuerySet[Gang]) -> QuerySet[Gang]:
    return gangs.annotate(rank=RANK, waits_from=WAITS_FROM)


def with_reason_counts(gangs: QuerySet[Gang], among: QuerySet[Gang]) -> QuerySet[Gang]:
    counts = that_wait(among).order_by().values("reason_code").annotate(n=Count("pk")).order_by("-n", "reason_code")
    return gangs.annotate(reason_counts=ArraySubquery(counts.values(row=JSONObject(code="reason_code", n="n"))))


def longest_waiting(access: Access, cluster: Cluster, rows: int) -> Waiting:
    waiting = that_wait(visible_gangs(access).filter(cluster=cluster))
    rows_of_gangs = with_reason_counts(with_figures(with_own_queue(waiting, access)), waiting).defer("manifest")
    gangs = list(rows_of_gangs.order_by("waiting_since", "id")[:rows])
    return Waiting(gangs, gangs[0].reason_counts if gangs else [])  # type: ignore[attr-defined]


def gangs_of_queue(queue: Queue, *, limit: int = 200) -> list[Gang]:
    gangs = with_figures(Gang.objects.filter(queue=queue, gone_at__isnull=True).exclude(state__in=TERMINAL_GANG_STATES))
    return list(gangs.defer("manifest").order_by("-needs", "position", "waiting_since", "id")[:limit])


def live_gangs(cluster: Cluster, queue_names: Iterable[str]) -> dict[str, int]:
    rows = Gang.objects.filter(cluster=cluster, queue_name__in=list(queue_names), gone_at__isnull=True)
    rows = rows.exclude(state__in=TERMINAL_GANG_STATES)
    return dict(rows.order_by().values_list("queue_name").annotate(count=Count("pk")))


def newest_gang_id(access: Access, cluster: Cluster, key: str) -> int | None:
    namespace, _, name = key.partition("/")
    gangs = visible_gangs(access).filter(cluster=cluster, namespace=namespace, name=name)
    return gangs.order_by("-submitted_at", "-id").values_list("pk", flat=True).first()


class HeldCard(NamedTuple):
    """A pod that holds cards of a node. Of a gang out of the caller's sight the namespace and the name are empty."""

    node: str
    card: str
    card_milli: int
    places: str  # JSON: which cards of the node, where the pod says so
    leaving: bool
    own: bool
    gang_id: int
    namespace: str
    name: str
    service_type: str


def pods_on_nodes(access: Access, cluster: Cluster, nodes: Iterable[str]) -> list[HeldCard]:
    rows = GangPod.objects.filter(
        gang__cluster=cluster, gang__gone_at__isnull=True, node__in=list(nodes), phase__in=("Pending", "Running")
    ).exclude(card="")
    own: Any = Value(True)
    if not access.everything:
        seen = rows.filter(gang__in=visible_gangs(access).filter(cluster=cluster))
        own = Exists(seen.filter(pk=OuterRef("pk")))
    found = rows.annotate(own=own, places=Cast("card_indices", TextField())).values_list(
        *("node", "card", "card_milli", "places", "leaving", "own"),
        *("gang_id", "gang__namespace", "gang__name", "gang__service_type"),
    )
    held = [HeldCard(*row) for row in found.order_by("id")]
    held = [pod if pod.own else pod._replace(gang_id=0, namespace="", name="") for pod in held]
    return sorted(held, key=lambda pod: pod.places == "[]")


def with_free_cards(nodes: QuerySet[Node], cluster: Cluster, card: str = "") -> QuerySet[Node]:
    bound = [card, card, cluster.pk, card, card]
    free = RawSQL(_FREE_MILLI, bound, output_field=BigIntegerField())  # noqa: S611 - bound
    return nodes.annotate(free=free)


def free_milli(cards: Iterable[tuple[str, float]], pods: Iterable[HeldCard], card: str = "") -> int:
    there = sum(count for name, count in cards if card in ("", name))
    used = sum(pod.card_milli or 1000 for pod in pods if card in ("", pod.card))
    return max(0, round(1000 * there) - used)


def with_steps(gangs: QuerySet[Gang]) -> QuerySet[Gang]:
    steps = GangEvent.objects.filter(gang=OuterRef("pk")).order_by("-at", "-id")
    row = JSONObject(kind="kind", at="at", detail="detail", reclaim_id="reclaim_id")
    return gangs.annotate(step_rows=ArraySubquery(steps.values(row=row)[:300]))
