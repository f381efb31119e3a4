"""Cards that are promised and that no node has."""

from __future__ import annotations

from collections.abc import Collection

from django.db.models import Sum

from tidesched_web.clusters.models import CardType
from tidesched_web.quota.models import CardQuota


def cards_of_no_node(cluster_id: int, named_live: Collection[str] = ()) -> tuple[dict[str, int], dict[str, int]]:
    """Cards that were there and went, and cards that quotas name though no node ever had them; with what is promised.

    ``named_live``: cards that queues of the cluster itself name. Two queries.
    """
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
