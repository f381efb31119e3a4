from dataclasses import dataclass

READ_VERBS = ("get", "list", "watch")
WRITE_VERBS = ("create", "delete", "patch", "update")


@dataclass(frozen=True)
class ResourceType:
    """With ``status`` among ``subresources`` writes to the main resource leave ``status`` alone."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool
    subresources: tuple[str, ...] = ()
    short_names: tuple[str, ...] = ()

    @property
    def group_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def qualified(self) -> str:
        """``queues.scheduling.volcano.sh``, ``pods``: the name in messages and in the tables."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def has_status(self) -> bool:
        return "status" in self.subresources


NODES = ResourceType("", "v1", "nodes", "Node", False, ("status",), ("no",))
NAMESPACES = ResourceType("", "v1", "namespaces", "Namespace", False, ("status",), ("ns",))
PODS = ResourceType("", "v1", "pods", "Pod", True, ("status", "binding", "eviction"), ("po",))
EVENTS = ResourceType("", "v1", "events", "Event", True, (), ("ev",))
REPLICA_SETS = ResourceType("apps", "v1", "replicasets", "ReplicaSet", True, ("status",), ("rs",))
DEPLOYMENTS = ResourceType("apps", "v1", "deployments", "Deployment", True, ("status",), ("deploy",))
STATEFUL_SETS = ResourceType("apps", "v1", "statefulsets", "StatefulSet", True, ("status",), ("sts",))
PRIORITY_CLASSES = ResourceType("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", False, (), ("pc",))
QUEUES = ResourceType("scheduling.volcano.sh", "v1beta1", "queues", "Queue", False, ("status",), ("q",))
# Volcano's CRD gives a PodGroup no status subresource: its status is written with the object itself.
POD_GROUPS = ResourceType("scheduling.volcano.sh", "v1beta1", "podgroups", "PodGroup", True, (), ("pg",))
JOBS = ResourceType("batch.volcano.sh", "v1alpha1", "jobs", "Job", True, ("status",), ("vcjob",))
LEASES = ResourceType("coordination.k8s.io", "v1", "leases", "Lease", True)
DISRUPTION_BUDGETS = ResourceType(
    "policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", True, ("status",), ("pdb",)
)
VOLUME_CLAIMS = ResourceType("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", True, ("status",), ("pvc",))
VOLUMES = ResourceType("", "v1", "persistentvolumes", "PersistentVolume", False, ("status",), ("pv",))
STORAGE_CLASSES = ResourceType("storage.k8s.io", "v1", "storageclasses", "StorageClass", False, (), ("sc",))

RESOURCE_TYPES: tuple[ResourceType, ...] = (
    NODES,
    NAMESPACES,
    PODS,
    EVENTS,
    REPLICA_SETS,
    DEPLOYMENTS,
    STATEFUL_SETS,
    PRIORITY_CLASSES,
    QUEUES,
    POD_GROUPS,
    JOBS,
    LEASES,
    DISRUPTION_BUDGETS,
    VOLUME_CLAIMS,
    VOLUMES,
    STORAGE_CLASSES,
)
BY_PATH = {(t.group, t.version, t.plural): t for t in RESOURCE_TYPES}
BY_KIND = {t.kind: t for t in RESOURCE_TYPES}
