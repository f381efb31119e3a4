"""Drift from the watches, in the process that holds the cluster; it goes on while no session can run."""

import threading
import time
from collections.abc import Mapping

from tidesched_web.clusters.kubernetes.client import Json
from tidesched_web.clusters.kubernetes.paths import PRIORITY_CLASS, QUEUE, Kind
from tidesched_web.clusters.models import Cluster, ClusterMode
from tidesched_web.quota.drift_fields import digest, live_part
from tidesched_web.quota.drift_selectors import Key
from tidesched_web.quota.models import DriftWhat
from tidesched_web.quota.services import drift
from tidesched_web.quota.services.drift import Live, Seen
from tidesched_web.scheduling.models import AlertSeverity
from tidesched_web.scheduling.pipeline import alerts

EVERY_SECONDS = 1.0
# Also without a change: the pages say when the cluster was compared last, and what the push wrote is looked at.
AT_LEAST_SECONDS = 5.0
ALERT_KEY = "drift"
REFUSED_KEY = "push_refused"
_KINDS = (QUEUE.name, PRIORITY_CLASS.name)


class DriftWatch:
    """What differs has to do so at two looks in a row: between a push and its echo it does for a moment."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._live: dict[Key, Live] = {}
        self._changed: set[Key] = set()
        self._doubted: dict[Key, str] = {}
        self._known: dict[Key, str] = {}
        self._looked_at = float("-inf")
        self._noted_at = float("-inf")
        self._first = True

    @property
    def compared(self) -> bool:
        """Whether all that is there was compared, and nothing waits for a second look."""
        return not (self._first or self._doubted)

    def seen(self, kind: Kind, type_: str, obj: Json) -> None:
        if kind.name not in _KINDS:
            return
        key = (kind.name, obj["metadata"]["name"])
        with self._lock:
            self._changed.add(key)
            if type_ == "DELETED":
                self._live.pop(key, None)
            else:
                part = live_part({"kind": kind.name, **obj})
                self._live[key] = Live(part, obj["metadata"].get("managedFields") or [])

    def look(self, cluster: Cluster) -> int:
        now = time.monotonic()
        with self._lock:
            changed = bool(self._changed or self._doubted)
        if now - self._looked_at < (EVERY_SECONDS if changed else AT_LEAST_SECONDS):
            return 0
        with self._lock:
            live, names = dict(self._live), self._changed
            self._changed = set()
        try:
            rows = self._compare(cluster, live, names)
        except Exception:
            with self._lock:
                self._changed |= names
            raise
        self._looked_at, self._first = now, False
        return rows

    def _compare(self, cluster: Cluster, live: Mapping[Key, Live], names: set[Key]) -> int:
        wanted = None if self._first else {*names, *self._doubted, *drift.unresolved(cluster)}
        rows = 0
        if wanted is None or wanted:
            seen = drift.compared(cluster, live, wanted)
            rows = drift.record(cluster=cluster, seen=self._sure(seen), live=live)
        if rows or names or time.monotonic() - self._noted_at >= AT_LEAST_SECONDS:
            drift.note_look(cluster=cluster, live=live)
            _alert(cluster)
            self._noted_at = time.monotonic()
        return rows

    def _sure(self, seen: Seen) -> Seen:
        marks = {key: f"{what} {digest(fields)}" for key, (what, fields) in seen.differs.items()}
        doubted = {
            key: mark for key, mark in marks.items() if self._doubted.get(key) != mark and self._known.get(key) != mark
        }
        self._known = {key: mark for key, mark in self._known.items() if key not in seen.looked_at}
        self._known |= {key: mark for key, mark in marks.items() if key not in doubted}
        self._doubted = doubted
        sure = {key: value for key, value in seen.differs.items() if key not in doubted}
        return Seen(sure, [key for key in seen.looked_at if key not in doubted], seen.intents, seen.pushed)


def _alert(cluster: Cluster) -> None:
    """One alert while anything differs, one while anything is refused. In mode observe nothing was sent."""
    rows = [] if cluster.mode == ClusterMode.OBSERVE else drift.open_rows(cluster)
    refused = [row for row in rows if row[0] == DriftWhat.REFUSED]
    count = len(rows) - len(refused)
    if count:
        alerts.raise_alert(
            cluster_id=cluster.pk,
            key=ALERT_KEY,
            severity=AlertSeverity.WARNING,
            code="drift",
            message=f"{count} objects of the cluster differ from what was sent.",
            numbers={"objects": count},
        )
    else:
        alerts.resolve(cluster_id=cluster.pk, key=ALERT_KEY)
    if refused:
        _what, kind, name, said = refused[0]
        alerts.raise_alert(
            cluster_id=cluster.pk,
            key=REFUSED_KEY,
            severity=AlertSeverity.WARNING,
            code="push_refused",
            message=f"{kind} {name}: {said}",
            numbers={"objects": len(refused), "object": f"{kind} {name}", "said": said},
        )
    else:
        alerts.resolve(cluster_id=cluster.pk, key=REFUSED_KEY)
