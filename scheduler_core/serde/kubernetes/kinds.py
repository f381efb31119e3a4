"""The kinds that are read, and how their objects are called."""

from __future__ import annotations

# Which kinds are read, by API group; every version of a group is read alike.
GROUPS: dict[str, str] = {
    "Node": "",
    "Pod": "",
    "Namespace": "",
    "ResourceQuota": "",
    "PersistentVolumeClaim": "",
    "PersistentVolume": "",
    "StorageClass": "storage.k8s.io",
    "PriorityClass": "scheduling.k8s.io",
    "PodDisruptionBudget": "policy",
    "ReplicaSet": "apps",
    "Deployment": "apps",
    "Queue": "scheduling.volcano.sh",
    "PodGroup": "scheduling.volcano.sh",
    "Job": "batch.volcano.sh",
    "HyperNode": "topology.volcano.sh",
    "Numatopology": "nodeinfo.volcano.sh",
    "NodeMetrics": "metrics.k8s.io",
    "BatchProcess": "workspace.brainpp.cn",
    "TFJob": "kubeflow.org",
}
_CLUSTER_WIDE = frozenset(
    {
        "Node",
        "Namespace",
        "PersistentVolume",
        "StorageClass",
        "PriorityClass",
        "Queue",
        "HyperNode",
        "Numatopology",
        "NodeMetrics",
    }
)


def key_of(kind: str, namespace: str | None, name: str) -> str:
    """Name of an object of a cluster-wide kind, else namespace/name."""
    return name if kind in _CLUSTER_WIDE else f"{namespace or 'default'}/{name}"
