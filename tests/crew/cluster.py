"""The cluster behind the product, past the product: the crew's operator works in it, and it is the outside witness."""

from __future__ import annotations

import copy
import json
import threading
import time
from contextlib import suppress
from typing import Any
from urllib.error import HTTPError, URLError

from tests.browser.demo import Demo

QUEUES = "/apis/scheduling.volcano.sh/v1beta1/queues"
CARD = "NVIDIA-B300"
# Of one node alone: what a job borrows and a service takes back.
LENT_CARD = "NVIDIA-B200"
NAMESPACE = "crew"
CARDS_OF_NODE = 8


class Cluster:
    """Asks the simulated cluster itself. Asking goes on while the crew keeps the cluster stopped."""

    def __init__(self, demo: Demo) -> None:
        self._demo = demo
        self._writes: list[dict[str, Any]] = []
        self.ended: set[str] = set()
        self._lock = threading.Lock()

    def ask(self, method: str, path: str, body: dict[str, object] | None = None) -> dict[str, Any]:
        """One request, again where the cluster does not answer.

        Raises:
            HTTPError: the cluster refuses it.
        """
        until = time.monotonic() + 150
        while True:
            try:
                return self._demo.ask(method, path, body)
            except HTTPError as error:
                if error.code < 500 or time.monotonic() > until:
                    raise
            except (URLError, OSError, json.JSONDecodeError):
                if time.monotonic() > until:
                    raise
            time.sleep(1)

    def quota(self, queue: str) -> dict[str, int] | None:
        """The card quota of a Queue object; None where there is none."""
        try:
            annotations = self.ask("GET", f"{QUEUES}/{queue}")["metadata"].get("annotations", {})
        except HTTPError:
            return None
        return {card: int(count) for card, count in json.loads(annotations.get("volcano.sh/card.quota", "{}")).items()}

    def add_nodes(self, count: int, card: str = CARD) -> None:
        """Nodes with a card type of the crew's own, made after one that is there."""
        sample = next(
            one for one in self.ask("GET", "/api/v1/nodes")["items"] if one["metadata"]["name"].startswith("h200-")
        )
        old = sample["metadata"]["labels"]["nvidia.com/gpu.product"]
        for number in range(count):
            node = copy.deepcopy(sample)
            name = f"crew-{number:02d}" if card == CARD else f"crew-{card.lower()}-{number:02d}"
            node["metadata"] = {
                "name": name,
                "labels": {
                    key: (name if key == "kubernetes.io/hostname" else value.replace(old, card))
                    for key, value in node["metadata"]["labels"].items()
                },
                "annotations": {
                    key: value.replace(old, card) for key, value in node["metadata"].get("annotations", {}).items()
                },
            }
            with suppress(HTTPError):  # it is there already
                self.ask("POST", "/api/v1/nodes", node)

    def add_namespace(self, name: str) -> None:
        """A namespace, where it is not there yet."""
        with suppress(HTTPError):
            self.ask(
                "POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            )

    def submit(self, name: str, queue: str, *, pods: int, card: str = CARD, service: bool = False) -> None:
        """A Job whose gang needs one card for each of its pods; ``service``: it answers users, and is of inference."""
        amounts = {"cpu": "2", "memory": "8Gi", "nvidia.com/gpu": "1"}
        pod = {
            "metadata": {"annotations": {"volcano.sh/card.name": card}},
            "spec": {
                "restartPolicy": "Never",
                "containers": [{"name": "w", "image": "x", "resources": {"requests": amounts, "limits": amounts}}],
            },
        }
        job: dict[str, object] = {
            "apiVersion": "batch.volcano.sh/v1alpha1",
            "kind": "Job",
            "metadata": {
                "name": name,
                "namespace": NAMESPACE,
                "annotations": {
                    "tidesched.io/run-seconds": "9000000",
                    "volcano.sh/service.type": "inference" if service else "training",
                },
            },
            "spec": {
                "schedulerName": "tidesched",
                "queue": queue,
                "minAvailable": pods,
                "priorityClassName": "pc-high" if service else "pc-low",
                "tasks": [{"name": "worker", "replicas": pods, "template": pod}],
            },
        }
        self.ask("POST", f"/apis/batch.volcano.sh/v1alpha1/namespaces/{NAMESPACE}/jobs", job)

    def end(self, name: str) -> None:
        """Delete a Job of the crew; its pods go."""
        self.ended.add(name)
        with suppress(HTTPError):
            self.ask("DELETE", f"/apis/batch.volcano.sh/v1alpha1/namespaces/{NAMESPACE}/jobs/{name}")

    def pods_placed(self, name: str) -> int:
        """How many pods of a Job of the crew have a node."""
        return sum(bool(one["spec"].get("nodeName")) for one in self.pods_of(NAMESPACE, name))

    def pods_of(self, namespace: str, name: str) -> list[dict[str, Any]]:
        """The pods of a Job, by their names."""
        pods = self.ask("GET", f"/api/v1/namespaces/{namespace}/pods")["items"]
        return [one for one in pods if one["metadata"]["name"].startswith(f"{name}-")]

    def has_gang(self, gang: str) -> bool:
        """Whether its PodGroup is there: a gang that is not admitted has no pods."""
        namespace, _slash, name = gang.partition("/")
        groups = self.ask("GET", f"/apis/scheduling.volcano.sh/v1beta1/namespaces/{namespace}/podgroups")["items"]
        names = [one["metadata"]["name"] for one in groups]
        return any(one == name or one.startswith(f"{name}-") for one in names)

    def figure_written(self, queue: str, value: int, since: float) -> list[float]:
        """When a Queue object was written with this quota of the crew's card since a moment, by the cluster's own log.

        Writes of its status say nothing of the quota.
        """
        return [
            row["wall"]
            for row in self.writes()
            if row["kind"] == "Queue"
            and row["key"] == queue
            and row["wall"] >= since
            and row["code"] < 300
            and not row["dry_run"]
            and row["verb"] in ("create", "update", "patch", "apply")
            and not row["resource"].endswith("/status")
            and int(json.loads(row["detail"] or "{}").get(CARD, 0)) == value
        ]

    def writes(self) -> list[dict[str, Any]]:
        """All that was written to the cluster so far, from its own log."""
        with self._lock:
            while True:
                after = self._writes[-1]["seq"] if self._writes else 0
                part = self.ask("GET", f"/tidesched/writes?after={after}&limit=1000")["writes"]
                self._writes += part
                if len(part) < 1000:
                    return list(self._writes)
