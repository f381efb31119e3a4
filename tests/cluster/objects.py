"""Objects that the contract tests create."""

from __future__ import annotations

from typing import Any

QUEUES = "/apis/scheduling.volcano.sh/v1beta1/queues"
CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
JOBS = "/apis/batch.volcano.sh/v1alpha1"
CARD = "NVIDIA-H200"

Json = dict[str, Any]


def node(name: str, cards: int = 8) -> Json:
    resources = {"cpu": "64", "memory": "512Gi", "pods": "110", "nvidia.com/gpu": str(cards)}
    return {
        "metadata": {"name": name, "labels": {"nvidia.com/gpu.product": CARD}},
        "status": {"capacity": resources, "allocatable": resources},
    }


def pod(name: str, *, labels: dict[str, str] | None = None) -> Json:
    container = {"name": "main", "image": "example/none", "resources": {"requests": {"cpu": "1"}}}
    return {
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {"schedulerName": "tidesched", "containers": [container]},
    }


def template(cards: int) -> Json:
    resources = {"cpu": "4", "memory": "16Gi", "nvidia.com/gpu": str(cards)}
    container = {"name": "main", "image": "example/none", "resources": {"requests": resources, "limits": resources}}
    return {"metadata": {"annotations": {"volcano.sh/card.name": CARD}}, "spec": {"containers": [container]}}


def job(name: str, *, pods: int, cards: int = 1, queue: str = "q", run_seconds: int | None = None) -> Json:
    annotations = {} if run_seconds is None else {"tidesched.io/run-seconds": str(run_seconds)}
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "annotations": annotations},
        "spec": {
            "schedulerName": "tidesched",
            "queue": queue,
            "minAvailable": pods,
            "policies": [{"event": "PodEvicted", "action": "RestartJob"}],
            "tasks": [{"name": "worker", "replicas": pods, "template": template(cards)}],
        },
    }


def deployment(name: str, *, replicas: int, cards: int = 1, queue: str = "q") -> Json:
    of_pod = template(cards)
    of_pod["metadata"]["annotations"]["scheduling.volcano.sh/queue-name"] = queue
    of_pod["metadata"]["labels"] = {"app": name}
    of_pod["spec"]["schedulerName"] = "tidesched"
    return {
        "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": of_pod},
    }
