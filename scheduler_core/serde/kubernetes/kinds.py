"""The kinds that are read, and how their objects are called."""

# A kind that shares its name with another one of another group.
BATCH_JOB = "BatchJob"
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
    "StatefulSet": "apps",
    "DaemonSet": "apps",
    BATCH_JOB: "batch",
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
        "Node", "Namespace", "PersistentVolume", "StorageClass", "PriorityClass", "Queue", "HyperNode", "Numatopology",
        "NodeMetrics",
    }
)  # fmt: skip


def kind_in(group: str, kind: str) -> str | None:
    """How a kind of an API group is called here; None where it is not read."""
    known = BATCH_JOB if kind == "Job" and group == "batch" else kind
    return known if GROUPS.get(known) == group else None


def key_of(kind: str, namespace: str | None, name: str) -> str:
    """Name of an object of a cluster-wide kind, else namespace/name."""
    return name if kind in _CLUSTER_WIDE else f"{namespace or 'default'}/{name}"
