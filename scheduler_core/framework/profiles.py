"""Several scheduler profiles in one session: each decides for the pods of its own schedulerName, one after the other.
What a profile has decided is part of the cluster that the next one sees. Gangs of other profiles count for their queues
and hold their promises, and are not touched. Source: document 001, 2.2.1."""

from collections.abc import Iterable

import msgspec

from scheduler_core.model.decision import Bind, Event, Eviction, GangOutcome, Reclaim, Result
from scheduler_core.model.memory import Memory
from scheduler_core.model.pod import Pod
from scheduler_core.model.podgroup import ELSEWHERE, PodGroup
from scheduler_core.model.policy import Policy
from scheduler_core.model.reason import Reason, ReasonCode, ReasonNumbers
from scheduler_core.model.snapshot import Snapshot


def parts(policy: Policy, snapshot: Snapshot) -> list[tuple[Policy, frozenset[str]]]:
    """The policies to run in order, each with the names of the gangs that it decides about. A gang belongs to the
    profile of its first pod by name; those that no profile names, and those without pods, belong to the tiers at the
    top of the file."""
    first: dict[str, str] = {}
    for pod in snapshot.pods:
        if pod.group and pod.scheduler in snapshot.schedulers:
            first.setdefault(pod.group_key, pod.scheduler)
    known = {profile.scheduler for profile in policy.profiles}
    by_profile: dict[str, set[str]] = {}
    for group in snapshot.pod_groups:
        scheduler = first.get(group.key, "")
        by_profile.setdefault(scheduler if scheduler in known else "", set()).add(group.key)
    found = [("", policy.tiers), *((profile.scheduler, profile.tiers) for profile in policy.profiles)]
    return [
        (msgspec.structs.replace(policy, tiers=tiers, profiles=()), frozenset(by_profile.get(name, ())))
        for name, tiers in found
        if tiers
    ]


def only(snapshot: Snapshot, gangs: frozenset[str]) -> Snapshot:
    """The snapshot in which all other gangs belong to other profiles."""
    groups = tuple(
        group if group.key in gangs else msgspec.structs.replace(group, backing_off=ELSEWHERE)
        for group in snapshot.pod_groups
    )
    return msgspec.structs.replace(snapshot, pod_groups=groups)


def carried_out(snapshot: Snapshot, result: Result) -> Snapshot:
    """The cluster with the decisions of one profile in it."""
    bound = {bind.pod: bind for bind in result.binds}
    leaving = {eviction.pod for eviction in result.evictions}
    phases = {outcome.name: outcome.phase for outcome in result.podgroups}

    def pod_after(pod: Pod) -> Pod:
        bind = bound.get(pod.key)
        if bind is not None:
            return msgspec.structs.replace(pod, node=bind.node, card_indices=bind.card_indices)
        return msgspec.structs.replace(pod, deleted=result.now) if pod.key in leaving else pod

    def group_after(group: PodGroup) -> PodGroup:
        phase = phases.get(group.key, group.phase)
        return group if phase is group.phase else msgspec.structs.replace(group, phase=phase)

    return msgspec.structs.replace(
        snapshot,
        pods=tuple(map(pod_after, snapshot.pods)) if bound or leaving else snapshot.pods,
        pod_groups=tuple(map(group_after, snapshot.pod_groups)),
    )


def merged(results: Iterable[tuple[Result, frozenset[str]]]) -> Result:
    """One result: the decisions of all, each gang's outcome from its own profile, the queues as after the last."""
    binds, pipelined, evictions = list[Bind](), list[Bind](), list[Eviction]()
    podgroups, reasons = list[GangOutcome](), list[Reason]()
    reclaims, events, timings = list[Reclaim](), list[Event](), dict[str, float]()
    last: Result | None = None
    for result, gangs in results:
        last = result
        binds += result.binds
        pipelined = list(result.pipelined)  # the last profile sees the promises of all
        evictions += result.evictions
        podgroups += (outcome for outcome in result.podgroups if outcome.name in gangs)
        reasons += (reason for reason in result.reasons if reason.podgroup in gangs)
        reclaims += result.reclaims
        events += result.events
        for name, taken in result.timings_ms.items():
            timings[name] = timings.get(name, 0.0) + taken
    assert last is not None
    decided = {outcome.name for outcome in podgroups}
    for outcome in last.podgroups:
        if outcome.name not in decided:
            podgroups.append(outcome)
            if outcome.ready < outcome.min_member:
                reasons.append(
                    Reason(
                        podgroup=outcome.name,
                        code=ReasonCode.MISCONFIGURED,
                        numbers=ReasonNumbers(),
                        message="No profile of the policy is for the scheduler of its pods.",
                    )
                )
    return msgspec.structs.replace(
        last,
        binds=tuple(sorted(binds, key=lambda bind: bind.pod)),
        pipelined=tuple(pipelined),
        evictions=tuple(sorted(evictions, key=lambda eviction: eviction.pod)),
        podgroups=tuple(sorted(podgroups, key=lambda outcome: outcome.name)),
        reasons=tuple(sorted(reasons, key=lambda reason: reason.podgroup)),
        reclaims=tuple(sorted(reclaims, key=lambda reclaim: (reclaim.reclaimer, reclaim.action))),
        events=tuple(sorted(events, key=lambda event: (event.kind, event.name, event.reason, event.message))),
        timings_ms=timings,
    )


def remembered(before: Memory, after: Memory, told: dict[str, str]) -> Memory:
    """The memory of the next profile, or the next session: what has been said so far stays said."""
    queued = after if after.queue or not before.queue else before
    return msgspec.structs.replace(
        after, told=dict(sorted({**told, **after.told}.items())),
        acted=dict(sorted({**before.acted, **after.acted}.items())), queue=queued.queue, cycle=queued.cycle,
        move_cycle=queued.move_cycle, events=queued.events,
    )  # fmt: skip
