"""The quota that inference does not use becomes claims: gangs of one pod like those that the queue runs (several pods
each where there would be too many). One session with them shows what a flood would take.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from operator import attrgetter

import msgspec

from tidesched_web.engine.cards import card_of
from tidesched_web.engine.model import (
    CardRequest,
    OwnerReference,
    Pod,
    PodGroup,
    PodPhase,
    Policy,
    Queue,
    Result,
    ServiceType,
    Snapshot,
)
from tidesched_web.engine.what_if import Picture, Row, Trial, counts_of, taken, victims_differ

MOST_GANGS = 1000
_NAME = "flood.tidesched.io"


class Claim(msgspec.Struct, frozen=True):
    queue: Queue
    card: str
    like: Pod
    priority: int
    pods: int


class Flooded(msgspec.Struct, frozen=True):
    made: dict[str, tuple[str, str, int]]
    result: Result


def flood(trial: Trial) -> Row:
    before = _run(trial.picture, trial.picture.snapshot, trial.picture.policy)
    after = before if trial.same else _run(trial.picture, trial.snapshot, trial.policy)
    reclaimed, spared = victims_differ(before.result, after.result)
    return {
        "flood": {"before": _told(before), "after": _told(after)},
        "reclaimed_at_flood": [_of_a_claim(row, after) for row in reclaimed],
        "spared_at_flood": [_of_a_claim(row, before) for row in spared],
    }


def _run(picture: Picture, snapshot: Snapshot, policy: Policy) -> Flooded:
    flooded, made = _with_claims(snapshot, list(_claims(snapshot)), picture.now)
    return Flooded(made, picture.decide(flooded, policy))


def _told(flooded: Flooded) -> Row:
    asked: dict[str, Counter[str]] = {}
    unserved: dict[str, Counter[str]] = {}
    for queue, card, milli in flooded.made.values():
        asked.setdefault(queue, Counter())[card] += milli
    for reason in flooded.result.reasons:
        if reason.podgroup in flooded.made and reason.code != "WaitingForReclaim":
            queue, card, milli = flooded.made[reason.podgroup]
            unserved.setdefault(queue, Counter())[card] += milli
    return {
        **taken(flooded.result),
        "claims": {queue: counts_of(cards) for queue, cards in asked.items()},
        "unserved": {queue: counts_of(cards) for queue, cards in sorted(unserved.items())},
    }


def _of_a_claim(row: Row, flooded: Flooded) -> Row:
    """A gang that was made for the flood has no page of its own."""
    return {**row, "reclaimer": ""} if row["reclaimer"] in flooded.made else row


# -- claims ---------------------------------------------------------------------------------------------------------


def _claims(snapshot: Snapshot) -> Iterator[Claim]:
    queues = {queue.name: queue for queue in snapshot.queues if queue.service_type == ServiceType.INFERENCE}
    groups = {group.key: group for group in snapshot.pod_groups if group.queue in queues}
    nodes = {node.name: node for node in snapshot.nodes}
    used: dict[tuple[str, str], int] = Counter()
    shapes: dict[tuple[str, str], Counter[tuple[int, int, int]]] = {}
    likes: dict[tuple[str, str, tuple[int, int, int]], Pod] = {}
    for pod in snapshot.pods:
        group = groups.get(pod.group_key)
        if group is None or pod.card is None or pod.finished:
            continue
        card = card_of(pod, nodes.get(pod.node))
        if pod.node:
            used[group.queue, card] += pod.card.milli
        shape = (pod.card.milli, pod.cpu_milli, pod.memory_mib)
        for of in (group.queue, ""):
            shapes.setdefault((of, card), Counter())[shape] += 1
            likes.setdefault((of, card, shape), pod)
    resources = {card.name: card.resource for card in snapshot.card_types}
    for name, queue in sorted(queues.items()):
        if queue.state.value != "Open":
            continue
        for card, quota in sorted((queue.card_quota or {}).items()):
            room = quota - used[name, card]
            where = name if (name, card) in shapes else ""
            if (where, card) in shapes:
                shape = min(shapes[where, card].items(), key=lambda item: (-item[1], item[0]))[0]
                like = likes[where, card, shape]
                group = groups[like.group_key]
                priority = group.priority
            elif card in resources:
                like = Pod(namespace="", name="", card=CardRequest((card,), resources[card], 1000))
                like, priority = msgspec.structs.replace(like, scheduler=snapshot.schedulers[0]), queue.priority
            else:
                continue
            assert like.card is not None
            if pods := room // like.card.milli if room > 0 else 0:
                yield Claim(queue, card, like, priority, pods)


def _with_claims(
    snapshot: Snapshot, claims: Sequence[Claim], now: float
) -> tuple[Snapshot, dict[str, tuple[str, str, int]]]:
    size = max(1, -(-sum(claim.pods for claim in claims) // MOST_GANGS))
    groups, pods = list(snapshot.pod_groups), list(snapshot.pods)
    made = {}
    for place, claim in enumerate(claims):
        assert claim.like.card is not None
        for number, first in enumerate(range(0, claim.pods, size)):
            members = min(size, claim.pods - first)
            group, of_group = _gang(claim, f"{_NAME}-{place}-{number}", members, now)
            groups.append(group)
            pods += of_group
            made[group.key] = (claim.queue.name, claim.card, members * claim.like.card.milli)
    groups.sort(key=attrgetter("key"))
    pods.sort(key=attrgetter("key"))
    return msgspec.structs.replace(snapshot, pod_groups=tuple(groups), pods=tuple(pods)), made


def _gang(claim: Claim, name: str, members: int, now: float) -> tuple[PodGroup, list[Pod]]:
    assert claim.like.card is not None
    granted = claim.queue.namespaces  # a queue may be for some namespaces alone
    namespace = granted[0] if granted else _NAME
    group = PodGroup(
        namespace=namespace,
        name=name,
        created=now,
        queue=claim.queue.name,
        min_member=members,
        priority=claim.priority,
        service_type=ServiceType.INFERENCE,
        owner_kind="ReplicaSet",
        owner_name=name,
        replicas=members,
    )
    pods = [
        msgspec.structs.replace(
            claim.like,
            namespace=namespace,
            name=f"{name}-{member}",
            uid="",
            created=now,
            started=None,
            scheduled=None,
            deleted=None,
            node="",
            nominated_node="",
            phase=PodPhase.PENDING,
            priority=claim.priority,
            card=msgspec.structs.replace(claim.like.card, names=(claim.card,)),
            card_indices=(),
            group=name,
            owner=OwnerReference("ReplicaSet", name),
            gated=False,
            relations=None,
            claims=(),
            host_ports=(),
        )
        for member in range(members)
    ]
    return group, pods
