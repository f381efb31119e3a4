"""Forced is only what a person asked to push again, and a field that TideSched owns beside another manager; all else
that another manager has set otherwise is a conflict. An object is written, opened and closed only at the version
that was read: where another write came between, both are read again (``OVERTAKEN``). Two pushes may have the same
object at once, so what it should be is asked of the database after the object was read.
"""

from dataclasses import dataclass, replace
from typing import Any

from tidesched_web.clusters.kubernetes.installation_lease import installation_id
from tidesched_web.clusters.kubernetes.manifests import INSTALLATION
from tidesched_web.clusters.kubernetes.outcomes import Outcome, OutcomeKind
from tidesched_web.clusters.kubernetes.ownership import standing
from tidesched_web.clusters.kubernetes.paths import PRIORITY_CLASS
from tidesched_web.clusters.kubernetes.writes import ClusterWrites, Json
from tidesched_web.quota.models import QueueState

# Why nothing was written: the object is not of the version that was read any more (a status counts too).
OVERTAKEN = "Overtaken"
_COUNTS = ("pending", "inqueue", "running", "unknown")


@dataclass(frozen=True)
class Aim:
    """``by_command``: Volcano opens and closes queues. ``inhabited``: the sessions see gangs in it."""

    manifest: Json
    forced: bool = False
    wants_open: bool | None = None
    by_command: bool = False
    inhabited: bool = False


def bring(writes: ClusterWrites, aim: Aim, live: Json | None) -> Outcome:
    """Bring ``live`` (None = nothing there) to ``aim``; reason ``Unchanged``: nothing was sent."""
    applied = _apply(writes, aim, live)
    return _with_state(writes, aim, applied) if aim.wants_open is not None else applied


def _apply(writes: ClusterWrites, aim: Aim, live: Json | None) -> Outcome:
    is_class = aim.manifest["kind"] == PRIORITY_CLASS.name
    apply = writes.apply_priority_class if is_class else writes.apply_queue
    name = str(aim.manifest["metadata"]["name"])
    manifest = aim.manifest if is_class else _kept_by(aim.manifest, installation_id())
    keeper = str(((live or {}).get("metadata", {}).get("annotations") or {}).get(INSTALLATION, installation_id()))
    same = not is_class and standing(_kept_by(aim.manifest, keeper), live).same
    if keeper != installation_id() and not (is_class or aim.forced or same):
        return Outcome(OutcomeKind.CONFLICT, "Conflict", f"Not overwritten: installation {keeper} keeps this queue")
    stands = standing(manifest, live)
    if stands.same:
        return Outcome(OutcomeKind.DONE, "Unchanged", body=live)
    if stands.emptied and live is not None and not stands.contested:
        cleared = writes.remove_queue_fields(name, stands.emptied, version=live["metadata"]["resourceVersion"])
        if cleared.done:
            live = cleared.body
            stands = standing(manifest, live)
    if aim.forced and is_class and live is not None and live.get("value") != aim.manifest["value"]:
        # Kubernetes edits no value: the class is made anew; pods keep what they have.
        writes.delete_priority_class(name, uid=live["metadata"]["uid"])
        live = None
    if stands.contested and not aim.forced:
        return Outcome(OutcomeKind.CONFLICT, "Conflict", stands.message)
    return _overtaken(apply(_at_version(manifest, live), force=aim.forced or stands.shared))


def _kept_by(manifest: Json, keeper: str) -> Json:
    metadata = manifest["metadata"]
    return {**manifest, "metadata": {**metadata, "annotations": {**metadata["annotations"], INSTALLATION: keeper}}}


def _overtaken(outcome: Outcome) -> Outcome:
    return replace(outcome, reason=OVERTAKEN) if outcome.kind is OutcomeKind.CONFLICT else outcome


def _at_version(manifest: Json, live: Json | None) -> Json:
    """Only if nothing has been written since it was read; what is not there yet has no version to name."""
    if live is None:
        return manifest
    version = live["metadata"]["resourceVersion"]
    return {**manifest, "metadata": {**manifest["metadata"], "resourceVersion": version}}


def _with_state(writes: ClusterWrites, aim: Aim, applied: Outcome) -> Outcome:
    """Close or open the applied queue where its state is another than it should be; a closed one drains first."""
    if not applied.done:
        return applied
    name, body = str(aim.manifest["metadata"]["name"]), applied.body or {}
    version = body["metadata"]["resourceVersion"]
    status: dict[str, Any] = body.get("status") or {}
    live = status.get("state") or QueueState.OPEN
    closed = live in (QueueState.CLOSING, QueueState.CLOSED)
    drained = not aim.inhabited and not any(status.get(count) for count in _COUNTS)
    if aim.wants_open and closed:
        outcome = writes.open_queue(name, by_command=aim.by_command, version=version)
        state = QueueState.OPEN
    elif not aim.wants_open and (not closed or (live == QueueState.CLOSING and drained and not aim.by_command)):
        outcome = writes.close_queue(name, drained=drained, by_command=aim.by_command, version=version)
        state = QueueState.CLOSED if drained and not aim.by_command else QueueState.CLOSING
    else:
        return applied
    if not outcome.done:
        return _overtaken(outcome)
    return replace(applied, reason="", body={**body, "status": {**status, "state": state}})
