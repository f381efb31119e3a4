from dataclasses import dataclass


@dataclass(frozen=True)
class Kind:
    """``called``: its name where another group has one of the kind. ``spare``: sessions go on without it."""

    name: str
    group_version: str
    plural: str
    namespaced: bool
    called: str = ""
    spare: bool = False

    @property
    def id(self) -> str:
        return self.called or self.name

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        parts = ["/apis" if "/" in self.group_version else "/api", self.group_version]
        if self.namespaced and namespace:
            parts += ["namespaces", namespace]
        parts.append(self.plural)
        parts += [part for part in (name, subresource) if part]
        return "/".join(parts)


NODE = Kind("Node", "v1", "nodes", False)
NAMESPACE = Kind("Namespace", "v1", "namespaces", False)
POD = Kind("Pod", "v1", "pods", True)
EVENT = Kind("Event", "v1", "events", True)
REPLICA_SET = Kind("ReplicaSet", "apps/v1", "replicasets", True)
DEPLOYMENT = Kind("Deployment", "apps/v1", "deployments", True)
STATEFUL_SET = Kind("StatefulSet", "apps/v1", "statefulsets", True, spare=True)
DAEMON_SET = Kind("DaemonSet", "apps/v1", "daemonsets", True, spare=True)
BATCH_JOB = Kind("Job", "batch/v1", "jobs", True, called="BatchJob", spare=True)
PRIORITY_CLASS = Kind("PriorityClass", "scheduling.k8s.io/v1", "priorityclasses", False)
QUEUE = Kind("Queue", "scheduling.volcano.sh/v1beta1", "queues", False)
POD_GROUP = Kind("PodGroup", "scheduling.volcano.sh/v1beta1", "podgroups", True)
JOB = Kind("Job", "batch.volcano.sh/v1alpha1", "jobs", True)
LEASE = Kind("Lease", "coordination.k8s.io/v1", "leases", True)
DISRUPTION_BUDGET = Kind("PodDisruptionBudget", "policy/v1", "poddisruptionbudgets", True)
VOLUME_CLAIM = Kind("PersistentVolumeClaim", "v1", "persistentvolumeclaims", True, spare=True)
VOLUME = Kind("PersistentVolume", "v1", "persistentvolumes", False, spare=True)
STORAGE_CLASS = Kind("StorageClass", "storage.k8s.io/v1", "storageclasses", False, spare=True)
COMMAND = Kind("Command", "bus.volcano.sh/v1alpha1", "commands", True)

# What a session's snapshot is built from.
WATCHED: tuple[Kind, ...] = (
    NODE,
    NAMESPACE,
    PRIORITY_CLASS,
    QUEUE,
    POD_GROUP,
    POD,
    JOB,
    REPLICA_SET,
    DEPLOYMENT,
    STATEFUL_SET,
    DAEMON_SET,
    BATCH_JOB,
    DISRUPTION_BUDGET,
    VOLUME_CLAIM,
    VOLUME,
    STORAGE_CLASS,
)
