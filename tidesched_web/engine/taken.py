"""A result as far as the cluster has taken it: what pages and statuses may say after binds were refused."""

from collections import Counter
from collections.abc import Mapping

import msgspec

from scheduler_core.model.decision import GangOutcome, QueueOutcome, Result
from scheduler_core.model.podgroup import GangPhase
from scheduler_core.model.reason import Reason, ReasonCode
from scheduler_core.model.snapshot import Snapshot


class NotTaken(msgspec.Struct, frozen=True):
    """Binds of one gang that the cluster did not take. ``stands``: enough of its members are bound without them."""

    gang: str
    pods: tuple[str, ...]
    why: str
    stands: bool = False


def as_taken(result: Result, snapshot: Snapshot, refused: Mapping[str, NotTaken]) -> Result:
    """Gangs that do not stand keep the phase that they had; cards that nobody got are used by no queue."""
    phases = {group.key: group.phase for group in snapshot.pod_groups}
    lost = {pod for one in refused.values() for pod in one.pods}
    milli = {pod.key: pod.card.milli for pod in snapshot.pods if pod.key in lost and pod.card is not None}
    queue_of = {outcome.name: outcome.queue for outcome in result.podgroups}
    unused: dict[str, Counter[str]] = {}
    for bind in result.binds:
        if bind.pod in lost and bind.card:
            gang = next(one.gang for one in refused.values() if bind.pod in one.pods)
            unused.setdefault(queue_of.get(gang, ""), Counter())[bind.card] += milli[bind.pod]

    def outcome_of(outcome: GangOutcome) -> GangOutcome:
        one = refused.get(outcome.name)
        if one is None:
            return outcome
        phase = outcome.phase if one.stands else phases.get(outcome.name, GangPhase.PENDING)
        missing = len(one.pods)
        return msgspec.structs.replace(
            outcome, phase=phase, ready=max(0, outcome.ready - missing), bound=max(0, outcome.bound - missing)
        )

    def queue(outcome: QueueOutcome) -> QueueOutcome:
        if outcome.name not in unused:
            return outcome
        cards = Counter(outcome.allocated.cards)
        cards.subtract(unused[outcome.name])
        left = {card: amount for card, amount in cards.items() if amount > 0}
        return msgspec.structs.replace(outcome, allocated=msgspec.structs.replace(outcome.allocated, cards=left))

    waits = [
        Reason(podgroup=one.gang, code=ReasonCode.BACKING_OFF, message=f"It waits before it is tried again: {one.why}.")
        for one in refused.values()
        if not one.stands
    ]
    reasons = [reason for reason in result.reasons if reason.podgroup not in {one.podgroup for one in waits}]
    return msgspec.structs.replace(
        result,
        binds=tuple(bind for bind in result.binds if bind.pod not in lost),
        podgroups=tuple(map(outcome_of, result.podgroups)),
        queues=tuple(map(queue, result.queues)),
        reasons=tuple(sorted([*reasons, *waits], key=lambda reason: reason.podgroup)),
    )
