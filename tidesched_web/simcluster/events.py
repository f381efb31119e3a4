"""Events are kept by number, oldest out: a cluster that runs faster than the wall has no use for an hour's TTL."""

from __future__ import annotations

from tidesched_web.simcluster.resources import EVENTS
from tidesched_web.simcluster.store import Store

KEPT_EVENTS = 2_000


def trim_events(store: Store, keep: int = KEPT_EVENTS) -> None:
    """Delete the oldest events beyond ``keep``; inside a transaction."""
    rows = store.connection.execute(
        "SELECT namespace, name FROM objects WHERE resource = ? ORDER BY version DESC LIMIT -1 OFFSET ?",
        (EVENTS.qualified, keep),
    ).fetchall()
    for namespace, name in rows:
        store.remove(EVENTS, namespace, name)
