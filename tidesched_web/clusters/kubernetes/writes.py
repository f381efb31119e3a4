"""Each write is guarded (uid, field manager) and idempotent: asked again it finds its own work done."""

from collections.abc import Mapping, Sequence
from typing import Any

from tidesched_web.clusters.kubernetes import manifests
from tidesched_web.clusters.kubernetes.client import (
    APPLY_PATCH,
    FIELD_MANAGER,
    MERGE_PATCH,
    STRATEGIC_PATCH,
    ApiFailure,
    KubernetesClient,
    Unreachable,
)
from tidesched_web.clusters.kubernetes.installation_lease import InstallationLease
from tidesched_web.clusters.kubernetes.outcomes import Outcome, OutcomeKind, from_status
from tidesched_web.clusters.kubernetes.paths import COMMAND, EVENT, POD, POD_GROUP, PRIORITY_CLASS, QUEUE, Kind
from tidesched_web.clusters.kubernetes.refusals import Refusals, Write

Json = dict[str, Any]

_REPLACED = Outcome(OutcomeKind.GONE, "Replaced", "another pod has its name, or none")


class ClusterWrites:
    """Writes to one cluster in the name of one session (empty outside of sessions). Threads may share it."""

    def __init__(
        self,
        client: KubernetesClient,
        *,
        session: str = "",
        epoch: int | None = None,
        lease: InstallationLease | None = None,
        refusals: Refusals | None = None,
    ) -> None:
        """``lease``: nothing is written by who does not hold it. ``refusals``: what is noted there rests."""
        self._client, self._lease, self._refusals = client, lease, refusals
        self._session = session
        # A Kubernetes server passes over headers that it does not know; the simulated cluster logs them.
        self._headers = {"X-TideSched-Session": session, "X-TideSched-Epoch": "" if epoch is None else str(epoch)}

    # -- pods --------------------------------------------------------------------------------------------------

    def bind_pod(
        self,
        namespace: str,
        name: str,
        *,
        uid: str,
        node: str,
        card: str = "",
        card_indices: tuple[int, ...] = (),
        group: str = "",
    ) -> Outcome:
        """DONE too where it is bound there already. ``group``: the PodGroup of a pod that does not name its own."""
        body = manifests.binding(name, namespace, uid=uid, node=node, card=card, card_indices=card_indices, group=group)
        outcome = self._send("POST", POD.path(namespace, name, "binding"), body)
        if outcome.kind is not OutcomeKind.CONFLICT:
            return outcome
        found = self.get_pod(namespace, name)
        if found.body is None:
            return found if found.kind is OutcomeKind.GONE else outcome
        if found.body["metadata"]["uid"] != uid:
            return Outcome(OutcomeKind.GONE, outcome.reason, outcome.message)
        if found.body["spec"].get("nodeName") == node:
            return Outcome(OutcomeKind.DONE, "AlreadyBound", outcome.message, body=found.body)
        return outcome

    def evict_pod(self, namespace: str, name: str, *, uid: str, dry_run: bool = False) -> Outcome:
        """With another uid a server tries for ten seconds, longer than a session waits: so the pod is looked at."""
        if dry_run and self._replaced(namespace, name, uid):
            return _REPLACED
        query = {"dryRun": "All"} if dry_run else None
        body = manifests.eviction(name, namespace, uid=uid)
        outcome = self._send("POST", POD.path(namespace, name, "eviction"), body, query=query)
        if outcome.maybe_done and self._replaced(namespace, name, uid):
            return _REPLACED
        return outcome

    def _replaced(self, namespace: str, name: str, uid: str) -> bool:
        found = self.get_pod(namespace, name)
        if found.body is None:
            return found.kind is OutcomeKind.GONE
        return bool(found.body["metadata"]["uid"] != uid)

    def announce_disruption(self, namespace: str, name: str, *, uid: str, message: str, now: float) -> Outcome:
        """Before the eviction: who sees the pod end then knows that it did not fail."""
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "PreemptionByScheduler",
            "message": message[:1024],
            "lastTransitionTime": manifests.rfc3339(now),
        }
        return self._patch_pod_status(namespace, name, uid, {"conditions": [condition]})

    def nominate_node(self, namespace: str, name: str, *, uid: str, node: str) -> Outcome:
        return self._patch_pod_status(namespace, name, uid, {"nominatedNodeName": node or None})

    def say_waiting(self, namespace: str, name: str, *, uid: str, reason: str, message: str, now: float) -> Outcome:
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": reason,
            "message": message[:1024],
            "lastTransitionTime": manifests.rfc3339(now),
        }
        return self._patch_pod_status(namespace, name, uid, {"conditions": [condition]})

    def delete_pod(self, namespace: str, name: str, *, uid: str) -> Outcome:
        return self._send("DELETE", POD.path(namespace, name), manifests.delete_options(uid))

    def get_pod(self, namespace: str, name: str) -> Outcome:
        return self._send("GET", POD.path(namespace, name))

    # -- gangs -------------------------------------------------------------------------------------------------

    def patch_podgroup_status(
        self, namespace: str, name: str, *, uid: str, phase: str, conditions: Sequence[Mapping[str, str]] = ()
    ) -> Outcome:
        status: Json = {"phase": phase, "conditions": [dict(line) for line in conditions]}
        return self._patch_status(POD_GROUP, namespace, name, {"metadata": {"uid": uid}, "status": status})

    def patch_podgroup_counts(self, namespace: str, name: str, *, uid: str, counts: Mapping[str, int]) -> Outcome:
        patch = {"metadata": {"uid": uid}, "status": dict(counts)}
        return self._patch_status(POD_GROUP, namespace, name, patch)

    def apply_podgroup(self, manifest: Json) -> Outcome:
        """Not forced: a PodGroup that others keep (Volcano's controllers, a person) stays theirs."""
        return self._apply(POD_GROUP, manifest)

    def delete_podgroup(self, namespace: str, name: str, *, uid: str) -> Outcome:
        return self._send("DELETE", POD_GROUP.path(namespace, name), manifests.delete_options(uid))

    # -- queues and priority classes ---------------------------------------------------------------------------

    def apply_queue(self, manifest: Json, *, dry_run: bool = False, force: bool = False) -> Outcome:
        """A field that another manager has set otherwise is a CONFLICT, unless ``force`` takes it."""
        return self._apply(QUEUE, manifest, dry_run=dry_run, force=force)

    def apply_priority_class(self, manifest: Json, *, dry_run: bool = False, force: bool = False) -> Outcome:
        """As :meth:`apply_queue`; another value of a live class is REFUSED: it has to be replaced."""
        return self._apply(PRIORITY_CLASS, manifest, dry_run=dry_run, force=force)

    def remove_queue_fields(self, name: str, paths: Sequence[tuple[str, ...]], *, version: str) -> Outcome:
        patch: Json = {"metadata": {"resourceVersion": version}}
        for *above, last in paths:
            part = patch
            for key in above:
                part = part.setdefault(key, {})
            part[last] = None
        query = {"fieldManager": FIELD_MANAGER}
        return self._send("PATCH", QUEUE.path(name=name), patch, query=query, content_type=MERGE_PATCH)

    def patch_queue_status(self, name: str, status: Mapping[str, Any], *, version: int | str | None = None) -> Outcome:
        guard: Json = {} if version is None else {"metadata": {"resourceVersion": str(version)}}
        return self._patch_status(QUEUE, "", name, {**guard, "status": dict(status)})

    def close_queue(self, name: str, *, drained: bool, by_command: bool = True, version: str = "") -> Outcome:
        """``by_command``: Volcano is asked; a Command has no version, so the queue is looked at just before."""
        return self._command_or_state(name, "CloseQueue", "Closed" if drained else "Closing", by_command, version)

    def open_queue(self, name: str, *, by_command: bool = True, version: str = "") -> Outcome:
        return self._command_or_state(name, "OpenQueue", "Open", by_command, version)

    def delete_queue(self, name: str, *, uid: str, version: str = "") -> Outcome:
        """Delete the queue with ``uid``; the caller has seen, in ``version``, that it is closed and empty."""
        return self._send("DELETE", QUEUE.path(name=name), manifests.delete_options(uid, version))

    def get_queue(self, name: str) -> Outcome:
        return self._send("GET", QUEUE.path(name=name))

    def get_priority_class(self, name: str) -> Outcome:
        return self._send("GET", PRIORITY_CLASS.path(name=name))

    def delete_priority_class(self, name: str, *, uid: str) -> Outcome:
        return self._send("DELETE", PRIORITY_CLASS.path(name=name), manifests.delete_options(uid))

    # -- events ------------------------------------------------------------------------------------------------

    def write_event(
        self,
        *,
        kind: str,
        namespace: str,
        name: str,
        uid: str,
        type_: str,
        reason: str,
        message: str,
        now: float,
        first: float | None = None,
        count: int = 1,
    ) -> Outcome:
        """Write an Event about a Pod or PodGroup, or the next one of the same object and reason over it."""
        api_version = {"Pod": POD, "PodGroup": POD_GROUP}[kind].group_version
        body = manifests.event(
            kind=kind,
            api_version=api_version,
            namespace=namespace,
            name=name,
            uid=uid,
            type_=type_,
            reason=reason,
            message=message,
            first=now if first is None else first,
            now=now,
            count=count,
        )
        return self._apply(EVENT, body, force=True)

    # -- steps -------------------------------------------------------------------------------------------------

    def _apply(self, kind: Kind, manifest: Json, *, dry_run: bool = False, force: bool = False) -> Outcome:
        # The manifests are our own: to look for misspelt fields in them costs the server a tenth of its time.
        query = {"fieldManager": FIELD_MANAGER, "fieldValidation": "Ignore"}
        query |= ({"force": "true"} if force else {}) | ({"dryRun": "All"} if dry_run else {})
        metadata = manifest["metadata"]
        path = kind.path(metadata.get("namespace", ""), metadata["name"])
        return self._send("PATCH", path, manifest, query=query, content_type=APPLY_PATCH)

    def _patch_status(self, kind: Kind, namespace: str, name: str, patch: Json) -> Outcome:
        """By the status subresource where the kind has one, else with the object (Volcano's PodGroup has none)."""
        try:
            apart = self._client.serves(kind.group_version, f"{kind.plural}/status")
        except Unreachable as error:
            return Outcome(OutcomeKind.UNREACHABLE, "Unreachable", str(error), away=True)
        except ApiFailure as error:
            return from_status(error.code, error.body, retry_after=error.retry_after)
        path = kind.path(namespace, name, "status" if apart else "")
        query = {"fieldManager": FIELD_MANAGER}
        return self._send("PATCH", path, patch, query=query, content_type=MERGE_PATCH)

    def _patch_pod_status(self, namespace: str, name: str, uid: str, status: Json) -> Outcome:
        path, body = POD.path(namespace, name, "status"), {"metadata": {"uid": uid}, "status": status}
        query = {"fieldManager": FIELD_MANAGER}
        return self._send("PATCH", path, body, query=query, content_type=STRATEGIC_PATCH)

    def _command_or_state(self, name: str, action: str, state: str, by_command: bool, version: str) -> Outcome:
        served = self._client.serves(COMMAND.group_version, COMMAND.plural)
        if not (by_command and served):
            written = self.patch_queue_status(name, {"state": state}, version=version or None)
            # Volcano's webhook knows Open and Closed only: where it refuses the state, there are controllers to ask.
            if written.kind is not OutcomeKind.REFUSED or not served:
                return written
        found = self.get_queue(name)
        if found.body is None:
            return found
        if version and found.body["metadata"]["resourceVersion"] != version:
            return Outcome(OutcomeKind.CONFLICT, "Conflict", "the queue was written since it was read")
        owner = {
            "apiVersion": QUEUE.group_version,
            "kind": QUEUE.name,
            "name": name,
            "uid": found.body["metadata"]["uid"],
            "controller": True,
        }
        body = {
            "apiVersion": COMMAND.group_version,
            "kind": COMMAND.name,
            # One name: while Volcano has not taken a Command yet, asking again adds no second one.
            "metadata": {
                "name": f"tidesched-{action.lower()}-{name}",
                "namespace": "default",
                "ownerReferences": [owner],
            },
            "target": owner,
            "action": action,
        }
        outcome = self._send("POST", COMMAND.path("default"), body)
        if outcome.reason == "AlreadyExists":
            return Outcome(OutcomeKind.DONE, outcome.reason, outcome.message)
        return outcome

    def _send(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        query: Mapping[str, Any] | None = None,
        content_type: str = "application/json",
    ) -> Outcome:
        if method == "GET":
            return self._client.send(method, path, body, query=query, content_type=content_type, headers=self._headers)
        write = Write.of(method, path)
        if not (query and "dryRun" in query):
            if self._refusals is not None and (rests := self._refusals.resting(write)):
                return Outcome(OutcomeKind.REFUSED, "Resting", f"refused {rests.times} times: {rests.said}")
            if self._lease is not None and not self._lease.held(self._client):
                return Outcome(OutcomeKind.UNREACHABLE, "NotHeld", self._lease.why, away=True)
        sent = self._client.send(method, path, body, query=query, content_type=content_type, headers=self._headers)
        if self._refusals is not None:
            self._refusals.note(write, sent)
        return sent
