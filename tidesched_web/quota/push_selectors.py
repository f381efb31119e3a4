import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection

from tidesched_web.clusters.connection_selectors import card_quota_enforced
from tidesched_web.clusters.models import CardType, Cluster, ClusterMode
from tidesched_web.common.permissions import Access


def limited_cards(cluster: Cluster) -> dict[str, str]:
    """A Volcano without the card plugin keeps only to capability; types that share a resource, to their sum."""
    if cluster.mode != ClusterMode.QUOTA or card_quota_enforced(cluster) is not False:
        return {}
    return dict(
        CardType.objects.filter(cluster=cluster).exclude(resource="").order_by("name").values_list("name", "resource")
    )


def limits_of(cards: Mapping[str, int], counted_by: Mapping[str, str]) -> dict[str, int]:
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


# After a refusal it is sent again without an edit: first so soon, then after twice as long each time.
FIRST_RETRY, LAST_RETRY = dt.timedelta(seconds=30), dt.timedelta(hours=1)

# The newest object that each cluster took, and the newest that it refused with the number of those; a refusal stands in
# its row by when it is sent again.
_NEWEST = """
(SELECT DISTINCT ON (cluster_id) cluster_id, TRUE, kind, name, pushed_at AS at, '', 0
 FROM quota_pushedobject WHERE cluster_id = ANY(%(clusters)s) ORDER BY cluster_id, pushed_at DESC, id DESC)
UNION ALL
(SELECT DISTINCT ON (cluster_id) cluster_id, FALSE, kind, name,
        retry_at - least(%(first)s * power(2, refusals - 1), %(last)s) AS at, sync_error,
        count(*) OVER (PARTITION BY cluster_id)
 FROM (SELECT 'Queue' AS kind, cluster_id, name, retry_at, refusals, sync_error FROM quota_queue
       WHERE refusals > 0 AND cluster_id = ANY(%(clusters)s)
       UNION ALL
       SELECT 'PriorityClass', cluster_id, name, retry_at, refusals, sync_error FROM quota_priorityclass
       WHERE refusals > 0 AND cluster_id = ANY(%(clusters)s)) AS refused
 ORDER BY cluster_id, at DESC NULLS LAST, name)
"""


@dataclass(frozen=True, slots=True)
class LastPush:
    """``at`` is None where the newest refusal has no time: the cluster did not answer since."""

    kind: str
    name: str
    at: dt.datetime | None
    taken: bool
    message: str
    refused: int

    @property
    def object(self) -> str:
        return f"{self.kind} {self.name}"


def last_pushes(access: Access, clusters: Sequence[Cluster]) -> dict[int, LastPush]:
    if not access.everything or not clusters:
        return {}
    values: dict[str, Any] = {"clusters": [one.pk for one in clusters], "first": FIRST_RETRY, "last": LAST_RETRY}
    with connection.cursor() as cursor:
        cursor.execute(_NEWEST, values)
        rows = cursor.fetchall()
    found: dict[int, list[tuple[Any, ...]]] = {}
    for row in rows:
        found.setdefault(row[0], []).append(row)
    return {pk: _newest(of) for pk, of in found.items()}


def _newest(rows: Sequence[tuple[Any, ...]]) -> LastPush:
    refused = max(row[6] for row in rows)
    dated = [row for row in rows if row[4] is not None]
    _cluster, taken, kind, name, at, message, _n = max(dated, key=lambda row: row[4]) if dated else rows[0]
    return LastPush(kind, name, at, taken, message, refused)
