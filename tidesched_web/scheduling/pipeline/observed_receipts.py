"""The form of the receipts of own reclaims; ``unknown`` lists what nothing in the cluster says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tidesched_web.engine.cards import card_of
from tidesched_web.engine.gangs import gang_of
from tidesched_web.engine.model import Amount, QueueMoment
from tidesched_web.quota.tide_selectors import base_quota
from tidesched_web.scheduling.pipeline import receipts

if TYPE_CHECKING:
    from tidesched_web.engine.model import Snapshot
    from tidesched_web.scheduling.pipeline.observed_rows import Evicted
    from tidesched_web.scheduling.pipeline.reclaims import QueueOwner
    from tidesched_web.scheduling.pipeline.work import Work

Document = dict[str, Any]
# What another scheduler does not say: what its plugins said, what else it looked at, and what it assigned afterwards.
ALWAYS_UNKNOWN = ("votes", "candidates", "gain")
UNNAMED = "reclaimer"


class Books:
    """The use of a queue goes down with each eviction that is written, so that each has its own moment."""

    def __init__(
        self, work: Work, before: Snapshot | None, evicted: Sequence[Evicted], owners: Mapping[str, QueueOwner]
    ) -> None:
        self._work, self._owners = work, owners
        picture = before or work.snapshot
        self._queues = {queue.name: queue for queue in (*picture.queues, *work.snapshot.queues)}
        self._groups = {group.key: group for group in (*picture.pod_groups, *work.snapshot.pod_groups)}
        nodes = {node.name: node for node in picture.nodes}
        self._use: dict[str, Amount] = {}
        gone = {one.sighting.uid for one in evicted}
        for pod in picture.pods:
            if pod.node and not pod.finished and pod.deleted is None and pod.uid not in gone:
                group = self._groups.get(gang_of(pod))
                card = card_of(pod, nodes.get(pod.node))
                if group is not None:
                    cards = {card: pod.card.milli} if pod.card and card else {}
                    self._add(group.queue, Amount(pod.cpu_milli, pod.memory_mib, cards))
        for one in evicted:
            self._add(one.queue, one.amount)

    def _add(self, queue: str, amount: Amount) -> None:
        self._use[queue] = self._use.get(queue, Amount()) + amount

    def receipt(self, members: Iterable[Evicted], reclaimer: str, queue: str, needed: Amount) -> Document:
        leave: dict[str, Amount] = {}
        for one in members:
            leave[one.queue] = leave.get(one.queue, Amount()) + one.amount
        cards = {card for amount in (needed, *leave.values()) for card in amount.cards}
        found = []
        for name in sorted({queue, *leave} - {""}):
            before = self._use.get(name, Amount())
            after = _less(before, leave.get(name, Amount()))
            self._use[name] = after
            found.append(self._moment(name, before, after, cards))
        unknown = [*ALWAYS_UNKNOWN, *(() if reclaimer else (UNNAMED,))]
        victims = {one.gang: self._cost(one) for one in members}
        return {"queues": found, "victims": victims, "candidates": [], "more_candidates": None, "unknown": unknown}

    def _moment(self, name: str, before: Amount, after: Amount, cards: Iterable[str]) -> Document:
        queue = self._queues.get(name)
        limit = queue.card_quota if queue is not None else None
        quota = {} if limit is None else {card: limit.get(card, 0) for card in cards}
        held = QueueMoment(queue=name, quota=Amount(0, 0, quota), before=_of(before, cards), after=_of(after, cards))
        base = base_quota(self._work.cluster, {name}, self._work.now).get(name)
        owner = self._owners.get(name)
        return receipts.moment(held, base) | {"queue_id": owner.id if owner else None}

    def _cost(self, one: Evicted) -> Document:
        group, queue = self._groups.get(one.gang), self._queues.get(one.queue)
        return {
            "queue_priority": queue.priority if queue is not None else None,
            "priority": group.priority if group is not None else None,
            "last_restart": group.last_restart if group is not None else None,
        }


def joined(earlier: Document, later: Document) -> Document:
    """The receipt of a reclaim of which more pods were evicted a moment later: use before the first, after the last."""
    if not earlier:
        return later
    queues = {row["queue"]: row for row in earlier["queues"]}
    for row in later["queues"]:
        first = queues.get(row["queue"])
        if first is None:
            queues[row["queue"]] = row
            continue
        cards = {**row["before"]["cards"], **first["before"]["cards"]}
        queues[row["queue"]] = {
            **first,
            "quota": {**row["quota"], **first["quota"]},
            "before": {**first["before"], "cards": cards},
            "after": {**row["after"], "cards": {**first["after"]["cards"], **row["after"]["cards"]}},
        }
    return {
        **earlier,
        "queues": [row for _name, row in sorted(queues.items())],
        "victims": {**later["victims"], **earlier["victims"]},
        "unknown": later["unknown"],
    }


def _less(amount: Amount, other: Amount) -> Amount:
    cards = {card: milli - other.cards.get(card, 0) for card, milli in amount.cards.items()}
    return Amount(amount.cpu_milli - other.cpu_milli, amount.memory_mib - other.memory_mib, cards)


def _of(amount: Amount, cards: Iterable[str]) -> Amount:
    return Amount(amount.cpu_milli, amount.memory_mib, {card: amount.cards.get(card, 0) for card in sorted(cards)})
