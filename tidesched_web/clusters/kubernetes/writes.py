"""The writes of a scheduling session and of the quota push.

Each is guarded (uid, field manager) and idempotent: asked again after an unknown end, it finds its own work done.
Answers are :class:`~tidesched_web.clusters.kubernetes.outcomes.Outcome` values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tidesched_web.clusters.kubernetes import manifests
from tidesched_web.clusters.kubernetes.client import APPLY_PATCH, FIELD_MANAGER, MERGE_PATCH, KubernetesClient
from tidesched_web.clusters.kubernetes.outcomes import Outcome, OutcomeKind
from tidesched_web.clusters.kubernetes.paths import (
    COMMAND,
    EVENT,
    POD,
    POD_GROUP,
    PRIORITY_CLASS,
    QUEUE,
    Kind,
)

PARALLEL_WRITES = 8

Json = dict[str, Any]


class ClusterWrites:
    """Writes to one cluster in the name of one session (empty outside of sessions). Threads may share it."""

    def __init__(self, client: KubernetesClient, *, session: str = "", epoch: int | None = None) -> None:
        self._client = client
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
    ) -> Outcome:
        """Bind the pod with ``uid`` to ``node``; DONE too where it is bound there already."""
        body = manifests.binding(name, namespace, uid=uid, node=node, card=card, card_indices=card_indices)
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
        """Ask the pod with ``uid`` to leave, under its disruption budgets; GONE where it left already."""
        query = {"dryRun": "All"} if dry_run else None
        body = manifests.eviction(name, namespace, uid=uid)
        return self._send("POST", POD.path(namespace, name, "eviction"), body, query=query)

    def delete_pod(self, namespace: str, name: str, *, uid: str) -> Outcome:
        """Delete the pod with ``uid`` with its grace; no disruption budget is asked."""
        return self._send("DELETE", POD.path(namespace, name), manifests.delete_options(uid))

    def get_pod(self, namespace: str, name: str) -> Outcome:
        """The pod as the server has it now, past any cache; ``body`` is None unless DONE."""
        return self._send("GET", POD.path(namespace, name))

    # -- gangs -------------------------------------------------------------------------------------------------

    def get_pod_group(self, namespace: str, name: str) -> Outcome:
        """The PodGroup as the server has it now, past any cache."""
        return self._send("GET", POD_GROUP.path(namespace, name))

    def patch_podgroup_status(
        self,
        namespace: str,
        name: str,
        *,
        uid: str,
        phase: str,
        conditions: Sequence[Mapping[str, str]] = (),
        counts: Mapping[str, int] | None = None,
    ) -> Outcome:
        """Write phase and conditions (the whole list) of the PodGroup with ``uid``."""
        status: Json = {"phase": phase, "conditions": [dict(line) for line in conditions], **(counts or {})}
        return self._patch_status(POD_GROUP, namespace, name, {"metadata": {"uid": uid}, "status": status})

    def create_podgroup(self, manifest: Json) -> Outcome:
        """Make a PodGroup for pods that came without one; DONE too where it is there."""
        namespace = manifest["metadata"]["namespace"]
        outcome = self._send("POST", POD_GROUP.path(namespace), manifest, query={"fieldManager": FIELD_MANAGER})
        if outcome.reason == "AlreadyExists":
            return Outcome(OutcomeKind.DONE, outcome.reason, outcome.message)
        return outcome

    # -- queues and priority classes ---------------------------------------------------------------------------

    def apply_queue(self, manifest: Json, *, dry_run: bool = False) -> Outcome:
        """Server-side apply: the fields of ``manifest`` become TideSched's, all others are left alone."""
        return self._apply(QUEUE, manifest, dry_run=dry_run)

    def apply_priority_class(self, manifest: Json, *, dry_run: bool = False) -> Outcome:
        """As :meth:`apply_queue`; another value of a live class is REFUSED: it has to be replaced."""
        return self._apply(PRIORITY_CLASS, manifest, dry_run=dry_run)

    def patch_queue_status(self, name: str, status: Mapping[str, Any]) -> Outcome:
        """Merge ``status`` into the queue's (state, allocated, counts of gangs)."""
        return self._patch_status(QUEUE, "", name, {"status": dict(status)})

    def close_queue(self, name: str, *, drained: bool) -> Outcome:
        """Let a queue take nobody in any more.

        Where Volcano's controllers run they are asked by a Command; elsewhere the state is written: ``Closing``, and
        ``Closed`` once it is ``drained``.
        """
        return self._command_or_state(name, "CloseQueue", "Closed" if drained else "Closing")

    def open_queue(self, name: str) -> Outcome:
        """Let a closed queue take gangs in again."""
        return self._command_or_state(name, "OpenQueue", "Open")

    def delete_queue(self, name: str, *, uid: str) -> Outcome:
        """Delete the queue with ``uid``; the caller has seen that it is closed and empty."""
        return self._send("DELETE", QUEUE.path(name=name), manifests.delete_options(uid))

    def get_queue(self, name: str) -> Outcome:
        """The queue as the server has it now."""
        return self._send("GET", QUEUE.path(name=name))

    def get_priority_class(self, name: str) -> Outcome:
        """The class as the server has it now."""
        return self._send("GET", PRIORITY_CLASS.path(name=name))

    def delete_priority_class(self, name: str, *, uid: str) -> Outcome:
        """Delete the class with ``uid``, the first half of replacing it; live pods keep their value."""
        return self._send("DELETE", PRIORITY_CLASS.path(name=name), manifests.delete_options(uid))

    # -- events ------------------------------------------------------------------------------------------------

    def create_event(
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
    ) -> Outcome:
        """Write an Event about a Pod or PodGroup."""
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
            now=now,
            instance=self._session or "tidesched",
        )
        return self._send("POST", EVENT.path(namespace), body)

    # -- steps -------------------------------------------------------------------------------------------------

    def _apply(self, kind: Kind, manifest: Json, *, dry_run: bool) -> Outcome:
        query = {"fieldManager": FIELD_MANAGER, "force": "true"} | ({"dryRun": "All"} if dry_run else {})
        path = kind.path(name=manifest["metadata"]["name"])
        return self._send("PATCH", path, manifest, query=query, content_type=APPLY_PATCH)

    def _patch_status(self, kind: Kind, namespace: str, name: str, patch: Json) -> Outcome:
        """By the status subresource where the kind has one, else with the object (Volcano's PodGroup has none)."""
        subresource = "status" if self._client.serves(kind.group_version, f"{kind.plural}/status") else ""
        path = kind.path(namespace, name, subresource)
        query = {"fieldManager": FIELD_MANAGER}
        return self._send("PATCH", path, patch, query=query, content_type=MERGE_PATCH)

    def _command_or_state(self, name: str, action: str, state: str) -> Outcome:
        if not self._client.serves(COMMAND.group_version, COMMAND.plural):
            return self.patch_queue_status(name, {"state": state})
        found = self.get_queue(name)
        if found.body is None:
            return found
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
            "metadata": {"generateName": f"{name}-", "namespace": "default", "ownerReferences": [owner]},
            "target": owner,
            "action": action,
        }
        return self._send("POST", COMMAND.path("default"), body)

    def _send(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        query: Mapping[str, Any] | None = None,
        content_type: str = "application/json",
    ) -> Outcome:
        return self._client.send(method, path, body, query=query, content_type=content_type, headers=self._headers)


def run_all(calls: Iterable[Callable[[], Outcome]], *, parallel: int = PARALLEL_WRITES) -> list[Outcome]:
    """Make the calls, at most ``parallel`` at a time; the outcomes in the order of the calls."""
    with ThreadPoolExecutor(max_workers=parallel, thread_name_prefix="write") as pool:
        return list(pool.map(lambda call: call(), calls))
