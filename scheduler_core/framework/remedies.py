"""The smallest single change that would help a waiting gang, shown by a session that has it. Source: contracts 1
(``remedy``). Nothing is promised that a session did not show: the change is made to the snapshot, the policy runs, and
only if the gang then gets what it needs the change is offered."""

from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple

import msgspec

from scheduler_core.model.decision import Result
from scheduler_core.model.node_refusal import NodeRefusal
from scheduler_core.model.pod import Pod
from scheduler_core.model.podgroup import GangPhase
from scheduler_core.model.reason import ENDED_BY_AN_END, ENDED_BY_QUOTA, Reason, ReasonCode, Remedy
from scheduler_core.model.resources import MIB, MILLI, node_unit
from scheduler_core.model.snapshot import Snapshot

# Bounds by count, never by time: gangs that are explained at all, and sessions that are tried for one, first with more
# quota or another priority, then without one of the gangs that hold what it lacks.
MOST_GANGS = 20
_MOST_TRIES = 4
_MOST_ENDS = 6

Run = Callable[[Snapshot], Result]

# Codes where any gang on a node may be the obstacle, not only those of the known holders' queues.
_ON_NODES = (ReasonCode.FRAGMENTED, ReasonCode.NO_NODE_MATCHES)
# Refusals of nodes that end with the pods which are there.
_OF_OTHER_PODS = frozenset(
    {
        NodeRefusal.HOST_PORT, NodeRefusal.POD_ANTI_AFFINITY, NodeRefusal.UNWANTED, NodeRefusal.VOLUME_IN_USE,
        NodeRefusal.VOLUME_LIMIT, NodeRefusal.TOPOLOGY_SPREAD,
    }
)  # fmt: skip


class Found(NamedTuple):
    """What was found for one gang. ``remedy``: None when none of the few changes that are tried helps. ``first``: the
    gang that got what the end of another one freed, though that one held enough; empty = none did."""

    remedy: Remedy | None
    first: str = ""


def find(snapshot: Snapshot, reason: Reason, run: Run, *, endless: Collection[str] = ()) -> Remedy | None:
    """A remedy for one gang, or None when none of the few that are tried helps; see :func:`search`."""
    return search(snapshot, reason, run, endless=endless).remedy


def search(
    snapshot: Snapshot, reason: Reason, run: Run, *, endless: Collection[str] = (), waiting: Collection[str] = ()
) -> Found:
    """Try the few changes that might help one gang. ``endless``: gangs that do not end by themselves, services: their
    end is nothing that can be waited for. ``waiting``: gangs that have a reason in the session as it is."""
    if reason.code is ReasonCode.BEHIND_HIGHER_PRIORITY:
        return Found(_priority(snapshot, reason.podgroup, run))
    for _, (remedy, changed) in zip(range(_MOST_TRIES), _candidates(snapshot, reason), strict=False):
        if _helped(snapshot, run(changed), reason.podgroup):
            return Found(remedy)
    if reason.code not in ENDED_BY_AN_END:
        return Found(None)
    holders = [gang for gang in _holders(snapshot, reason) if gang not in endless]
    return _end_of_another(snapshot, reason, run, holders, waiting)


def _end_of_another(
    snapshot: Snapshot, reason: Reason, run: Run, holders: list[str], waiting: Collection[str]
) -> Found:
    """The end of the smallest gang that helps: of those that hold enough the least, then in growing steps. Where room
    is fragmented the smallest one need not help though a larger one does; what lies between the last one that did not
    help and the first one that did is halved."""
    failed, helped, tries, first = -1, len(holders), 0, ""
    while tries < _MOST_ENDS and helped - failed > 1:
        at = 2 * failed + 2 if helped == len(holders) else (failed + helped) // 2
        at = min(at, len(holders) - 1)
        tries += 1
        result = run(_without(snapshot, holders[at]))
        if _helped(snapshot, result, reason.podgroup):
            helped = at
        else:
            failed, first = at, _served(result, waiting) or first
    if helped < len(holders):
        return Found(Remedy(change="gang_ends", gang=holders[helped]))
    return Found(None, first)


def _served(result: Result, waiting: Collection[str]) -> str:
    """The most important of the gangs that waited and lack nothing now, or are promised all of it; empty = none."""
    left = {reason.podgroup for reason in result.reasons if reason.code is not ReasonCode.WAITING_FOR_RECLAIM}
    served = [outcome for outcome in result.podgroups if outcome.name in waiting and outcome.name not in left]
    return min(served, key=lambda one: (-one.priority, one.waiting_since, one.name)).name if served else ""


