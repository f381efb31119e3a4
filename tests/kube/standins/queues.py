"""Volcano's queue controller: a new queue opens, and Commands close and open it."""

from __future__ import annotations

from tests.kube.standins.picture import Picture, key_of
from tidesched_web.clusters.kubernetes.client import MERGE_PATCH, Json, KubernetesClient
from tidesched_web.clusters.kubernetes.paths import COMMAND, QUEUE

_GONE_PHASES = ("Completed",)


class Queues:
    """A closing queue is closed once no gang is left in it."""

    kind = "Queue"

    def __init__(self, client: KubernetesClient, picture: Picture) -> None:
        self._client, self._picture = client, picture

    def look(self, queue: Json) -> float | None:
        state = (queue.get("status") or {}).get("state", "")
        if not state:
            self.set_state(queue["metadata"]["name"], "Open")
        elif state == "Closing":
            if self._left(queue["metadata"]["name"]):
                return 0.5
            self.set_state(queue["metadata"]["name"], "Closed")
        return None

    def closing(self, name: str) -> str:
        return "Closing" if self._left(name) else "Closed"

    def set_state(self, name: str, state: str) -> None:
        patch = {"status": {"state": state}}
        self._client.send("PATCH", QUEUE.path(name=name, subresource="status"), patch, content_type=MERGE_PATCH)

    def _left(self, name: str) -> bool:
        return any(
            group["spec"].get("queue") == name and (group.get("status") or {}).get("phase") not in _GONE_PHASES
            for group in self._picture.all("PodGroup")
        )


class Commands:
    """Each Command is done once and taken away."""

    kind = "Command"

    def __init__(self, client: KubernetesClient, picture: Picture, queues: Queues) -> None:
        self._client, self._queues = client, queues

    def look(self, command: Json) -> float | None:
        outcome = self._client.send(
            "DELETE", COMMAND.path(*key_of(command)), {"preconditions": {"uid": command["metadata"]["uid"]}}
        )
        target = command.get("target") or {}
        if not outcome.done or target.get("kind") != "Queue":
            return None
        if command.get("action") == "CloseQueue":
            self._queues.set_state(target["name"], self._queues.closing(target["name"]))
        elif command.get("action") == "OpenQueue":
            self._queues.set_state(target["name"], "Open")
        return None
