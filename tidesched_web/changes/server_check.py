import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from django.utils.translation import gettext as _

from tidesched_web.clusters.credentials import UNUSABLE, connection_of
from tidesched_web.clusters.kubernetes.client import KubernetesClient
from tidesched_web.clusters.kubernetes.connection import Connection
from tidesched_web.clusters.kubernetes.outcomes import Outcome, OutcomeKind
from tidesched_web.clusters.kubernetes.paths import QUEUE
from tidesched_web.clusters.kubernetes.pressure import run_all
from tidesched_web.clusters.kubernetes.writes import ClusterWrites
from tidesched_web.clusters.models import Cluster, ClusterMode
from tidesched_web.quota.drift_selectors import changed_by_hand

MOST: Final = 50
# After so long no further object is asked about; an answer that is under way is waited for (the client's limit).
SECONDS: Final = 8.0
_SLOW: Final = "TooSlow"

Row = dict[str, Any]


def server_check(cluster: Cluster, objects: Iterable[Mapping[str, Any]]) -> Row:
    """Not asked: what is deleted or made anew, and a queue whose parent is in the plan too."""
    rows = list(objects)
    found: Row = {"checked": 0, "objects": len(rows), "refused": [], "unavailable": ""}
    if cluster.mode == ClusterMode.OBSERVE or cluster.disconnected_at is not None:
        return found
    names = {row["name"] for row in rows if row["kind"] == QUEUE.name}
    asked = [row for row in rows if _can_be_asked(row, names)][:MOST]
    if not asked:
        return found
    try:
        outcomes = _ask(connection_of(cluster), asked)
    except UNUSABLE as error:
        return found | {"unavailable": str(error)}
    by_hand = changed_by_hand(cluster)
    for row, outcome in zip(asked, outcomes, strict=True):
        if outcome.kind is OutcomeKind.UNREACHABLE:
            found["unavailable"] = found["unavailable"] or _slow(outcome) or outcome.message or outcome.reason
            continue
        found["checked"] += 1
        if outcome.kind is OutcomeKind.REFUSED:
            found["refused"].append({"kind": row["kind"], "name": row["name"], "detail": outcome.message})
        elif (row["kind"], row["name"]) in by_hand:
            text = _("It was changed by hand and is not overwritten: decide on its drift first.")
            found["refused"].append({"kind": row["kind"], "name": row["name"], "detail": text})
    return found


def _slow(outcome: Outcome) -> str:
    if outcome.reason != _SLOW:
        return ""
    return _("The cluster answers slowly: after %(seconds)g seconds it was asked about no further object.") % {
        "seconds": SECONDS
    }


def _can_be_asked(row: Mapping[str, Any], changing: set[str]) -> bool:
    after = row["after"]
    return bool(after) and not row.get("replaced") and (after.get("spec") or {}).get("parent") not in changing


def _ask(connection: Connection, rows: Sequence[Mapping[str, Any]]) -> list[Outcome]:
    client, until = KubernetesClient(connection), time.monotonic() + SECONDS
    try:
        writes = ClusterWrites(client)
        return run_all([_in_time(_dry_run(writes, row), until) for row in rows], patience=SECONDS)
    finally:
        client.close()


def _in_time(call: Callable[[], Outcome], until: float) -> Callable[[], Outcome]:
    def make() -> Outcome:
        return call() if time.monotonic() < until else Outcome(OutcomeKind.UNREACHABLE, _SLOW, away=True)

    return make


def _dry_run(writes: ClusterWrites, row: Mapping[str, Any]) -> Callable[[], Outcome]:
    manifest = {part: value for part, value in row["after"].items() if part != "status"}
    apply = writes.apply_queue if row["kind"] == QUEUE.name else writes.apply_priority_class
    return partial(apply, manifest, dry_run=True, force=True)
