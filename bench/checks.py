"""What must be true of a session's decisions, counted from the snapshot and the result alone: a fast wrong answer is
no result."""

from __future__ import annotations

from collections import Counter

from scheduler_core.model.decision import Result
from scheduler_core.model.pod import Pod
from scheduler_core.model.snapshot import Snapshot


def check(snapshot: Snapshot, result: Result, *, placed: int | None = None, quotas: bool = True) -> None:
    """Gangs are whole, nodes and quotas hold, each card is given out once.

    Args:
        placed: how many tasks must have got a place; None = any number.
        quotas: the policy keeps the queues' card quotas.
    """
    pods = {pod.key: pod for pod in snapshot.pods}
    binds = {bind.pod: bind for bind in result.binds}
    assert len(binds) == len(result.binds), "a pod is bound twice"
    assert not any(pods[key].node for key in binds), "a pod is bound that has a node already"
    if placed is not None:
        assert len(binds) == placed, f"{len(binds)} of {placed} tasks were placed"
    _check_gangs(snapshot, pods, binds)
    _check_nodes(snapshot, pods, result)
    if quotas:
        _check_quotas(snapshot, pods, binds)


def _check_gangs(snapshot: Snapshot, pods: dict[str, Pod], binds: dict[str, object]) -> None:
    in_place = Counter(pod.group_key for key, pod in pods.items() if key in binds or (pod.node and not pod.finished))
    new = {pods[key].group_key for key in binds}
    for group in snapshot.pod_groups:
        if group.key in new:
            assert in_place[group.key] >= group.min_member, f"{group.key} is placed in part"


def _check_nodes(snapshot: Snapshot, pods: dict[str, Pod], result: Result) -> None:
    cpu, memory, count, cards = Counter[str](), Counter[str](), Counter[str](), dict[tuple[str, str], list[int]]()
    places = [(pod, pod.node, pod.card_indices) for pod in pods.values() if pod.node and not pod.finished]
    places += [(pods[bind.pod], bind.node, bind.card_indices) for bind in result.binds]
    for pod, node, held in places:
        cpu[node] += pod.cpu_milli
        memory[node] += pod.memory_mib
        count[node] += 1
        if pod.card is not None:
            cards.setdefault((node, pod.card.names[0]), []).extend(held)
            assert len(held) == pod.card.milli // 1000, f"{pod.key} holds {held}"
    for node in snapshot.nodes:
        assert cpu[node.name] <= node.cpu_milli, f"{node.name} is over-committed"
        assert memory[node.name] <= node.memory_mib, f"{node.name} is over-committed"
        assert count[node.name] <= node.pods, f"{node.name} is over-committed"
    room = {(node.name, part.card): part.count for node in snapshot.nodes for part in node.cards}
    for place, held in cards.items():
        assert len(set(held)) == len(held), f"a card of {place} is given out twice"
        assert all(0 <= index < room.get(place, 0) for index in held), f"{place} has no card {held}"


def _check_quotas(snapshot: Snapshot, pods: dict[str, Pod], binds: dict[str, object]) -> None:
    queue_of = {group.key: group.queue for group in snapshot.pod_groups}
    used = Counter[tuple[str, str]]()
    for key, pod in pods.items():
        if pod.card is not None and (key in binds or (pod.node and not pod.finished)):
            used[queue_of[pod.group_key], pod.card.names[0]] += pod.card.milli
    for queue in snapshot.queues:
        for card, quota in (queue.card_quota or {}).items():
            assert used[queue.name, card] <= quota, f"{queue.name} uses more {card} than it may"
