from collections import Counter
from collections.abc import Mapping

import msgspec

from tidesched_web.common.ceiling import ceiling
from tidesched_web.engine.cards import card_of, first_of, hardware
from tidesched_web.engine.model import GangPhase, Pod, PodGroup, Result, ServiceType, Snapshot


class Tide(msgspec.Struct, frozen=True):
    """Milli-cards, ``total = inference + training + foreign + idle``; ``quota`` by the clock of that moment."""

    card: str
    total: int
    inference: int
    training: int
    borrowed: int
    foreign: int
    idle: int
    waiting: int
    quota: int


def measure(snapshot: Snapshot, result: Result) -> list[Tide]:
    service_types = {outcome.name: outcome.service_type for outcome in result.podgroups}
    nodes = {node.name: node for node in snapshot.nodes}
    total = Counter({card: count * 1000 for card, count in hardware(snapshot.nodes).items()})
    used: dict[str, Counter[str]] = {name: Counter() for name in (*ServiceType, "foreign")}
    for pod in snapshot.pods:
        if pod.card is None or not pod.node or pod.finished:
            continue
        use = _use(pod, snapshot, service_types)
        used[use][card_of(pod, nodes.get(pod.node))] += pod.card.milli
    waiting = _waiting(snapshot, result)
    quota = _inference_quota(snapshot)
    rows = []
    for card in sorted(total.keys() | waiting.keys()):
        inference, training = used[ServiceType.INFERENCE][card], used[ServiceType.TRAINING][card]
        foreign = used["foreign"][card] + used[ServiceType.UNKNOWN][card]
        taken = inference + training + foreign
        rows.append(
            Tide(
                card=card,
                # A node that is lost under its pods leaves less hardware than is in use: then nothing is idle.
                total=max(total[card], taken),
                inference=inference,
                training=training,
                borrowed=max(0, training - max(0, total[card] - quota[card])),
                foreign=foreign,
                idle=max(0, total[card] - taken),
                waiting=waiting[card],
                quota=quota[card],
            )
        )
    return rows


class QueueUse(msgspec.Struct, frozen=True):
    quota: int
    allocated: int
    inqueue: int
    elastic: int


def queue_use(snapshot: Snapshot, result: Result, *, sent: bool) -> dict[str, dict[str, QueueUse]]:
    """Queue → card → its use: as after a session that is ``sent``, else as the cluster is without its decisions."""
    held: dict[str, Counter[str]] = {} if sent else _held(snapshot)
    promised: dict[str, Counter[str]] = {} if sent else _promised(snapshot)
    found = {}
    for queue in result.queues:
        allocated = queue.allocated.cards if sent else held.get(queue.name, {})
        inqueue = _at_first(queue.inqueue.cards) if sent else promised.get(queue.name, Counter())
        parts = (queue.quota.cards, allocated, inqueue, queue.elastic.cards)
        found[queue.name] = {
            card: QueueUse(
                queue.quota.cards.get(card, 0),
                allocated.get(card, 0),
                inqueue.get(card, 0),
                min(queue.elastic.cards.get(card, 0), allocated.get(card, 0)),
            )
            for card in sorted({card for part in parts for card in part})
        }
    return found


def _at_first(amounts: Mapping[str, int]) -> Counter[str]:
    found: Counter[str] = Counter()
    for name, milli in amounts.items():
        found[first_of(name)] += milli
    return found


def _held(snapshot: Snapshot) -> dict[str, Counter[str]]:
    queues = {group.key: group.queue for group in snapshot.pod_groups}
    nodes = {node.name: node for node in snapshot.nodes}
    held: dict[str, Counter[str]] = {}
    for pod in snapshot.pods:
        if pod.card is not None and pod.node and not pod.finished and pod.group_key in queues:
            card = card_of(pod, nodes.get(pod.node))
            held.setdefault(queues[pod.group_key], Counter())[card] += pod.card.milli
    return held


def _promised(snapshot: Snapshot) -> dict[str, Counter[str]]:
    admitted = {group.key: group for group in snapshot.pod_groups if group.phase is GangPhase.INQUEUE}
    promised: dict[str, Counter[str]] = {}
    with_pods = set()
    for pod in snapshot.pods:
        if pod.group_key in admitted and not pod.finished and pod.deleted is None:
            with_pods.add(pod.group_key)
            if not pod.node and pod.card is not None and pod.card.names:
                queue = admitted[pod.group_key].queue
                promised.setdefault(queue, Counter())[first_of(pod.card.key)] += pod.card.milli
    for key in admitted.keys() - with_pods:
        for names, milli in admitted[key].card_request.items():
            promised.setdefault(admitted[key].queue, Counter())[first_of(names)] += milli
    return promised


def running_cards(snapshot: Snapshot, result: Result, service_type: ServiceType) -> int:
    service_types = {outcome.name: outcome.service_type for outcome in result.podgroups}
    return sum(
        pod.card.milli
        for pod in snapshot.pods
        if pod.card is not None and pod.node and not pod.finished and _use(pod, snapshot, service_types) == service_type
    )


def quota_beyond_hardware(snapshot: Snapshot, ratios: Mapping[str, float]) -> dict[str, dict[str, tuple[int, int]]]:
    """In milli-cards (quota, hardware). ``ratios``: how far promises may exceed the hardware; 1 where none is given."""
    have = hardware(snapshot.nodes)
    sums: dict[str, Counter[str]] = {}
    for queue in snapshot.queues:
        if queue.service_type and queue.card_quota:
            sums.setdefault(queue.service_type, Counter()).update(queue.card_quota)
    return {
        service_type: over
        for service_type, cards in sums.items()
        if (over := {card: (milli, have.get(card, 0) * 1000) for card, milli in sorted(cards.items())
                     if milli > ceiling(have.get(card, 0) * 1000, ratios.get(service_type, 1.0))})
    }  # fmt: skip


def _use(pod: Pod, snapshot: Snapshot, service_types: dict[str, str]) -> str:
    if pod.scheduler not in snapshot.schedulers:
        return "foreign"
    return service_types.get(pod.group_key, "foreign")


def _inference_quota(snapshot: Snapshot) -> Counter[str]:
    quota: Counter[str] = Counter()
    for queue in snapshot.queues:
        if queue.service_type == ServiceType.INFERENCE and queue.card_quota:
            quota.update(queue.card_quota)
    return quota


def _waiting(snapshot: Snapshot, result: Result) -> Counter[str]:
    groups: dict[str, PodGroup] = {group.key: group for group in snapshot.pod_groups}
    needing = {reason.podgroup for reason in result.reasons}
    asked: Counter[str] = Counter()
    with_pods = set()
    for pod in snapshot.pods:
        if pod.group_key in needing and not pod.finished and pod.deleted is None:
            with_pods.add(pod.group_key)
            if not pod.node and pod.card is not None:
                asked[first_of(pod.card.key)] += pod.card.milli
    for key in needing - with_pods:
        if key in groups:
            for names, milli in groups[key].card_request.items():
                asked[first_of(names)] += milli
    asked.pop("", None)
    return asked
