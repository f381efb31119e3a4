"""The session that counts is the newest one that still saw the pods running: it decided on the same ground."""

from collections import deque
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final

from tidesched_web.engine.figures import numbers_of
from tidesched_web.engine.model import Reclaim, Result, Snapshot, cards_to_json

# Sessions that are kept in mind: an eviction is seen within one or two of them.
KEPT = 5
MOST_RECLAIMS: Final = 20


@dataclass(frozen=True)
class Decided:
    session_id: int
    number: int
    at: str
    snapshot: Snapshot
    result: Result


class OwnDecisions:
    def __init__(self) -> None:
        self._kept: deque[Decided] = deque(maxlen=KEPT)

    def note(self, decided: Decided) -> None:
        self._kept.append(decided)

    def before(self, pods: Collection[str]) -> Decided | None:
        wanted = set(pods)
        for decided in reversed(self._kept):
            stayed = sum(1 for pod in decided.snapshot.pods if pod.key in wanted and pod.deleted is None and pod.node)
            if stayed == len(wanted):
                return decided
        return None


def instead_of(decided: Decided | None, reclaimer: str) -> dict[str, Any] | None:
    """None where no session saw the pods running; what was unseen has no sums, since it is not comparable."""
    if decided is None:
        return None
    result = decided.result
    bound = {bind.pod for bind in result.binds}
    own = [reclaim for reclaim in result.reclaims if not reclaimer or reclaim.reclaimer == reclaimer]
    found: dict[str, Any] = {"session": decided.number, "session_id": decided.session_id, "at": decided.at}
    if own:
        found["found"] = "reclaims"
    elif not reclaimer:
        found["found"] = "stands"
    elif any(pod.group_key == reclaimer and pod.key in bound for pod in decided.snapshot.pods):
        found["found"] = "places"
    elif reason := next((one for one in result.reasons if one.podgroup == reclaimer), None):
        found["found"] = "waits"
        found["reason"] = {"code": str(reason.code), "numbers": numbers_of(reason), "message": reason.message}
    else:
        if not any(one.name == reclaimer for one in result.podgroups):
            return found | {"found": "unseen"}
        found["found"] = "stands"
    return found | _sums(own)


def _sums(reclaims: list[Reclaim]) -> dict[str, Any]:
    victims = [victim for reclaim in reclaims for victim in reclaim.victims]
    cards: dict[str, int] = {}
    for victim in victims:
        for card, milli in victim.cards.items():
            cards[card] = cards.get(card, 0) + milli
    return {
        "gangs": len({victim.gang for victim in victims}),
        "pods": sum(len(victim.pods) for victim in victims),
        "cards": {card: cards_to_json(milli) for card, milli in sorted(cards.items()) if milli},
        "work_lost_card_seconds": round(sum(victim.work_lost_card_seconds for victim in victims), 3),
        "reclaims": [_reclaim(reclaim) for reclaim in reclaims[:MOST_RECLAIMS]],
    }


def _reclaim(reclaim: Reclaim) -> dict[str, Any]:
    return {
        "reclaimer": reclaim.reclaimer,
        "queue": reclaim.queue,
        "action": reclaim.action,
        "rule": reclaim.rule[:200],
        "victims": [
            {
                "gang": victim.gang,
                "queue": victim.queue,
                "pods": len(victim.pods),
                "cards": {card: cards_to_json(milli) for card, milli in sorted(victim.cards.items()) if milli},
                "work_lost_card_seconds": round(victim.work_lost_card_seconds, 3),
            }
            for victim in reclaim.victims
        ],
    }
