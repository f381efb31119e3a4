import datetime as dt
from dataclasses import dataclass
from typing import Any

from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from tidesched_web.clusters.models import Cluster
from tidesched_web.common.sentences import listed
from tidesched_web.scheduling.models import ReachState

# Without a session for so long, and without a holder of the cluster, no worker runs.
NOBODY_SECONDS = 60.0

_ON = _(
    "Sessions wait and nothing is sent; nothing is lost or done twice. It is tried again every few seconds, "
    "and all goes on by itself once it answers."
)
_REPLACE = _(
    "Sessions wait and nothing is sent. A platform admin replaces the credential; all goes on by itself within seconds."
)
_WORDS: dict[str, tuple[str | Promise, str | Promise]] = {
    ReachState.UNREACHABLE: (_("The API server does not answer."), _ON),
    ReachState.REFUSED: (_("The API server refuses the credential."), _REPLACE),
    ReachState.FORBIDDEN: (
        _("The credential lacks a right to read."),
        _("What cannot be read is missing from what sessions decide on. Grant the right as in the RBAC of the mode."),
    ),
    ReachState.KINDS_MISSING: (
        _("The API server does not know Volcano's kinds."),
        _("In mode schedule sessions wait until they are there again; they are looked for every few seconds."),
    ),
    ReachState.FAILING: (_("The API server answers with errors."), _ON),
}


@dataclass(frozen=True, slots=True)
class ReachWords:
    title: str | Promise
    text: str | Promise
    tone: str
    icon: str
    since: dt.datetime | None
    detail: str


def reach_words(cluster: Cluster, *, everything: bool) -> ReachWords | None:
    reach: Any = getattr(cluster, "reach", None)
    if reach is not None and reach.state in _WORDS:
        title, text = _WORDS[reach.state]
        severe = reach.state in (ReachState.UNREACHABLE, ReachState.REFUSED, ReachState.KINDS_MISSING)
        detail = (reach.detail or listed(reach.kinds)) if everything else ""
        return ReachWords(
            title, text, "failed" if severe else "waiting", "alert-circle" if severe else "alert-triangle",
            reach.since, detail,
        )  # fmt: skip
    return _nobody(cluster)


def _nobody(cluster: Cluster) -> ReachWords | None:
    held_until: dt.datetime | None = getattr(cluster, "lease_until", None)
    last: dt.datetime | None = getattr(cluster, "session_at", None)
    now = timezone.now()
    if last is None or held_until is None or held_until > now:
        return None
    if (now - last).total_seconds() < max(NOBODY_SECONDS, 10 * cluster.session_period_seconds):
        return None
    return ReachWords(
        _("No worker runs the sessions of this cluster."),
        _("What you see is as old as its last session. Another worker takes over within seconds of its start."),
        "waiting",
        "clock",
        last,
        "",
    )
