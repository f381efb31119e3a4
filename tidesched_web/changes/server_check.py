"""What the cluster says to the objects of a plan before any of it is applied: a dry run of each by the API server.

Its webhooks and validation answer as they would to the push. Nothing is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final

from tidesched_web.clusters.kubernetes.client import KubernetesClient
from tidesched_web.clusters.kubernetes.connection import BadConnection
from tidesched_web.clusters.kubernetes.outcomes import Outcome, OutcomeKind
from tidesched_web.clusters.kubernetes.paths import QUEUE
from tidesched_web.clusters.kubernetes.pressure import run_all
from tidesched_web.clusters.kubernetes.writes import ClusterWrites
from tidesched_web.clusters.models import Cluster, ClusterMode

MOST: Final = 50

Row = dict[str, Any]


def server_check(cluster: Cluster, objects: Iterable[Mapping[str, Any]]) -> Row:
    """``refused``: the objects that the cluster would refuse, with its words; ``checked`` of ``objects`` were asked.

    Not asked: what is deleted or made anew, a queue whose parent is in the plan too (the answer would be about the
    parent as it is now), and all beyond the first fifty. ``unavailable``: why the cluster could not be asked.
    """
    rows = list(objects)
    found: Row = {"checked": 0, "objects": len(rows), "refused": [], "unavailable": ""}
    if cluster.mode == ClusterMode.OBSERVE or cluster.disconnected_at is not None or not rows:
        return found
    names = {row["name"] for row in rows if row["kind"] == QUEUE.name}
    asked = [row for row in rows if _can_be_asked(row, names)][:MOST]
    try:
        client = KubernetesClient.for_cluster(cluster)
    except BadConnection as error:
        return found | {"unavailable": str(error)}
    try:
        writes = ClusterWrites(client)
        outcomes = run_all([_dry_run(writes, row) for row in asked])
    finally:
        client.close()
    for row, outcome in zip(asked, outcomes, strict=True):
        if outcome.kind is OutcomeKind.UNREACHABLE:
            found["unavailable"] = found["unavailable"] or outcome.message or outcome.reason
            continue
        found["checked"] += 1
        if outcome.kind is OutcomeKind.REFUSED:
            found["refused"].append({"kind": row["kind"], "name": row["name"], "detail": outcome.message})
    return found


def _can_be_asked(row: Mapping[str, Any], changing: set[str]) -> bool:
    after = row["after"]
    return bool(after) and not row.get("replaced") and (after.get("spec") or {}).get("parent") not in changing


def _dry_run(writes: ClusterWrites, row: Mapping[str, Any]) -> Callable[[], Outcome]:
    manifest = {part: value for part, value in row["after"].items() if part != "status"}
    apply = writes.apply_queue if row["kind"] == QUEUE.name else writes.apply_priority_class
    return partial(apply, manifest, dry_run=True, force=True)
