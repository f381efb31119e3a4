"""kube-controller-manager's disruption controller: how many pods a PodDisruptionBudget lets go now."""

from __future__ import annotations

import math
import time

from tests.kube.standins.picture import Picture, key_of
from tidesched_web.clusters.kubernetes.client import MERGE_PATCH, Json, KubernetesClient
from tidesched_web.clusters.kubernetes.manifests import rfc3339
from tidesched_web.clusters.kubernetes.paths import DISRUPTION_BUDGET

_LOOK_SECONDS = 1.0


class Budgets:
    """Labels are compared by ``matchLabels`` only."""

    kind = "PodDisruptionBudget"

    def __init__(self, client: KubernetesClient, picture: Picture) -> None:
        self._client, self._picture = client, picture

    def look(self, budget: Json) -> float | None:
        pods = [
            pod
            for pod in self._picture.all("Pod", budget["metadata"]["namespace"])
            if _chosen(pod, budget) and pod["status"].get("phase") not in ("Succeeded", "Failed")
        ]
        before = budget.get("status") or {}
        there = {pod["metadata"]["name"]: pod for pod in pods}
        # The API server notes who it let go; such a pod counts as gone before its deletion shows.
        noted = {
            name: since
            for name, since in (before.get("disruptedPods") or {}).items()
            if name in there and not there[name]["metadata"].get("deletionTimestamp")
        }
        healthy = sum(_healthy(pod) and pod["metadata"]["name"] not in noted for pod in pods)
        wanted = _wanted(budget["spec"], len(pods))
        allowed = max(0, healthy - wanted)
        status = {
            "observedGeneration": budget["metadata"].get("generation", 1),
            "currentHealthy": healthy,
            "desiredHealthy": wanted,
            "expectedPods": len(pods),
            "disruptionsAllowed": allowed,
        }
        if any(before.get(name) != value for name, value in status.items()) or noted != before.get("disruptedPods", {}):
            self._write(budget, status, noted)
        return _LOOK_SECONDS

    def _write(self, budget: Json, status: Json, noted: Json) -> None:
        condition = {
            "type": "DisruptionAllowed",
            "status": "True" if status["disruptionsAllowed"] else "False",
            "reason": "SufficientPods" if status["disruptionsAllowed"] else "InsufficientPods",
            "message": "",
            "lastTransitionTime": rfc3339(time.time()),
        }
        gone = dict.fromkeys((budget.get("status") or {}).get("disruptedPods") or {})
        patch = {
            "metadata": {"resourceVersion": budget["metadata"]["resourceVersion"]},
            "status": {**status, "conditions": [condition], "disruptedPods": {**gone, **noted}},
        }
        path = DISRUPTION_BUDGET.path(*key_of(budget), "status")
        self._client.send("PATCH", path, patch, content_type=MERGE_PATCH)


def _chosen(pod: Json, budget: Json) -> bool:
    labels = pod["metadata"].get("labels") or {}
    wanted = (budget["spec"].get("selector") or {}).get("matchLabels") or {}
    return all(labels.get(key) == value for key, value in wanted.items())


def _healthy(pod: Json) -> bool:
    ready = any(line["type"] == "Ready" and line["status"] == "True" for line in pod["status"].get("conditions") or ())
    return ready and not pod["metadata"].get("deletionTimestamp")


def _wanted(spec: Json, count: int) -> int:
    if spec.get("maxUnavailable") is not None:
        return count - _figure(spec["maxUnavailable"], count)
    return _figure(spec.get("minAvailable", 0), count)


def _figure(value: int | str, count: int) -> int:
    """A number or a share, which Kubernetes rounds up in both fields."""
    if isinstance(value, int):
        return value
    return math.ceil(count * int(value.rstrip("%")) / 100)
