import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from tidesched_web.clusters.models import Cluster
from tidesched_web.engine.model import Alone, Amount, Candidate, QueueMoment, ReclaimVictimGang, cards_to_json
from tidesched_web.engine.model import Reclaim as Decided
from tidesched_web.quota.tide_selectors import BaseQuota, base_quota

Document = dict[str, Any]


def bases(decided: Sequence[Decided], cluster: Cluster, now: dt.datetime) -> dict[str, BaseQuota]:
    names = {one.queue for reclaim in decided for one in reclaim.queues}
    return base_quota(cluster, names, now) if names else {}


def document(decided: Decided, bases: Mapping[str, BaseQuota]) -> Document:
    """The same in the row, in the bytes under the audit entry's hash, and in REST; a queue of another's has no base."""
    return {
        "queues": [moment(one, bases.get(one.queue)) for one in decided.queues],
        "candidates": [_candidate(one) for one in decided.candidates],
        "more_candidates": decided.more_candidates,
    }


def cost(victim: ReclaimVictimGang) -> Document:
    """What it cost to take a gang, in the order in which costs are compared, and whether its Job fails by it."""
    return {
        "queue_priority": victim.queue_priority,
        "priority": victim.priority,
        "work_lost_card_seconds": victim.work_lost_card_seconds,
        "last_restart": victim.last_restart,
    }


def moment(held: QueueMoment, base: BaseQuota | None) -> Document:
    return {
        "queue": held.queue,
        "base": None if base is None else {card: base.cards.get(card, 0) for card in sorted(held.quota.cards)},
        "plans": [] if base is None else list(base.plans),
        "quota": _cards(held.quota.cards),
        "before": _amount(held.before),
        "after": _amount(held.after),
    }


def _amount(amount: Amount) -> Document:
    return amount.to_json() | {"cards": _cards(amount.cards)}


def _cards(cards: Mapping[str, int]) -> dict[str, float]:
    """Zeros included: they are the answer here."""
    return {card: cards_to_json(milli) for card, milli in sorted(cards.items())}


def _candidate(one: Candidate) -> Document:
    return {
        "gang": one.gang,
        "queue": one.queue,
        "queue_priority": one.queue_priority,
        "priority": one.priority,
        "work_lost_card_seconds": one.work_lost_card_seconds,
        "frees": cards_to_json(one.frees_milli),
        "rule": one.rule,
        "alone": None if one.alone is None else _alone(one.alone),
    }


def _alone(alone: Alone) -> Document:
    nodes = msgspec.to_builtins(alone.nodes)
    return {"fits": alone.fits, "wanted": alone.wanted, "nodes": nodes, "more_nodes": alone.more_nodes}
