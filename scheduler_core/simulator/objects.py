"""The objects that controllers make from a workload: its PodGroup and its pods."""

import json
import zlib

from scheduler_core.model.pod import OwnerReference, Pod
from scheduler_core.model.podgroup import GangPhase, PodGroup
from scheduler_core.model.resources import Amount, cards_to_json
from scheduler_core.simulator.workload import OwnerKind, WorkloadState

CARD_NAME = "volcano.sh/card.name"
CARD_QUOTA = "volcano.sh/card.quota"
CARD_REQUEST = "volcano.sh/card.request"
SERVICE_TYPE = "volcano.sh/service.type"
PREEMPTABLE = "volcano.sh/preemptable"
GROUP_NAME = "scheduling.k8s.io/group-name"
QUEUE_NAME = "scheduling.volcano.sh/queue-name"
QUEUE_SERVICE_TYPE = "tidesched.io/service-type"
TASK_SPEC = "volcano.sh/task-spec"
CARD_MILLI = "tidesched.io/card-milli"
CARD_INDICES = "tidesched.io/card-indices"
CARD_TYPE = "tidesched.io/card-type"
SUBMITTED_AT = "tidesched.io/submitted-at"
_INHERITED = "volcano.sh/"
ROLE = "worker"
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"

_IMAGES = {"inference": "registry.example/serving:1", "training": "registry.example/trainer:1"}


def short_hash(text: str, length: int = 5) -> str:
    """A suffix as Kubernetes makes them, but the same for the same ``text``."""
    number = zlib.crc32(text.encode()) * 2654435761 % 2**61
    letters = []
    for _ in range(length):
        number, digit = divmod(number, len(_LETTERS))
        letters.append(_LETTERS[digit])
    return "".join(letters)


def make_pod_group(state: WorkloadState, *, uid: str, now: float, timestamp: str) -> PodGroup:
    """The PodGroup of a workload; ``timestamp`` is its first submission in RFC 3339, which keeps its place."""
    workload, template = state.workload, state.workload.template
    per_member = Amount(template.cpu_milli, template.memory_mib)
    card_request = {}
    annotations = {key: value for key, value in workload.annotations.items() if key.startswith(_INHERITED)}
    annotations.setdefault(SERVICE_TYPE, workload.service_type)
    if template.card is not None and template.card_names:
        card_request = {template.card.key: template.card_milli * workload.min_member}
        shown = {name: cards_to_json(milli) for name, milli in card_request.items()}
        annotations[CARD_REQUEST] = json.dumps(shown)
    preemptable = workload.annotations.get(PREEMPTABLE)
    if preemptable is None and workload.service_type == "inference":
        preemptable = "false"
    if preemptable is not None:
        annotations[PREEMPTABLE] = preemptable
    annotations[SUBMITTED_AT] = timestamp
    return PodGroup(
        namespace=workload.namespace,
        name=workload.name,
        uid=uid,
        created=now,
        submitted=workload.submitted,
        queue=workload.queue,
        min_member=workload.min_member,
        min_resources=per_member.times(workload.min_member),
        card_request=card_request,
        priority=state.priority,
        priority_class=workload.priority_class,
        phase=GangPhase.PENDING,
        service_type=annotations[SERVICE_TYPE],
        owner_kind=workload.owner_kind.value,
        owner_name=workload.name,
        owner_uid=state.uid,
        owner_created=state.created if workload.owner_kind is OwnerKind.JOB else None,
        evicted_policy=workload.evicted_policy,
        preemptable=None if preemptable is None else preemptable == "true",
        waits_for_admission=workload.owner_kind is OwnerKind.JOB,
        replicas=workload.replicas,
        annotations=annotations,
    )


def pod_pattern(state: WorkloadState) -> Pod:
    """What all pods of a workload have in common; only name, uid and creation time are missing."""
    workload, template = state.workload, state.workload.template
    annotations = {GROUP_NAME: workload.name, **template.annotations}
    labels = dict(template.labels)
    role = ""
    if workload.owner_kind is OwnerKind.JOB:
        role = annotations[TASK_SPEC] = ROLE
        labels |= {"volcano.sh/job-name": workload.name, "volcano.sh/queue-name": workload.queue}
    else:
        annotations[QUEUE_NAME] = workload.queue
        labels.setdefault("app", workload.name)
    if template.card_names:
        annotations[CARD_NAME] = "|".join(template.card_names)
    if template.card is not None and template.card.is_share:
        annotations[CARD_MILLI] = str(template.card_milli)
    preemptable = template.annotations.get(PREEMPTABLE)
    if preemptable is None and workload.service_type == "inference":
        preemptable = annotations[PREEMPTABLE] = "false"
    return Pod(
        namespace=workload.namespace,
        name="",
        scheduler=workload.scheduler,
        priority=state.priority,
        priority_class=workload.priority_class,
        cpu_milli=template.cpu_milli,
        memory_mib=template.memory_mib,
        card=template.card,
        group=workload.name,
        role=role,
        preemptable=None if preemptable is None else preemptable == "true",
        labels=labels,
        annotations=annotations,
        node_selector=dict(template.node_selector),
        images=(_IMAGES["training" if role else "inference"],),
        owner=OwnerReference(workload.owner_kind.value, workload.name, state.uid, workload.owner_kind.api_version),
    )


def pod_name(state: WorkloadState, index: int) -> str:
    """The name of the pod number ``index``: Jobs use the same names again after a restart, services never."""
    workload = state.workload
    if workload.owner_kind is OwnerKind.JOB:
        return f"{workload.name}-{ROLE}-{index}"
    return f"{workload.name}-{short_hash(f'{state.uid}/{index}')}"
