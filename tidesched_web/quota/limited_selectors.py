"""Cards that a cluster's own scheduler has to be told of in its own words."""

from __future__ import annotations

from collections import Counter

from tidesched_web.clusters.connection_selectors import card_quota_enforced
from tidesched_web.clusters.models import CardType, Cluster, ClusterMode


def limited_cards(cluster: Cluster) -> dict[str, str]:
    """Card types and the resources that count them, where ``spec.capability`` has to stand in for the card quota.

    A Volcano without the card plugin passes over card quotas, but keeps to capability. That says the same only of a
    card that has its resource to itself: of H200 and H800 under one ``nvidia.com/gpu`` it could only limit the sum.
    """
    if cluster.mode != ClusterMode.QUOTA or card_quota_enforced(cluster) is not False:
        return {}
    resources = dict(CardType.objects.filter(cluster=cluster).exclude(resource="").values_list("name", "resource"))
    alone = Counter(resources.values())
    return {name: resource for name, resource in sorted(resources.items()) if alone[resource] == 1}
