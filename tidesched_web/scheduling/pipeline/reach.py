import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, field

from django.db import transaction
from django.utils import timezone

from tidesched_web.clusters.kubernetes.cache import Trouble
from tidesched_web.clusters.kubernetes.paths import POD_GROUP, QUEUE
from tidesched_web.common import live
from tidesched_web.scheduling.models import AlertSeverity, ClusterReach, ReachState
from tidesched_web.scheduling.pipeline import alerts

# A watch that breaks and comes back at once is nothing that a person should hear of.
PATIENCE_SECONDS = 4.0
PREFIX = "reach:"
_NEEDED = (QUEUE.name, POD_GROUP.name)
_SEVERITY = {ReachState.FORBIDDEN: AlertSeverity.WARNING, ReachState.FAILING: AlertSeverity.WARNING}


@dataclass(frozen=True)
class Reach:
    state: ReachState
    detail: str = ""
    kinds: list[str] = field(default_factory=list)
    seconds: float = 0.0


CONNECTED = Reach(ReachState.CONNECTED)


def reach_of(troubles: Sequence[Trouble]) -> Reach:
    lasting = [one for one in troubles if one.error and one.seconds >= PATIENCE_SECONDS]
    for state, codes in ((ReachState.UNREACHABLE, (0,)), (ReachState.REFUSED, (401,)), (ReachState.FORBIDDEN, (403,))):
        found = [one for one in lasting if one.code in codes]
        if found:
            return _reach(state, found)
    if lasting:
        return _reach(ReachState.FAILING, lasting)
    absent = [one for one in troubles if one.absent and one.kind in _NEEDED]
    if absent:
        return Reach(ReachState.KINDS_MISSING, "", [one.kind for one in absent])
    return CONNECTED


def _reach(state: ReachState, found: Sequence[Trouble]) -> Reach:
    longest = max(found, key=lambda one: one.seconds)
    return Reach(state, longest.error[:500], [one.kind for one in found], longest.seconds)


class ReachWatch:
    def __init__(self, cluster_id: int) -> None:
        self._cluster_id = cluster_id
        self._known: tuple[ReachState, list[str]] | None = None

    def look(self, troubles: Sequence[Trouble]) -> Reach:
        return self.note(reach_of(troubles))

    def note(self, now: Reach) -> Reach:
        if self._known != (now.state, now.kinds):
            _write(self._cluster_id, now)
            self._known = (now.state, now.kinds)
        return now


@transaction.atomic
def _write(cluster_id: int, reach: Reach) -> None:
    before = ClusterReach.objects.select_for_update().filter(cluster_id=cluster_id).first()
    since = timezone.now() - dt.timedelta(seconds=reach.seconds)
    if before is not None and before.state == reach.state:
        since = before.since  # a restart of the worker does not begin it anew
    ClusterReach.objects.update_or_create(
        cluster_id=cluster_id,
        defaults={"state": reach.state, "since": since, "detail": reach.detail, "kinds": reach.kinds},
    )
    wanted = {}
    if reach.state is not ReachState.CONNECTED:
        wanted[f"{PREFIX}{reach.state}"] = {
            "severity": _SEVERITY.get(reach.state, AlertSeverity.CRITICAL),
            "code": f"cluster_{reach.state}",
            "message": f"{', '.join(reach.kinds)}: {reach.detail or reach.state.label}",
            "numbers": {"kinds": ", ".join(reach.kinds)},
        }
    alerts.keep_open(cluster_id=cluster_id, prefix=PREFIX, wanted=wanted)
    about = live.About("cluster", str(cluster_id), str(reach.state))
    transaction.on_commit(lambda: live.publish("clusters", cluster_id, cluster_id=cluster_id, about=about), robust=True)
