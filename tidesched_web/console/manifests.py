from dataclasses import dataclass

from django.utils.translation import gettext as _

from tidesched_web.common.models import ServiceType
from tidesched_web.quota.models import Queue


@dataclass(frozen=True, slots=True)
class Manifest:
    key: str
    title: str
    text: str
    fits: bool


def card_resource(card: str) -> str:
    if "/mig-" in card:
        return f"nvidia.com/mig-{card.split('/mig-', 1)[1].removesuffix('-mixed')}"
    if "/mps-" in card:
        return "nvidia.com/gpu.shared"
    return "nvidia.com/gpu"


def for_queue(queue: Queue, cards: list[str], namespaces: list[str] | None = None) -> list[Manifest]:
    """In the first namespace that may use the queue; None: the cluster has no grant, so any may."""
    if not cards:
        return []
    card, namespace = cards[0], (namespaces or ["default"])[0]
    scheduler = (queue.cluster.scheduler_names or ["tidesched"])[0]
    found = [
        Manifest(
            "deployment",
            _("Inference Deployment"),
            inference_deployment(queue.name, card, scheduler, namespace),
            queue.service_type == ServiceType.INFERENCE,
        ),
        Manifest(
            "job",
            _("Training Job"),
            training_job(queue.name, card, scheduler, namespace),
            queue.service_type == ServiceType.TRAINING,
        ),
    ]
    return sorted(found, key=lambda manifest: not manifest.fits)


def inference_deployment(queue: str, card: str, scheduler: str, namespace: str = "default") -> str:
    resource = card_resource(card)
    return f"""\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: my-service
  namespace: {namespace}
  annotations:
    volcano.sh/service.type: inference
spec:
  replicas: 2
  selector:
    matchLabels: {{app: my-service}}
  template:
    metadata:
      labels: {{app: my-service}}
      annotations:
        volcano.sh/card.name: {card}
        volcano.sh/preemptable: "false"
        scheduling.volcano.sh/queue-name: {queue}
    spec:
      schedulerName: {scheduler}
      priorityClassName: pc-high
      containers:
      - name: server
        image: my-registry/my-service:1
        resources:
          requests: {{cpu: "4", memory: 16Gi, {resource}: "1"}}
          limits: {{cpu: "4", memory: 16Gi, {resource}: "1"}}
"""


def training_job(queue: str, card: str, scheduler: str, namespace: str = "default") -> str:
    resource = card_resource(card)
    return f"""\
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata:
  name: my-training
  namespace: {namespace}
  annotations:
    volcano.sh/service.type: training
    volcano.sh/preemptable: "true"
spec:
  schedulerName: {scheduler}
  queue: {queue}
  minAvailable: 2
  maxRetry: 100
  priorityClassName: pc-low
  policies:
  - event: PodEvicted
    action: RestartJob
  - event: PodFailed
    action: RestartJob
  - event: TaskCompleted
    action: CompleteJob
  tasks:
  - name: worker
    replicas: 2
    template:
      metadata:
        annotations:
          volcano.sh/card.name: {card}
      spec:
        restartPolicy: Never
        containers:
        - name: worker
          image: my-registry/my-training:1
          resources:
            requests: {{cpu: "8", memory: 64Gi, {resource}: "1"}}
            limits: {{cpu: "8", memory: 64Gi, {resource}: "1"}}
"""
