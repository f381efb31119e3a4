"""An icon always stands beside the word, so no state is shown by its colour alone."""

from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from tidesched_web.changes.models import CarryState, ChangeState
from tidesched_web.clusters.models import ClusterMode
from tidesched_web.common.models import ServiceType
from tidesched_web.jobs.models import JobState
from tidesched_web.quota.models import DriftEnd, DriftState, QueueState, SyncState, TideAnswer
from tidesched_web.scheduling.models import (
    AlertSeverity,
    DecisionState,
    ReachState,
    ReclaimMaker,
    ReclaimState,
    SessionState,
)
from tidesched_web.workloads.models import GangEventKind, GangState


@dataclass(frozen=True, slots=True)
class Look:
    word: str | Promise
    icon: str
    tone: str


# How a gang looks that left the cluster while it waited; its state is that of any gang that is over.
LEFT_WAITING = "left"
# How a change looks that needs no approval, and has an hour; its state is that of an approved one.
SCHEDULED = "scheduled"

UNKNOWN = Look(_("Unknown"), "question-mark", "quiet")

_GANG = {
    GangState.WAITING: ("hourglass", "waiting"),
    GangState.ADMITTED: ("door-enter", "admitted"),
    GangState.RUNNING: ("player-play", "running"),
    GangState.RECLAIMED: ("arrow-back-up", "reclaimed"),
    GangState.FINISHED: ("circle-check", "quiet"),
    GangState.FAILED: ("circle-x", "failed"),
}
_QUEUE = {
    QueueState.OPEN: ("lock-open", "good"),
    QueueState.CLOSING: ("lock-pause", "waiting"),
    QueueState.CLOSED: ("lock", "quiet"),
    QueueState.UNKNOWN: ("question-mark", "quiet"),
}
_SYNC = {
    SyncState.PENDING: ("clock", "waiting"),
    SyncState.IN_STEP: ("check", "good"),
    SyncState.DRIFTED: ("arrows-split-2", "reclaimed"),
    SyncState.FAILED: ("circle-x", "failed"),
    SyncState.UNKNOWN: ("question-mark", "quiet"),
}
_SESSION = {
    SessionState.DECIDED: ("clock", "admitted"),
    SessionState.SENDING: ("send", "admitted"),
    SessionState.DONE: ("circle-check", "good"),
    SessionState.DRY_RUN: ("file-text", "quiet"),
    SessionState.STOPPED: ("player-stop", "waiting"),
    SessionState.FAILED: ("circle-x", "failed"),
}
_DECISION = {
    DecisionState.DECIDED: ("clock", "admitted"),
    DecisionState.SENDING: ("send", "admitted"),
    DecisionState.DONE: ("circle-check", "good"),
    DecisionState.FAILED: ("circle-x", "failed"),
    DecisionState.SUPERSEDED: ("history", "quiet"),
}
_RECLAIM = {
    ReclaimState.DECIDED: ("clock", "admitted"),
    ReclaimState.EVICTING: ("arrow-back-up", "reclaimed"),
    ReclaimState.PROMISED: ("hourglass", "waiting"),
    ReclaimState.DONE: ("circle-check", "good"),
    ReclaimState.PARTIAL: ("alert-triangle", "reclaimed"),
    ReclaimState.LEFT: ("arrow-back-up", "quiet"),
    ReclaimState.CANCELLED: ("x", "quiet"),
    ReclaimState.SEEN: ("eye", "quiet"),
}
_MAKER = {
    ReclaimMaker.TIDESCHED: ("ripple", "admitted"),
    ReclaimMaker.VOLCANO: ("activity", "waiting"),
    ReclaimMaker.SCHEDULER: ("calendar-time", "waiting"),
    ReclaimMaker.UNKNOWN: ("question-mark", "quiet"),
    ReclaimMaker.DRAWN: ("history", "quiet"),
}
_DRIFT = {
    DriftState.OPEN: ("arrows-split-2", "reclaimed"),
    DriftState.IGNORED: ("ban", "quiet"),
    DriftState.RESOLVED: ("circle-check", "good"),
}
_DRIFT_END = {
    DriftEnd.PUSHED: ("send", "good"),
    DriftEnd.ADOPTED: ("check", "good"),
    DriftEnd.REVERTED: ("arrow-back-up", "good"),
    DriftEnd.LEFT: ("logout", "quiet"),
}
_TIDE_ANSWER = {
    TideAnswer.TAKEN: ("check", "good"),
    TideAnswer.PENDING: ("clock", "waiting"),
    TideAnswer.REFUSED: ("circle-x", "failed"),
}
_REACH = {
    ReachState.CONNECTED: ("circle-check", "good"),
    ReachState.UNREACHABLE: ("circle-x", "failed"),
    ReachState.REFUSED: ("key", "failed"),
    ReachState.FORBIDDEN: ("lock", "waiting"),
    ReachState.KINDS_MISSING: ("box", "failed"),
    ReachState.FAILING: ("alert-triangle", "waiting"),
}
_ALERT_STATE: dict[str, Look] = {
    "open": Look(_("Unresolved"), "bell", "failed"),
    "acknowledged": Look(_("Acknowledged"), "user-check", "waiting"),
    "resolved": Look(_("Resolved"), "circle-check", "good"),
}
_ALERT = {
    AlertSeverity.INFO: ("info-circle", "admitted"),
    AlertSeverity.WARNING: ("alert-triangle", "waiting"),
    AlertSeverity.CRITICAL: ("alert-circle", "failed"),
}
_SERVICE = {ServiceType.INFERENCE: ("bolt", "inference"), ServiceType.TRAINING: ("barbell", "training")}
_STEP = {
    GangEventKind.SUBMITTED: ("box", "quiet"),
    GangEventKind.REASON: ("hourglass", "waiting"),
    GangEventKind.ADMITTED: ("door-enter", "admitted"),
    GangEventKind.PROMISED: ("calendar-time", "admitted"),
    GangEventKind.BOUND: ("link", "admitted"),
    GangEventKind.RUNNING: ("player-play", "running"),
    GangEventKind.RECLAIMED: ("arrow-back-up", "reclaimed"),
    GangEventKind.RESTARTED: ("refresh", "waiting"),
    GangEventKind.FINISHED: ("circle-check", "quiet"),
    GangEventKind.FAILED: ("circle-x", "failed"),
    GangEventKind.GONE: ("logout", "quiet"),
}
_MODE: dict[str, Look] = {
    ClusterMode.OBSERVE: Look(_("Observe"), "search", "quiet"),
    ClusterMode.QUOTA: Look(_("Quota"), "stack-2", "admitted"),
    ClusterMode.SCHEDULE: Look(_("Schedule"), "player-play", "good"),
}
_CHANGE = {
    ChangeState.DRAFT: ("edit", "quiet"),
    ChangeState.WAITING: ("user-check", "waiting"),
    ChangeState.APPROVED: ("calendar-time", "admitted"),
    ChangeState.APPLYING: ("send", "admitted"),
    ChangeState.APPLIED: ("circle-check", "good"),
    ChangeState.FAILED: ("circle-x", "failed"),
    ChangeState.REJECTED: ("ban", "failed"),
    ChangeState.CANCELLED: ("x", "quiet"),
    ChangeState.ROLLED_BACK: ("arrow-back-up", "reclaimed"),
}
_CARRY = {
    CarryState.QUEUED: ("clock", "waiting"),
    CarryState.APPLYING: ("send", "admitted"),
    CarryState.APPLIED: ("circle-check", "good"),
    CarryState.FAILED: ("circle-x", "failed"),
    CarryState.SKIPPED: ("minus", "quiet"),
}
_JOB = {
    JobState.QUEUED: ("clock", "waiting"),
    JobState.RUNNING: ("player-play", "admitted"),
    JobState.DONE: ("circle-check", "good"),
    JobState.FAILED: ("circle-x", "failed"),
    JobState.CANCELLED: ("x", "quiet"),
}
_CHAIN: dict[str, Look] = {
    "intact": Look(_("Intact"), "shield-check", "good"),
    "broken": Look(_("Broken"), "alert-circle", "failed"),
    "unknown": UNKNOWN,
}
_SEGMENT: dict[str, Look] = {
    "sealed": Look(_("Sealed"), "lock", "admitted"),
    "exported": Look(_("Exported"), "download", "good"),
    "dropped": Look(_("Dropped"), "trash", "quiet"),
}
_ADOPTION: dict[str, Look] = {
    "contested": Look(_("Set by others: not overwritten"), "alert-circle", "failed"),
    "written": Look(_("Written"), "edit", "waiting"),
    "stays": Look(_("Stays"), "lock", "good"),
    "same": Look(_("Same"), "minus", "quiet"),
}
_PLAN: dict[str, Look] = {"on": Look(_("On"), "player-play", "good"), "off": Look(_("Off"), "player-pause", "quiet")}
_DIFFERENCE: dict[str, Look] = {
    "added": Look(_("Added"), "circle-plus", "good"),
    "removed": Look(_("Removed"), "trash", "reclaimed"),
    "changed": Look(_("Changed"), "edit", "waiting"),
    "same": Look(_("Same"), "minus", "quiet"),
}
_FINDING: dict[str, Look] = {
    "good": Look(_("In order"), "circle-check", "good"),
    "note": Look(_("Good to know"), "info-circle", "quiet"),
    "warning": Look(_("Warning"), "alert-triangle", "waiting"),
    "failed": Look(_("Not in order"), "circle-x", "failed"),
    "running": Look(_("Under way"), "clock", "admitted"),
}
_PHASE: dict[str, Look] = {
    "Pending": Look(_("Pending"), "hourglass", "waiting"),
    "Running": Look(_("Running"), "player-play", "running"),
    "Succeeded": Look(_("Succeeded"), "circle-check", "quiet"),
    "Failed": Look(_("Failed"), "circle-x", "failed"),
}


