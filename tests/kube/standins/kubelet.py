"""A kubelet for all nodes: bound pods run, end, and leave with their grace."""

from __future__ import annotations

import datetime as dt
import time

from tests.kube.standins.picture import Picture, key_of
from tidesched_web.clusters.kubernetes.client import MERGE_PATCH, Json, KubernetesClient
from tidesched_web.clusters.kubernetes.manifests import rfc3339
from tidesched_web.clusters.kubernetes.paths import POD

RUN_SECONDS = "tidesched.io/run-seconds"
_ENDED = ("Succeeded", "Failed")


class Kubelet:
    """``start``, ``grace``: seconds from the binding to Running, and at most from the eviction to the end."""

    kind = "Pod"

    def __init__(self, client: KubernetesClient, picture: Picture, *, start: float, grace: float) -> None:
        self._client, self._start, self._grace = client, start, grace
        self._bound: dict[str, float] = {}

    def look(self, pod: Json) -> float | None:
        metadata, phase = pod["metadata"], pod["status"].get("phase", "Pending")
        if not pod["spec"].get("nodeName"):
            return None
        if metadata.get("deletionTimestamp"):
            return self._let_go(pod)
        if phase == "Pending":
            since = time.monotonic() - self._bound.setdefault(metadata["uid"], time.monotonic())
            if since < self._start:
                return self._start - since
            self._say(pod, "Running")
            self._bound.pop(metadata["uid"], None)
            return None
        seconds = (metadata.get("annotations") or {}).get(RUN_SECONDS)
        if phase == "Running" and seconds is not None:
            left = _seconds_since(pod["status"].get("startTime"))
            if left < float(seconds):
                return float(seconds) - left
            self._say(pod, "Succeeded")
        return None

    def _let_go(self, pod: Json) -> float | None:
        """A pod is gone only when its kubelet says so."""
        metadata = pod["metadata"]
        allowed = min(self._grace, float(metadata.get("deletionGracePeriodSeconds") or 0))
        # The timestamp says when the grace ends; it began that much earlier.
        began = -_seconds_since(metadata["deletionTimestamp"]) - float(metadata.get("deletionGracePeriodSeconds") or 0)
        if -began < allowed and pod["status"].get("phase") not in _ENDED:
            return allowed + began
        self._bound.pop(metadata["uid"], None)
        options = {"gracePeriodSeconds": 0, "preconditions": {"uid": metadata["uid"]}}
        outcome = self._client.send("DELETE", POD.path(*key_of(pod)), options)
        return None if outcome.done or outcome.reason in ("NotFound", "Replaced") else 0.5

    def _say(self, pod: Json, phase: str) -> None:
        ready = "True" if phase == "Running" else "False"
        now = rfc3339(time.time())
        condition = {"type": "Ready", "status": ready, "lastTransitionTime": now, "lastProbeTime": None}
        # The whole list, as a merge patch wants it: others' conditions (DisruptionTarget) stay.
        others = [line for line in pod["status"].get("conditions") or () if line["type"] != "Ready"]
        status = {"phase": phase, "conditions": [*others, condition]}
        if phase == "Running":
            status["startTime"] = now
        patch = {"metadata": {"uid": pod["metadata"]["uid"]}, "status": status}
        self._client.send("PATCH", POD.path(*key_of(pod), "status"), patch, content_type=MERGE_PATCH)


def _seconds_since(moment: str | None) -> float:
    if not moment:
        return 0.0
    return time.time() - dt.datetime.fromisoformat(moment).timestamp()
