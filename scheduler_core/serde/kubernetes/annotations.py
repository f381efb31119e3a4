"""Keys of annotations and labels that are read."""

GROUP_NAME = "scheduling.k8s.io/group-name"
GROUP_NAME_VOLCANO = "scheduling.volcano.sh/group-name"
POD_GROUP_LABEL = "pod-group.scheduling.sigs.k8s.io/name"
# The group of another scheduler (plugin coscheduling of kube-scheduler).
COSCHEDULING_LABEL = "scheduling.x-k8s.io/pod-group"
MIN_AVAILABLE_LABEL = "pod-group.scheduling.sigs.k8s.io/min-available"
GROUP_MIN_MEMBER = "scheduling.volcano.sh/group-min-member"
QUEUE_NAME = "scheduling.volcano.sh/queue-name"

FLOWING_PREFIX = "volcano.sh/"
PREEMPTABLE = "volcano.sh/preemptable"
SERVICE_TYPE = "volcano.sh/service.type"
CARD_REQUEST = "volcano.sh/card.request"
CARD_QUOTA = "volcano.sh/card.quota"
CARD_NAME = "volcano.sh/card.name"
COOLDOWN = "volcano.sh/cooldown-time"
TASK_PRIORITY = "volcano.sh/task-priority"
TASK_SPEC = "volcano.sh/task-spec"
TOPOLOGY_MODE = "volcano.sh/network-topology-mode"
TOPOLOGY_TIER = "volcano.sh/network-topology-highest-tier"
NUMA_POLICY = "volcano.sh/numa-topology-policy"
# What a pod says of itself as a member; it says nothing about the gang.
OF_THE_POD = frozenset(
    f"volcano.sh/{key}"
    for key in (
        "card.name", "task-priority", "task-spec", "task-index", "job-name", "job-namespace", "job-version",
        "job-retry-count", "queue-name", "template-uid", "partition-id",
    )
)  # fmt: skip

# On a PodGroup that TideSched made: the workload that it was made for.
MADE_FOR = "tidesched.io/made-for"
OWN_SERVICE_TYPE = "tidesched.io/service-type"
NAMESPACES = "tidesched.io/namespaces"
SUBMITTED_AT = "tidesched.io/submitted-at"
CARD_MILLI = "tidesched.io/card-milli"
CARD_INDICES = "tidesched.io/card-indices"
SCHEDULE_TIMEOUT = "tidesched.io/schedule-timeout-seconds"