def _holders(snapshot: Snapshot, reason: Reason) -> list[str]:
    """Gangs that hold what is lacking, the smallest first; those that hold less than what is short are left out. Of the
    queues of the known holders: a quota is freed only by who counts against it."""
    numbers = reason.numbers
    queues = {holder.queue for holder in numbers.holders or ()}
    if not numbers.resource or (not queues and reason.code not in _ON_NODES):
        return []
    least = numbers.short or 0.0
    if reason.code is ReasonCode.NO_NODE_MATCHES:
        if _OF_OTHER_PODS.isdisjoint(numbers.nodes or ()):
            return []
        least = 0.0
    queue_of = {group.key: group.queue for group in snapshot.pod_groups}
    held: dict[str, float] = {}
    for pod in snapshot.pods:
        if pod.node and not pod.finished and pod.group_key in queue_of and pod.group_key != reason.podgroup:
            amount = 1.0 if not least else _amount(pod, numbers.resource)
            if amount and (not queues or queue_of[pod.group_key] in queues):
                held[pod.group_key] = held.get(pod.group_key, 0) + amount
    for holder in numbers.holders or ():
        # What an admitted gang is promised counts too, though no pod of it has a node.
        if holder.promised_since is not None:
            held[holder.gang] = max(held.get(holder.gang, 0.0), holder.amount)
    return sorted((gang for gang, amount in held.items() if amount >= least), key=lambda gang: (held[gang], gang))


def _amount(pod: Pod, resource: str) -> float:
    """How much of a resource a pod takes, as reasons count it."""
    if resource == "cpu":
        return pod.cpu_milli
    if resource == "memory":
        return pod.memory_mib * MIB
    if resource == "pods":
        return 1
    if resource in pod.scalars:
        return pod.scalars[resource] * node_unit(resource)
    card = pod.card
    if card is None or not (card.resource == resource or {*card.names} & {*resource.split("|")}):
        return 0
    return card.milli / MILLI


def _helped(snapshot: Snapshot, result: Result, gang: str) -> bool:
    """True when the gang lacks nothing more, or all of it is promised; for a Job without pods, when it is admitted."""
    left = {reason.podgroup: reason.code for reason in result.reasons}
    if gang not in left or left[gang] is ReasonCode.WAITING_FOR_RECLAIM:
        return True
    group = next(group for group in snapshot.pod_groups if group.key == gang)
    outcome = next(outcome for outcome in result.podgroups if outcome.name == gang)
    has_pods = any(pod.group_key == gang for pod in snapshot.pods)
    return group.waits_for_admission and not has_pods and outcome.phase is GangPhase.INQUEUE


def _candidates(snapshot: Snapshot, reason: Reason) -> Iterator[tuple[Remedy, Snapshot]]:
    numbers = reason.numbers
    if reason.code in ENDED_BY_QUOTA and numbers.resource and numbers.short:
        yield from _more_quota(snapshot, reason.podgroup, numbers.resource, numbers.short)


def _priority(snapshot: Snapshot, gang: str, run: Run) -> Remedy | None:
    """The lowest priority of another gang above which it gets what it needs; what lies between is halved."""
    own = next(group.priority for group in snapshot.pod_groups if group.key == gang)
    others = sorted({group.priority for group in snapshot.pod_groups if group.key != gang and group.priority >= own})
    failed, helped = -1, len(others)
    for _ in range(_MOST_ENDS):
        if helped - failed <= 1:
            break
        # The highest one first: where not even that helps, none does.
        at = len(others) - 1 if helped == len(others) else (failed + helped) // 2
        if _helped(snapshot, run(_with_priority(snapshot, gang, others[at] + 1)), gang):
            helped = at
        elif helped == len(others):
            return None
        else:
            failed = at
    return Remedy(change="priority", above=others[helped]) if helped < len(others) else None


def _with_priority(snapshot: Snapshot, gang: str, priority: int) -> Snapshot:
    return msgspec.structs.replace(
        snapshot,
        pods=tuple(
            msgspec.structs.replace(pod, priority=priority) if pod.group_key == gang else pod for pod in snapshot.pods
        ),
        pod_groups=tuple(
            msgspec.structs.replace(group, priority=priority) if group.key == gang else group
            for group in snapshot.pod_groups
        ),
    )


def _more_quota(snapshot: Snapshot, gang: str, resource: str, short: float) -> Iterator[tuple[Remedy, Snapshot]]:
    """The queue's quota of the resource raised by what is short; of each card type in turn for a choice."""
    name = next(group.queue for group in snapshot.pod_groups if group.key == gang)
    queue = next(queue for queue in snapshot.queues if queue.name == name)
    for card in resource.split("|"):
        if card == "cpu":
            more = msgspec.structs.replace(queue, cpu_milli=(queue.cpu_milli or 0) + int(short))
        elif card == "memory":
            more = msgspec.structs.replace(queue, memory_mib=(queue.memory_mib or 0) + int(short) // MIB)
        else:
            quota = dict(queue.card_quota or {})
            quota[card] = quota.get(card, 0) + round(short * MILLI)
            more = msgspec.structs.replace(queue, card_quota=quota)
        queues = tuple(more if other.name == name else other for other in snapshot.queues)
        remedy = Remedy(change="quota", queue=name, card=card, by=short)
        yield remedy, msgspec.structs.replace(snapshot, queues=queues)


def _without(snapshot: Snapshot, gang: str) -> Snapshot:
    return msgspec.structs.replace(
        snapshot,
        pods=tuple(pod for pod in snapshot.pods if pod.group_key != gang),
        pod_groups=tuple(group for group in snapshot.pod_groups if group.key != gang),
    )