def _looks(table: dict) -> dict[str, Look]:
    return {str(member.value): Look(member.label, icon, tone) for member, (icon, tone) in table.items()}


LOOKS: dict[str, dict[str, Look]] = {
    "gang": _looks(_GANG) | {LEFT_WAITING: Look(_("Left without running"), "logout", "quiet")},
    "queue": _looks(_QUEUE),
    "sync": _looks(_SYNC),
    "session": _looks(_SESSION),
    "decision": _looks(_DECISION),
    "reclaim": _looks(_RECLAIM),
    "alert": _looks(_ALERT),
    "alert_state": _ALERT_STATE,
    "maker": _looks(_MAKER),
    "drift": _looks(_DRIFT),
    "drift_end": _looks(_DRIFT_END),
    "tide_answer": _looks(_TIDE_ANSWER),
    "reach": _looks(_REACH),
    "service": _looks(_SERVICE),
    "step": _looks(_STEP),
    "change": _looks(_CHANGE)
    | {SCHEDULED: Look(pgettext_lazy("of a change", "Scheduled"), "calendar-time", "admitted")},
    "carry": _looks(_CARRY),
    "job": _looks(_JOB),
    "mode": _MODE,
    "finding": _FINDING,
    "pod": _PHASE,
    "chain": _CHAIN,
    "segment": _SEGMENT,
    "difference": _DIFFERENCE,
    "plan": _PLAN,
    "adoption": _ADOPTION,
}


def look(kind: str, value: str) -> Look:
    """Return how `value` of the vocabulary `kind` looks; an unknown value is said to be unknown, never hidden."""
    return LOOKS[kind].get(str(value), UNKNOWN)
