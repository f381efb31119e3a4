from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from django.db import connection

from tidesched_web.clusters.models import Cluster
from tidesched_web.common.models import ServiceType
from tidesched_web.quota.tree_rules import CPU, MEMORY, ROOT, Holder, Tree

# (kind, cluster, service type, name, queue, project, tenant, first figure, second figure). One statement, so that a
# reader without the lock of the tree sees one moment of it. A card type that no node has shown is absent from hardware:
# nothing is known of it.
_TREES = """
SELECT 'cards', quota.cluster_id, quota.service_type, card.name, quota.queue_id, quota.project_id, quota.tenant_id,
       quota.cards::bigint, NULL::bigint
  FROM quota_cardquota quota JOIN clusters_cardtype card ON card.id = quota.card_type_id
 WHERE quota.cluster_id = ANY(%(clusters)s)
UNION ALL SELECT 'compute', cluster_id, service_type, '', NULL, project_id, tenant_id, cpu_milli, memory_mib
  FROM quota_computequota WHERE cluster_id = ANY(%(clusters)s)
UNION ALL SELECT 'queue', cluster_id, service_type, name, id, project_id, tenant_id, cpu_milli, memory_mib
  FROM quota_queue WHERE cluster_id = ANY(%(clusters)s)
UNION ALL SELECT 'hardware', cluster_id, '', name, NULL, NULL, NULL, hardware, NULL
  FROM clusters_cardtype WHERE cluster_id = ANY(%(clusters)s) AND last_seen_at IS NOT NULL
UNION ALL SELECT 'nodes', cluster_id, '', '', NULL, NULL, NULL, sum(cpu_milli)::bigint, sum(memory_mib)::bigint
  FROM clusters_node WHERE cluster_id = ANY(%(clusters)s) AND gone_at IS NULL GROUP BY cluster_id
UNION ALL SELECT 'tenant', NULL, '', slug, NULL, NULL, id, NULL, NULL FROM accounts_tenant
UNION ALL SELECT 'project', NULL, '', slug, NULL, id, tenant_id, NULL, NULL FROM accounts_project
"""


def quota_tree(cluster: Cluster) -> Tree:
    """The cluster's tree as it stands; read it under the lock of its `QuotaTree` row when it decides on a write."""
    return quota_trees([cluster])[cluster.pk]


def quota_trees(clusters: Iterable[Cluster]) -> dict[int, Tree]:
    wanted = {cluster.pk: cluster for cluster in clusters}
    with connection.cursor() as cursor:
        cursor.execute(_TREES, {"clusters": list(wanted)})
        rows = cursor.fetchall()
    owners = [row for row in rows if row[1] is None]
    own = defaultdict(list)
    for row in rows:
        own[row[1]].append(row)
    return {pk: _tree(cluster, own[pk], owners) for pk, cluster in wanted.items()}


def _tree(cluster: Cluster, rows: list[tuple[Any, ...]], owners: list[tuple[Any, ...]]) -> Tree:
    cards: dict[str, dict[str, dict[str, int]]] = defaultdict(lambda: defaultdict(dict))
    compute: dict[str, dict[str, dict[str, int]]] = defaultdict(dict)
    hardware: dict[str, int] = {}
    for kind, _pk, service_type, name, queue, project, tenant, first, second in rows:
        key = f"queue:{queue}" if queue else f"project:{project}" if project else f"tenant:{tenant}"
        if kind == "cards":
            cards[key][service_type][name] = first
        elif kind in ("compute", "queue"):
            compute[key][service_type] = _figures(first, second)
        elif kind == "hardware":
            hardware[name] = first
        elif kind == "nodes":
            hardware |= {CPU: first, MEMORY: second}
    holders: dict[str, Holder] = {}
    for kind, _pk, service_type, name, queue, project, tenant, _first, _second in (*owners, *rows):
        if kind == "tenant":
            key, parent = f"tenant:{tenant}", ROOT
        elif kind == "project":
            key, parent = f"project:{project}", f"tenant:{tenant}"
        elif kind == "queue":
            key = f"queue:{queue}"
            parent = f"project:{project}" if project else f"tenant:{tenant}" if tenant else ROOT
            cards[key] = {service_type: cards[key].get(service_type, {})}
        else:
            continue
        holders[key] = Holder(key, name, parent, cards.get(key, {}), compute.get(key, {}))
    return Tree(
        holders=holders,
        hardware=hardware,
        ratios={
            ServiceType.INFERENCE.value: float(cluster.overcommit_inference),
            ServiceType.TRAINING.value: float(cluster.overcommit_training),
        },
    )


def _figures(cpu_milli: int | None, memory_mib: int | None) -> dict[str, int]:
    return {key: figure for key, figure in ((CPU, cpu_milli), (MEMORY, memory_mib)) if figure is not None}
