import datetime as dt
from collections import defaultdict
from collections.abc import Mapping
from hashlib import sha256

import msgspec

from tidesched_web.engine.cards import card_of, first_of
from tidesched_web.engine.gangs import lasting_name
from tidesched_web.engine.model import (
    GangOutcome,
    GangPhase,
    Node,
    Pod,
    PodGroup,
    PodPhase,
    Reason,
    Result,
    Snapshot,
    cards_to_json,
)
from tidesched_web.workloads.models import GangState


class PodValues(msgspec.Struct, frozen=True):
    name: str
    uid: str
    role: str
    phase: str
    leaving: bool
    node: str
    card: str
    card_milli: int
    card_indices: tuple[int, ...]
    started_at: dt.datetime | None


class GangValues(msgspec.Struct, frozen=True):
    uid: str
    queue_name: str
    service_type: str
    owner_kind: str
    owner_name: str
    priority: int
    priority_class: str
    min_member: int
    replicas: int
    ready: int
    bound: int
    phase: str
    state: str
    needs: bool
    cards: dict[str, float]
    cpu_milli: int
    memory_mib: int
    position: int | None
    reason_code: str
    spared_until: dt.datetime | None
    submitted_at: dt.datetime


class Seen(msgspec.Struct):
    group: PodGroup
    pods: list[Pod]
    values: GangValues
    reason: Reason | None
    promised: bool
    running_at: dt.datetime | None


def moment(seconds: float) -> dt.datetime:
    return dt.datetime.fromtimestamp(seconds, dt.UTC)


def uid_of(group: PodGroup) -> str:
    return _short(group.uid or group.key)


def _short(uid: str) -> str:
    """As long as the column. Where pods name their own PodGroup they may name it as they like, at any length."""
    return uid if len(uid) <= 64 else sha256(uid.encode()).hexdigest()


def pods_by_gang(snapshot: Snapshot) -> dict[str, list[Pod]]:
    members: dict[str, list[Pod]] = defaultdict(list)
    for pod in snapshot.pods:
        if pod.group:
            members[pod.group_key].append(pod)
    return members


def look(
    snapshot: Snapshot,
    result: Result,
    *,
    sent: bool,
    states: Mapping[str, str],
    spared: Mapping[str, float] | None = None,
) -> dict[str, Seen]:
    """``sent``: the decisions went to the cluster, so phases are as after the session."""
    outcomes = {outcome.name: outcome for outcome in result.podgroups}
    reasons = {reason.podgroup: reason for reason in result.reasons}
    evicted = {eviction.pod for eviction in result.evictions} if sent else set()
    promised = {bind.pod for bind in result.pipelined} if sent else set()
    members = pods_by_gang(snapshot)
    seen: dict[str, Seen] = {}
    for group in snapshot.pod_groups:
        outcome = outcomes.get(group.key)
        if outcome is None:
            continue
        pods = members.get(group.key, [])
        if group.made and all(pod.finished or pod.deleted is not None for pod in pods):
            continue  # what is left of a gang whose PodGroup went before its pods: no gang of its own
        reason = reasons.get(group.key)
        phase = outcome.phase if sent else group.phase
        state = _state(phase, pods, felled=_falls(group, pods, evicted), before=states.get(uid_of(group), ""))
        until = _spared_until(group, spared or {})
        seen[group.key] = Seen(
            group,
            pods,
            _values(group, outcome, pods, reason, phase=phase, state=state, sent=sent, spared_until=until),
            reason,
            any(pod.key in promised for pod in pods),
            _running_at(group, pods),
        )
    return seen


def _falls(group: PodGroup, pods: list[Pod], evicted: set[str]) -> bool:
    """True where an eviction leaves fewer members than the gang needs; one that can spare its members goes on."""
    if not any(pod.key in evicted for pod in pods):
        return False
    stay = [pod for pod in pods if pod.node and not pod.finished and pod.deleted is None and pod.key not in evicted]
    return len(stay) < group.min_member


def _spared_until(group: PodGroup, spared: Mapping[str, float]) -> dt.datetime | None:
    if not spared:
        return None
    until = max((spared[name] for name in (group.key, lasting_name(group)) if name in spared), default=None)
    return None if until is None else moment(until)


def _running_at(group: PodGroup, pods: list[Pod]) -> dt.datetime | None:
    started = sorted(
        pod.started for pod in pods if pod.started is not None and pod.deleted is None and not pod.finished
    )
    needed = max(1, group.min_member)
    return moment(started[needed - 1]) if len(started) >= needed else None


def _state(phase: GangPhase, pods: list[Pod], *, felled: bool, before: str) -> GangState:
    if phase is GangPhase.COMPLETED:
        return GangState.FINISHED
    if felled:
        return GangState.RECLAIMED
    # Until it has pods again: a session may see the PodGroup of those that have left before the next one is made.
    if before == GangState.RECLAIMED and (not pods or any(pod.deleted is not None for pod in pods)):
        return GangState.RECLAIMED
    living = [pod for pod in pods if not pod.finished]
    if pods and not living and any(pod.phase is PodPhase.FAILED for pod in pods):
        return GangState.FAILED
    if phase is GangPhase.RUNNING:
        return GangState.RUNNING
    return GangState.ADMITTED if phase is GangPhase.INQUEUE else GangState.WAITING


def _values(
    group: PodGroup,
    outcome: GangOutcome,
    pods: list[Pod],
    reason: Reason | None,
    *,
    phase: GangPhase,
    state: GangState,
    sent: bool,
    spared_until: dt.datetime | None,
) -> GangValues:
    living = [pod for pod in pods if not pod.finished]
    return GangValues(
        uid=uid_of(group),
        queue_name=outcome.queue[:253],
        service_type=outcome.service_type,
        owner_kind=group.owner_kind[:63],
        owner_name=group.owner_name[:253],
        priority=outcome.priority or group.priority,
        priority_class=group.priority_class[:253],
        min_member=group.min_member,
        replicas=group.replicas or len(living),
        ready=outcome.ready if sent else sum(1 for pod in living if pod.node and pod.deleted is None),
        bound=outcome.bound if sent else sum(1 for pod in living if pod.node),
        phase=str(phase),
        state=str(state),
        needs=reason is not None,
        cards={name: cards_to_json(milli) for name, milli in sorted(_cards(group, outcome).items()) if milli},
        cpu_milli=sum(pod.cpu_milli for pod in living),
        memory_mib=sum(pod.memory_mib for pod in living),
        position=outcome.position,
        reason_code=str(reason.code) if reason else "",
        spared_until=spared_until,
        submitted_at=moment(group.waiting_since),
    )


def _cards(group: PodGroup, outcome: GangOutcome) -> Mapping[str, int]:
    return outcome.cards or {first_of(names): milli for names, milli in group.card_request.items()}


def pod_values(pod: Pod, node: Node | None) -> PodValues:
    return PodValues(
        pod.name,
        _short(pod.uid or pod.key),
        pod.role[:63],
        str(pod.phase),
        pod.deleted is not None,
        pod.node,
        card_of(pod, node)[:120],
        pod.card.milli if pod.card else 0,
        pod.card_indices,
        moment(pod.started) if pod.started is not None else None,
    )
