"""Cards that are written to a cluster's own scheduler in its own words."""

from __future__ import annotations

from collections.abc import Mapping

from tidesched_web.clusters.connection_selectors import card_quota_enforced
from tidesched_web.clusters.models import CardType, Cluster, ClusterMode


def limited_cards(cluster: Cluster) -> dict[str, str]:
    """Card types and the resources that count them, where ``spec.capability`` has to stand in for the card quota.

    A Volcano without the card plugin passes over card quotas, but keeps to capability. Of a card that has its resource
    to itself that says the same; of H200 and H800 under one ``nvidia.com/gpu`` it limits the sum of both.
    """
    if cluster.mode != ClusterMode.QUOTA or card_quota_enforced(cluster) is not False:
        return {}
    return dict(
        CardType.objects.filter(cluster=cluster).exclude(resource="").order_by("name").values_list("name", "resource")
    )


def limits_of(cards: Mapping[str, int], counted_by: Mapping[str, str]) -> dict[str, int]:
    """What a queue with this card quota may use of each resource that has to be limited; an absent card is none."""
    limits = dict.fromkeys(counted_by.values(), 0)
    for card, resource in counted_by.items():
        limits[resource] += cards.get(card, 0)
    return limits


def cards_of_resources(cluster: Cluster) -> dict[str, list[str]]:
    rows = CardType.objects.filter(cluster=cluster).exclude(resource="").order_by("name")
    found: dict[str, list[str]] = {}
    for name, resource in rows.values_list("name", "resource"):
        found.setdefault(resource, []).append(name)
    return found
