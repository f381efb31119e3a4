"""The founding policy's decisions on a cluster where all gangs wait, worked out anew and plainly.

Nothing is shared with the engine but its model: no classes of tasks, no kernels, no kept views. Each task looks at all
nodes, in rows of NumPy; each queue's share and each vote is summed from what has been given out. What a snapshot may
not hold (running pods, choices and shares of cards, selectors, company) is refused, so that an answer is never wrong
for want of a rule.
"""

from __future__ import annotations

import math
from collections import Counter

import numpy as np

from scheduler_core.model.pod import Pod
from scheduler_core.model.podgroup import PodGroup
from scheduler_core.model.queue import Queue
from scheduler_core.model.snapshot import Snapshot

Place = tuple[str, str, tuple[int, ...]]
OVER_COMMIT = 2
TAINT_WEIGHT = 3


class Rest:
    """What is left of the nodes: rows of free cpu, memory and pods, and which single cards are free."""

    def __init__(self, snapshot: Snapshot) -> None:
        nodes = sorted(snapshot.nodes, key=lambda node: node.name)
        assert not any(node.taints or node.unschedulable or node.images or node.scalars for node in nodes)
        assert all(len(node.cards) <= 1 for node in nodes), "one type of card on a node"
        self.names = [node.name for node in nodes]
        self.there = np.array([(node.cpu_milli, node.memory_mib, node.pods) for node in nodes], dtype=np.int64).T
        self.free = self.there.copy()
        self.card = np.array([node.cards[0].card if node.cards else "" for node in nodes])
        self.cards = np.array([sum(part.count for part in node.cards) for node in nodes], dtype=np.int64)
        self.idle = [list(range(count)) for count in self.cards.tolist()]
        self.left = self.cards.copy()

    def place(self, pod: Pod) -> tuple[int, Place] | None:
        """The best node for a pod, taken: nodes with room, the highest score, the first name."""
        name, count = asked(pod)
        fits = (self.free[0] >= pod.cpu_milli) & (self.free[1] >= pod.memory_mib) & (self.free[2] >= 1)
        if count:
            fits &= (self.card == name) & (self.left >= count)
        if not fits.any():
            return None
        node = int(np.where(fits, self._score(pod, count), -1).argmax())
        held, self.idle[node] = tuple(self.idle[node][:count]), self.idle[node][count:]
        self._take(node, pod, count, 1)
        return node, (self.names[node], name, held)

    def give_back(self, node: int, pod: Pod, held: tuple[int, ...]) -> None:
        """As if it had never been placed."""
        self.idle[node] = sorted([*self.idle[node], *held])
        self._take(node, pod, len(held), -1)

    def _take(self, node: int, pod: Pod, count: int, times: int) -> None:
        self.free[:, node] -= times * np.array([pod.cpu_milli, pod.memory_mib, 1])
        self.left[node] -= times * count

    def _score(self, pod: Pod, count: int) -> np.ndarray:
        """Least requested + balanced + 3 x no soft taints, each 0 to 100 in whole numbers."""
        wanted = np.array([[pod.cpu_milli], [pod.memory_mib]])
        there, used = self.there[:2], self.there[:2] - self.free[:2] + wanted
        least = np.where(used <= there, (there - used) * 100 // there, 0).sum(axis=0) // 2
        shares = np.minimum(1.0, used / there)
        of_cards = np.minimum(1.0, (self.cards - self.left + count) / np.maximum(self.cards, 1))
        rows = 2 + (self.cards > 0)
        mean = (shares[0] + shares[1] + np.where(self.cards > 0, of_cards, 0.0)) / rows
        off = (shares[0] - mean) ** 2 + (shares[1] - mean) ** 2
        off = off + np.where(self.cards > 0, (of_cards - mean) ** 2, 0.0)
        balanced = np.floor((1.0 - np.sqrt(off / rows)) * 100)
        return least + balanced + TAINT_WEIGHT * 100


def decide(snapshot: Snapshot) -> dict[str, Place]:
    """Where each pod that is bound goes: node, card type, numbers of the cards."""
    assert not any(pod.node or pod.relations or pod.node_selector or pod.claims for pod in snapshot.pods)
    pods: dict[str, list[Pod]] = {}
    for pod in snapshot.pods:
        pods.setdefault(pod.group_key, []).append(pod)
    for members in pods.values():
        members.sort(key=_in_gang)
    gangs = [gang for gang in snapshot.pod_groups if len(pods.get(gang.key, ())) >= gang.min_member]
    queues = {queue.name: queue for queue in snapshot.queues}
    assert all(queue.cpu_milli is None and queue.memory_mib is None for queue in queues.values())
    return _bound(Rest(snapshot), queues, _admitted(snapshot, queues, gangs, pods), pods)


def asked(pod: Pod) -> tuple[str, int]:
    """The card that a pod names, and how many."""
    if pod.card is None:
        return "", 0
    assert len(pod.card.names) == 1, "choices of cards are not known here"
    assert pod.card.milli % 1000 == 0, "shares of cards are not known here"
    return pod.card.names[0], pod.card.milli // 1000


def _in_gang(pod: Pod) -> tuple[float, float, float, str]:
    parts = pod.name.rsplit("-", 2)
    number = int(parts[2]) if len(parts) == 3 and parts[2].isdecimal() else math.inf
    return -pod.priority, number, pod.created, pod.key


def _first(gang: PodGroup) -> tuple[int, float, str]:
    return -gang.priority, gang.waiting_since, gang.key


def _admitted(
    snapshot: Snapshot, queues: dict[str, Queue], gangs: list[PodGroup], pods: dict[str, list[Pod]]
) -> list[PodGroup]:
    """Who may ask for room: minimum after minimum within the queue's cards and twice the cluster."""
    total = Counter[str]()
    for node in snapshot.nodes:
        total.update(cpu=node.cpu_milli, memory=node.memory_mib)
        total.update({part.card: part.count for part in node.cards})
    promised, of_queue, found = Counter[str](), Counter[tuple[str, str]](), []
    # No queue has anything yet: queues by priority, creation and name, one after the other.
    order = sorted(queues.values(), key=lambda queue: (-queue.priority, queue.created, queue.name))
    for queue in order:
        for gang in sorted((gang for gang in gangs if gang.queue == queue.name), key=_first):
            need = Counter[str]()
            for pod in pods[gang.key][: gang.min_member]:
                name, count = asked(pod)
                if count:
                    # Who asks for cards counts no cpu and memory (cardUnlimitedCpuMemory).
                    need[name] += count
                else:
                    need.update(cpu=pod.cpu_milli, memory=pod.memory_mib)
            inside = all(
                1000 * (count + of_queue[queue.name, name]) <= (queue.card_quota or {}).get(name, 0)
                for name, count in need.items()
                if name not in ("cpu", "memory")
            )
            room = all(count + promised[name] <= OVER_COMMIT * total[name] for name, count in need.items())
            if not (inside and room):
                raise NotImplementedError(f"{gang.key} is refused: who goes before whom then is not known here")
            promised.update(need)
            of_queue.update({(queue.name, name): count for name, count in need.items()})
            found.append(gang)
    return found


def _bound(rest: Rest, queues: dict[str, Queue], gangs: list[PodGroup], pods: dict[str, list[Pod]]) -> dict[str, Place]:
    """Gang after gang of the queue with the highest priority and then the smallest share, whole or not at all."""
    waiting = {name: sorted((g for g in gangs if g.queue == name), key=_first, reverse=True) for name in queues}
    waiting = {name: line for name, line in waiting.items() if line}
    held, found = {name: Counter[str]() for name in queues}, dict[str, Place]()

    def turn(name: str) -> tuple[int, float, float, str]:
        quota = queues[name].card_quota or {}
        share = max((1000 * count / quota[card] for card, count in held[name].items() if count), default=0.0)
        return -queues[name].priority, share, queues[name].created, name

    while waiting:
        name = min(waiting, key=turn)
        gang = waiting[name].pop()
        if not waiting[name]:
            del waiting[name]
        quota, taken = queues[name].card_quota or {}, list[tuple[int, Pod, Place]]()
        for pod in pods[gang.key]:
            card, count = asked(pod)
            if count and 1000 * (held[name][card] + count) > quota.get(card, 0):
                break
            spot = rest.place(pod)
            if spot is None:
                break
            held[name][card] += count
            taken.append((spot[0], pod, spot[1]))
        if len(taken) < gang.min_member:
            for node, pod, place in reversed(taken):
                rest.give_back(node, pod, place[2])
                held[name][asked(pod)[0]] -= len(place[2])
            continue
        found.update({pod.key: place for _, pod, place in taken})
    return found
