from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from django.db.models import QuerySet

from tidesched_web.clusters.models import Cluster
from tidesched_web.common.physical import is_part, share_of_board
from tidesched_web.console import bars
from tidesched_web.quota.models import Queue
from tidesched_web.scheduling.usage_selectors import OwnerUse, owner_use


@dataclass(frozen=True, slots=True)
class UseRow:
    """One card type of one service type in one cluster. ``limit``: the owner's own, in cards; None = no limit."""

    cluster: Cluster
    use: OwnerUse
    limit: int | None

    @property
    def base(self) -> int | None:
        return None if self.use.base == self.use.quota else self.use.base // 1000

    @property
    def bar(self) -> bars.UsageBar:
        return bars.queue_bar(self.use.service_type, self.use.quota, self.use.allocated, self.use.inqueue)


@dataclass(frozen=True, slots=True)
class UseTable:
    rows: list[UseRow]
    physical: tuple[int, int] | None


def use_table(
    queues: QuerySet[Queue], clusters: Mapping[int, Cluster], limits: Iterable[Mapping[str, object]]
) -> UseTable:
    own: dict[tuple[int, str], Mapping[str, int]] = {}
    for limit in limits:
        cluster, cards = limit["cluster"], limit["cards"]
        if isinstance(cluster, Cluster) and isinstance(cards, dict):
            own[cluster.pk, str(limit["service_type"])] = cards
    rows = []
    for use in owner_use(queues, clusters.values()):
        limited = own.get((use.cluster_id, use.service_type))
        rows.append(UseRow(clusters[use.cluster_id], use, None if limited is None else limited.get(use.card, 0)))
    ran = all(row.cluster.session_id is not None for row in rows)  # type: ignore[attr-defined]  # of `clusters_now`
    if not ran or not any(is_part(row.use.card) for row in rows):
        return UseTable(rows, None)
    shares = [(row.use, share_of_board(row.use.card)) for row in rows]
    quota = sum(use.quota * share for use, share in shares)
    return UseTable(rows, (round(quota), round(sum(use.allocated * share for use, share in shares))))
