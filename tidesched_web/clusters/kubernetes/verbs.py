"""The one table of RBAC, documentation and connection test: a request in no line here is refused by a real cluster."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

MODES = ("observe", "quota", "schedule")
_ALL, _PUSHES, _SCHEDULE = frozenset(MODES), frozenset({"quota", "schedule"}), frozenset({"schedule"})
_READ, _READ_ONE_TOO = ("list", "watch"), ("get", "list", "watch")

LEASE_NAMESPACE, LEASE_NAME = "kube-system", "tidesched-scheduler"
VOLCANO_NAMESPACE, VOLCANO_CONFIG_MAP = "volcano-system", "volcano-scheduler-configmap"
VOLCANO_CONF = (VOLCANO_NAMESPACE, VOLCANO_CONFIG_MAP)


@dataclass(frozen=True)
class Need:
    """``create`` cannot be limited by ``names``: a line of its own. ``optional``: a cluster may lack the kind."""

    group: str
    resource: str
    verbs: tuple[str, ...]
    modes: frozenset[str]
    why: str
    namespace: str = ""
    names: tuple[str, ...] = ()
    optional: bool = False


NEEDS: tuple[Need, ...] = (
    Need("", "nodes", _READ_ONE_TOO, _ALL, "hardware: cards, labels, taints"),
    Need("", "namespaces", _READ_ONE_TOO, _ALL, "which queue a namespace belongs to"),
    Need("", "pods", _READ_ONE_TOO, _ALL, "who uses which cards"),
    Need("", "events", _READ, _ALL, "who evicted a pod, where others do"),
    Need("apps", "replicasets", _READ, _ALL, "the kind of a pod's owner"),
    Need("apps", "deployments", _READ, _ALL, "the kind of a pod's owner"),
    Need("apps", "statefulsets", _READ, _ALL, "what owners say of their gangs"),
    Need("apps", "daemonsets", _READ, _ALL, "what owners say of their gangs"),
    Need("batch", "jobs", _READ, _ALL, "what owners say of their gangs"),
    Need("policy", "poddisruptionbudgets", _READ, _ALL, "which pods may leave"),
    Need("", "persistentvolumeclaims", _READ, _ALL, "on which nodes a pod finds its volumes"),
    Need("", "persistentvolumes", _READ, _ALL, "on which nodes a pod finds its volumes"),
    Need("storage.k8s.io", "storageclasses", _READ, _ALL, "on which nodes a pod finds its volumes"),
    Need("scheduling.k8s.io", "priorityclasses", _READ_ONE_TOO, _ALL, "the order of pods"),
    Need("scheduling.volcano.sh", "queues", _READ_ONE_TOO, _ALL, "quotas as they are in the cluster"),
    Need("scheduling.volcano.sh", "podgroups", _READ_ONE_TOO, _ALL, "gangs"),
    Need("batch.volcano.sh", "jobs", _READ, _ALL, "what becomes of a gang that loses a pod", optional=True),
    Need(
        "",
        "configmaps",
        ("get",),
        _ALL,
        "the policy of Volcano's scheduler, and whether it knows card quotas",
        namespace=VOLCANO_NAMESPACE,
        names=(VOLCANO_CONFIG_MAP,),
    ),
    Need("scheduling.volcano.sh", "queues", ("create", "patch", "delete"), _PUSHES, "push quotas"),
    Need("scheduling.volcano.sh", "queues/status", ("patch",), _PUSHES, "close and open queues, count their gangs"),
    Need("scheduling.k8s.io", "priorityclasses", ("create", "patch", "delete"), _PUSHES, "push priority classes"),
    Need(
        "bus.volcano.sh", "commands", ("create",), _PUSHES, "ask Volcano's controllers to close a queue", optional=True
    ),
    Need("coordination.k8s.io", "leases", ("create",), _PUSHES, "keep a second installation out", LEASE_NAMESPACE),
    Need(
        "coordination.k8s.io",
        "leases",
        ("get", "update"),
        _PUSHES,
        "keep a second installation out",
        LEASE_NAMESPACE,
        (LEASE_NAME,),
    ),
    Need("", "pods/binding", ("create",), _SCHEDULE, "bind"),
    Need("", "pods/eviction", ("create",), _SCHEDULE, "evict under disruption budgets"),
    Need("", "pods", ("delete",), _SCHEDULE, "take back the bound members of a gang that cannot be completed"),
    Need("", "pods/status", ("patch",), _SCHEDULE, "nominated node and conditions"),
    Need("", "events", ("create", "patch"), _SCHEDULE, "say why a pod waits"),
    Need("scheduling.volcano.sh", "podgroups", ("create", "patch", "delete"), _SCHEDULE, "make and keep PodGroups"),
    Need(
        "scheduling.volcano.sh",
        "podgroups/status",
        ("patch",),
        _SCHEDULE,
        "phases of gangs, where PodGroup has a status of its own",
        optional=True,
    ),
)


@dataclass(frozen=True)
class Verb:
    need: Need
    verb: str

    @property
    def attributes(self) -> dict[str, str]:
        resource, _slash, subresource = self.need.resource.partition("/")
        asked = {"group": self.need.group, "resource": resource, "subresource": subresource, "verb": self.verb}
        asked |= {"namespace": self.need.namespace, "name": self.need.names[0] if self.need.names else ""}
        return {key: value for key, value in asked.items() if value or key == "group"}


def needs_of(mode: str, conf: tuple[str, str] = VOLCANO_CONF) -> list[Need]:
    return [_placed(need, conf) for need in NEEDS if mode in need.modes]


def _placed(need: Need, conf: tuple[str, str]) -> Need:
    if need.resource != "configmaps" or conf == VOLCANO_CONF:
        return need
    return replace(need, namespace=conf[0], names=(conf[1],))


def verbs_of(mode: str, conf: tuple[str, str] = VOLCANO_CONF) -> Iterator[Verb]:
    for need in needs_of(mode, conf):
        for verb in need.verbs:
            yield Verb(need, verb)
