from collections.abc import Collection
from typing import Any

from tidesched_web.engine.model import Rule, rule_of_text
from tidesched_web.scheduling.models import Reclaim, ReclaimSource


def reclaim_within_sight(
    reclaim: Reclaim, own_queues: Collection[int] | None, own_gangs: Collection[tuple[int, str]]
) -> dict[str, Any]:
    """Whose card was taken may know by whom (a name), never how much that one has or what else was considered."""
    made_it = own_queues is None or reclaim.queue_id in own_queues
    victims = [_victim(victim, own_queues, reclaim.receipt) for victim in reclaim.victims.all()]
    all_own = own_queues is None or all(victim["queue"] is not None for victim in victims)
    receipt = receipt_within_sight(reclaim.receipt, own_queues, made_it=made_it)
    refused = reclaim.refused if own_queues is None else [
        item for item in reclaim.refused if made_it and (reclaim.cluster_id, item.get("gang")) in own_gangs
    ]  # fmt: skip
    return {
        "id": reclaim.pk,
        "display": _display(reclaim, ", ".join(str(victim["gang"]) for victim in victims) or "no gang"),
        "cluster": reclaim.cluster,
        "session": reclaim.session,
        "at": reclaim.at,
        "wall_at": reclaim.wall_at,
        "source": reclaim.source,
        "made_by": reclaim.made_by,
        "instead": reclaim.instead if own_queues is None else None,
        "state": reclaim.state,
        "action": reclaim.action,
        "reclaimer": reclaim.reclaimer,
        "queue": reclaim.queue_name if made_it else None,
        "needed": reclaim.needed if made_it else None,
        # With one victim it would say what that one had; with several, what the other tenant's had.
        "freed": reclaim.freed if all_own else None,
        "victims": victims,
        "work_lost_card_seconds": reclaim.work_lost_card_seconds if all_own else None,
        "rule": reclaim.rule,
        "votes": reclaim.votes if made_it else [],
        "refused": refused,
        "queues": receipt["queues"],
        "candidates": receipt["candidates"],
        "more_candidates": receipt["more_candidates"],
        "unknown": _unknown(reclaim),
        "audit_entry": reclaim.audit_entry_id,
        "promised_at": reclaim.promised_at,
        "running_at": reclaim.running_at,
    }


def _unknown(reclaim: Reclaim) -> list[str]:
    """What nothing in the cluster says of it: of reclaims by others alone."""
    if reclaim.source != ReclaimSource.OBSERVED:
        return []
    return list(reclaim.receipt.get("unknown", ("use", "votes", "candidates", "gain")))


def _display(reclaim: Reclaim, fallen: str) -> str:
    if not reclaim.reclaimer and reclaim.source == ReclaimSource.OBSERVED:
        return f"{fallen} was evicted; for which gang is unknown"
    return f"{reclaim.reclaimer} takes from {fallen}" if reclaim.reclaimer else f"{reclaim.action} sends {fallen} away"


# Rules that state what the reclaimer needs, which is its own side's.
_WITH_NEEDS = frozenset({Rule.SHORT_ON_NODE, Rule.FEWER_PODS})


def receipt_within_sight(
    receipt: dict[str, Any], own_queues: Collection[int] | None, *, made_it: bool
) -> dict[str, Any]:
    """How many others came into question is not the reader's; ``made_it``: they see the reclaimer's side."""
    found: dict[str, Any] = {}
    for part in ("queues", "candidates"):
        rows = receipt.get(part, [])
        found[part] = [
            {name: value for name, value in row.items() if name != "queue_id"}
            for row in rows
            if own_queues is None or row["queue_id"] in own_queues
        ]
    found["candidates"] = [_candidate(one, made_it) for one in found["candidates"]]
    return found | {"more_candidates": receipt.get("more_candidates") if own_queues is None else None}


def _candidate(row: dict[str, Any], made_it: bool) -> dict[str, Any]:
    if made_it:
        return {"alone": None, **row}
    rule = rule_of_text(row["rule"])
    plain = Rule.TOO_LITTLE.text() if rule is not None and rule[0] in _WITH_NEEDS else row["rule"]
    return {**row, "rule": plain, "alone": None}


def _victim(victim: Any, own_queues: Collection[int] | None, receipt: dict[str, Any]) -> dict[str, Any]:
    if own_queues is None or victim.queue_id in own_queues:
        cost = receipt.get("victims", {}).get(victim.gang, {})
        return {
            "gang": victim.gang,
            "queue": victim.queue_name,
            "pods": victim.pods,
            "cards": victim.cards,
            "work_lost_card_seconds": victim.work_lost_card_seconds,
            "restarting_pods": len(victim.restarted),
            "ended_pods": victim.ended,
            "queue_priority": cost.get("queue_priority"),
            "priority": cost.get("priority"),
            "last_restart": cost.get("last_restart"),
        }
    hidden = ("queue", "pods", "cards", "work_lost_card_seconds", "restarting_pods", "ended_pods", "queue_priority")
    return {"gang": victim.gang, **dict.fromkeys((*hidden, "priority", "last_restart"))}


def hide_other_side(reclaim: Reclaim) -> Reclaim:
    """The same for a row of `reclaims_with_victims`, which is changed: cards that are not for the reader are None."""
    victims = reclaim.victim_rows  # type: ignore[attr-defined]
    made_it, all_own = reclaim.own, all(row["own"] for row in victims)  # type: ignore[attr-defined]
    for row in victims:
        if not row["own"]:
            row["queue"], row["cards"], row["work"], row["times"], row["restarting"] = "", None, None, 0, 0
            row["ended"] = 0
    if not made_it:
        reclaim.queue_name, reclaim.needed, reclaim.votes = "", {"cards": None}, []
    if not all_own:
        # With one victim it would say what that one had; with several, what the other tenant's had.
        reclaim.freed = {"cards": None}
        reclaim.work_lost_card_seconds = None  # type: ignore[assignment]  # hidden, never saved
    return reclaim
