"""A level: queues that were pushed with other limits than they would be pushed with now are pushed again."""

import time

from tidesched_web.clusters.models import Cluster
from tidesched_web.quota.drift_fields import CARDS, fields_of
from tidesched_web.quota.drift_selectors import QUEUE
from tidesched_web.quota.models import PushedObject, Queue, SyncState
from tidesched_web.quota.push_selectors import limited_cards, limits_of

_CAPABILITY = "spec.capability."
_OWN = frozenset({"cpu", "memory"})
# While nothing is known otherwise, the queues themselves are looked at no more often than this.
LOOK_SECONDS = 60.0
_looked: dict[int, tuple[dict[str, str], float]] = {}


def push_limits_anew(cluster: Cluster) -> None:
    """Let queues that stand in step but were pushed with other card limits be pushed again."""
    counted_by, now = limited_cards(cluster), time.monotonic()
    known = _looked.get(cluster.pk)
    if known is not None and known[0] == counted_by and now - known[1] < LOOK_SECONDS:
        return
    pushed = PushedObject.objects.filter(cluster=cluster, kind="Queue").values_list("name", "fields")
    names = [name for name, fields in pushed.iterator() if _limited(fields) != _wanted(fields, counted_by)]
    if names:
        rows = Queue.objects.filter(cluster=cluster, name__in=names, sync_state=SyncState.IN_STEP)
        rows.update(sync_state=SyncState.PENDING)
    _looked[cluster.pk] = (counted_by, now)


def _limited(fields: dict[str, str]) -> dict[str, str]:
    found = {name.removeprefix(_CAPABILITY): value for name, value in fields.items() if name.startswith(_CAPABILITY)}
    return {name: value for name, value in found.items() if name not in _OWN}


def _wanted(fields: dict[str, str], counted_by: dict[str, str]) -> dict[str, str]:
    cards = {name.removeprefix(CARDS): int(float(value)) for name, value in fields.items() if name.startswith(CARDS)}
    return _limited(fields_of({"kind": QUEUE, "spec": {"capability": limits_of(cards, counted_by)}}))
