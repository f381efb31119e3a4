"""Everything that is said is a difference, so an edit that changes nothing says nothing."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from scheduler_core.serde.result import reason_to_json
from tidesched_web.engine import bridge
from tidesched_web.engine.edits import Edit, edited
from tidesched_web.engine.model import (
    MIB,
    GangOutcome,
    GangPhase,
    Memory,
    Policy,
    Queue,
    Reason,
    Result,
    Snapshot,
    cards_to_json,
)

# Longer lists are cut; their true length is in ``counts``.
MOST_ROWS = 200
# What gangs get: they run at once; cards that are being taken back; a promise of quota, and wait for cards.
GAINS = ("gangs_run", "gangs_promised", "gangs_admitted")
SESSION_LISTS = (*GAINS, "gangs_lose", "queues_over", "reclaimed_next", "spared_next")
LISTS = (*SESSION_LISTS, "reclaimed_at_flood", "spared_at_flood")

Row = dict[str, Any]


class Picture:
    def __init__(
        self, snapshot: Snapshot, policy: Policy, *, now: float, memory: Memory | None, workspace: bridge.Workspace
    ) -> None:
        self.snapshot, self.policy, self.now, self.memory, self.workspace = snapshot, policy, now, memory, workspace
        self._before: Result | None = None

    @property
    def before(self) -> Result:
        if self._before is None:
            self._before = bridge.decide(
                self.snapshot, self.policy, now=self.now, memory=self.memory, workspace=self.workspace
            )[0]
        return self._before

    def decide(self, snapshot: Snapshot, policy: Policy | None = None) -> Result:
        policy = policy or self.policy
        workspace = self.workspace.fork()
        return bridge.decide(snapshot, policy, now=self.now, memory=self.memory, workspace=workspace)[0]


class Trial(msgspec.Struct, frozen=True):
    picture: Picture
    snapshot: Snapshot
    policy: Policy
    before: Result
    after: Result

    @property
    def same(self) -> bool:
        return self.after is self.before


def try_out(picture: Picture, edit: Edit) -> Trial:
    policy = bridge.read_policy(edit.policy) if edit.policy else picture.policy
    snapshot = edited(picture.snapshot, edit)
    same = snapshot is picture.snapshot and policy == picture.policy
    after = picture.before if same else picture.decide(snapshot, policy)
    return Trial(picture, snapshot, policy, picture.before, after)


def impact(trial: Trial) -> Row:
    if trial.same:
        return {name: [] for name in SESSION_LISTS}
    reclaimed, spared = victims_differ(trial.before, trial.after)
    return {**_gangs(trial), "queues_over": _queues_over(trial), "reclaimed_next": reclaimed, "spared_next": spared}


def cut(lists: Mapping[str, list[Row]]) -> Row:
    counts = {name: len(rows) for name, rows in lists.items()}
    return {**{name: rows[:MOST_ROWS] for name, rows in lists.items()}, "counts": counts}


# -- gangs ---------------------------------------------------------------------------------------------------------

# What a gang has, from nothing to all of it.
_WAITS, _ADMITTED, _PROMISED, _RUNS = range(4)
_WORDS = {_ADMITTED: "admitted", _PROMISED: "promised", _RUNS: "running"}
_LIST_OF = {"admitted": "gangs_admitted", "promised": "gangs_promised", "running": "gangs_run", "larger": "gangs_run"}


def _gangs(trial: Trial) -> Row:
    """What a Job that is newly admitted gets is what the session after gives it, when its pods exist."""
    before, after = trial.before, trial.after
    reasons_before, reasons_after = _reasons(before), _reasons(after)
    falls = {victim.gang for reclaim in after.reclaims for victim in reclaim.victims}
    gains: dict[str, list[Row]] = {name: [] for name in GAINS}
    lose = []
    later = _after_admission(trial, reasons_before, reasons_after)
    for old, new in zip(before.podgroups, after.podgroups, strict=True):
        if old is new:
            continue
        was, becomes = _standing(old, reasons_before), _standing(new, reasons_after)
        becomes = max(becomes, later.get(new.name, _WAITS))
        more = new.bound - old.bound
        if becomes > was or (becomes == was and more > 0):
            reason = reasons_before.get(old.name)
            word = _WORDS[becomes] if becomes > was else "larger"
            gains[_LIST_OF[word]].append(
                {
                    **_gang(new),
                    "becomes": word,
                    "pods": new.bound,
                    "pods_more": max(0, more),
                    "reason_before": _told(reason),
                }
            )
        elif (becomes < was or more < 0) and new.name not in falls:
            word = _WORDS[was] if becomes < was else "larger"
            reason = reasons_after.get(new.name)
            lose.append({**_gang(new), "was": word, "pods_fewer": max(0, -more), "reason": _told(reason)})
    order = lambda row: (-row["priority"], row["gang"])  # noqa: E731
    return {**{name: sorted(rows, key=order) for name, rows in gains.items()}, "gangs_lose": sorted(lose, key=order)}


def _after_admission(trial: Trial, before: Mapping[str, Reason], after: Mapping[str, Reason]) -> dict[str, int]:
    from tidesched_web.engine.admitted import after_admission

    names = {
        new.name
        for old, new in zip(trial.before.podgroups, trial.after.podgroups, strict=True)
        if old is not new and _standing(new, after) == _ADMITTED > _standing(old, before)
    }
    result = after_admission(trial.picture, trial.snapshot, trial.policy, names) if names else None
    if result is None:
        return {}
    reasons = _reasons(result)
    return {outcome.name: _standing(outcome, reasons) for outcome in result.podgroups if outcome.name in names}


def _standing(outcome: GangOutcome, reasons: Mapping[str, Reason]) -> int:
    if outcome.phase in (GangPhase.RUNNING, GangPhase.COMPLETED):
        return _RUNS
    reason = reasons.get(outcome.name)
    if reason is not None and reason.code == "WaitingForReclaim":
        return _PROMISED
    return _ADMITTED if outcome.phase is GangPhase.INQUEUE else _WAITS


def _reasons(result: Result) -> dict[str, Reason]:
    return {reason.podgroup: reason for reason in result.reasons}


def _told(reason: Reason | None) -> Row | None:
    if reason is None:
        return None
    document = reason_to_json(reason)
    return {"code": document["code"], "numbers": document["numbers"], "message": document["message"]}


def _gang(outcome: GangOutcome) -> Row:
    return {
        "gang": outcome.name,
        "queue": outcome.queue,
        "service_type": outcome.service_type,
        "priority": outcome.priority,
        "cards": counts_of(outcome.cards),
    }


def counts_of(cards: Mapping[str, int]) -> dict[str, int | float]:
    return {card: cards_to_json(milli) for card, milli in sorted(cards.items()) if milli}


# -- queues ---------------------------------------------------------------------------------------------------------


def _queues_over(trial: Trial) -> list[Row]:
    old = {queue.name: queue for queue in trial.picture.snapshot.queues}
    use_before = {outcome.name: outcome.allocated for outcome in trial.before.queues}
    new = {queue.name: queue for queue in trial.snapshot.queues}
    rows = []
    for outcome in trial.after.queues:
        queue, before = new.get(outcome.name), old.get(outcome.name)
        if queue is None:
            continue
        used, was = dict(_use(outcome.allocated)), dict(_use(use_before.get(outcome.name)))
        for resource, in_use in sorted(used.items()):
            quota, quota_before = _limit(queue, resource), _limit(before, resource)
            over = in_use - quota if quota is not None else 0
            over_before = was.get(resource, 0) - quota_before if quota_before is not None else 0
            if over > max(0, over_before):
                rows.append(
                    {
                        "queue": queue.name,
                        "service_type": queue.service_type,
                        "resource": resource,
                        "quota_before": shown(resource, quota_before),
                        "quota": shown(resource, quota),
                        "in_use": shown(resource, in_use),
                        "over": shown(resource, over),
                    }
                )
    return rows


def _use(amount: Any) -> Iterable[tuple[str, int]]:
    if amount is not None:
        yield from amount.cards.items()
        yield "cpu_milli", amount.cpu_milli
        yield "memory_bytes", amount.memory_mib * MIB


def _limit(queue: Queue | None, resource: str) -> int | None:
    if queue is None:
        return None
    if resource == "cpu_milli":
        return queue.cpu_milli
    if resource == "memory_bytes":
        return None if queue.memory_mib is None else queue.memory_mib * MIB
    return None if queue.card_quota is None else queue.card_quota.get(resource, 0)


def shown(resource: str, amount: int | None) -> int | float | None:
    return amount if amount is None or resource in ("cpu_milli", "memory_bytes") else cards_to_json(amount)


# -- victims ---------------------------------------------------------------------------------------------------------


def victims_differ(before: Result, after: Result) -> tuple[list[Row], list[Row]]:
    old, new = _victims(before), _victims(after)
    return (
        [row for gang, row in sorted(new.items()) if gang not in old],
        [row for gang, row in sorted(old.items()) if gang not in new],
    )


def _victims(result: Result) -> dict[str, Row]:
    return {
        victim.gang: {
            "gang": victim.gang,
            "queue": victim.queue,
            "cards": counts_of(victim.cards),
            "pods": len(victim.pods),
            "work_lost_card_seconds": round(victim.work_lost_card_seconds, 1),
            "reclaimer": reclaim.reclaimer,
            "reclaimer_queue": reclaim.queue,
            "action": reclaim.action,
            **({"last_restart": True} if victim.last_restart else {}),
        }
        for reclaim in result.reclaims
        for victim in reclaim.victims
    }


def taken(result: Result) -> Row:
    cards: Counter[str] = Counter()
    gangs = {victim.gang: victim.cards for reclaim in result.reclaims for victim in reclaim.victims}
    for held in gangs.values():
        cards.update(held)
    return {"gangs": len(gangs), "cards": counts_of(cards)}


# -- card-hours --------------------------------------------------------------------------------------------------------


def card_use(trial: Trial) -> Iterable[tuple[str, str, tuple[int, int, int]]]:
    """By queue and card, in milli-cards: what is used more, what is used less, what exceeds the new quota."""
    before = {outcome.name: outcome.allocated.cards for outcome in trial.before.queues}
    old = {queue.name: queue for queue in trial.picture.snapshot.queues}
    new = {queue.name: queue for queue in trial.snapshot.queues}
    for outcome in trial.after.queues:
        was, now = before.get(outcome.name, {}), outcome.allocated.cards
        for card in sorted(was.keys() | now.keys()):
            used_before, used = was.get(card, 0), now.get(card, 0)
            over = _beyond(new.get(outcome.name), card, used) - _beyond(old.get(outcome.name), card, used_before)
            moved = used - used_before
            if moved or over > 0:
                yield outcome.name, card, (max(0, moved), max(0, -moved), max(0, over))


def _beyond(queue: Queue | None, card: str, used: int) -> int:
    quota = _limit(queue, card)
    return max(0, used - quota) if quota is not None else 0
