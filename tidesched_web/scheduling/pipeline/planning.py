from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

import msgspec

from tidesched_web.clusters.kubernetes.manifests import GROUP_NAME
from tidesched_web.engine.model import Bind, GangCondition, GangOutcome, Pod, PodGroup, Result, Snapshot
from tidesched_web.scheduling.models import DecisionKind
from tidesched_web.scheduling.pipeline.decisions import Draft
from tidesched_web.scheduling.pipeline.events import Counted


class Plan(msgspec.Struct, frozen=True):
    evictions: list[Draft]
    binds: list[Draft]
    statuses: list[Draft]
    events: list[Draft]

    def __iter__(self) -> Iterator[Draft]:
        for part in (self.evictions, self.binds, self.statuses, self.events):
            yield from part


def make(
    result: Result,
    snapshot: Snapshot,
    *,
    new_events: Iterable[Counted],
    resting: Collection[str],
    withdrawn: dict[str, PodGroup],
) -> Plan:
    """``resting``: PodGroups that the cluster did not take lately. ``withdrawn``: as the cluster shows them."""
    pods = {pod.key: pod for pod in snapshot.pods}
    groups = {group.key: group for group in snapshot.pod_groups} | withdrawn
    return Plan(
        evictions=_evictions(result, pods),
        binds=_binds(result.binds, pods, groups),
        statuses=[
            status_draft(outcome, groups[outcome.name])
            for outcome in result.podgroups
            if outcome.name in groups and outcome.name not in resting and status_differs(outcome, groups[outcome.name])
        ],
        events=[_event(event, pods, groups) for event in new_events],
    )


def gangs(drafts: Iterable[Draft]) -> list[list[Draft]]:
    ordered: dict[tuple[str, int | None], list[Draft]] = {}
    for draft in drafts:
        ordered.setdefault((draft.gang, draft.reclaim_id), []).append(draft)
    return list(ordered.values())


def batches(units: list[list[Draft]], size: int) -> Iterator[list[list[Draft]]]:
    batch: list[list[Draft]] = []
    filled = 0
    for unit in units:
        if batch and filled + len(unit) > size:
            yield batch
            batch, filled = [], 0
        batch.append(unit)
        filled += len(unit)
    if batch:
        yield batch


def _evictions(result: Result, pods: dict[str, Pod]) -> list[Draft]:
    reclaim_of = {
        pod: index for index, reclaim in enumerate(result.reclaims) for victim in reclaim.victims for pod in victim.pods
    }
    drafts = []
    for eviction in result.evictions:
        pod = pods[eviction.pod]
        drafts.append(
            Draft(
                kind=DecisionKind.EVICT,
                gang=eviction.gang,
                target=eviction.pod,
                uid=pod.uid,
                node=eviction.node,
                reclaim=reclaim_of.get(eviction.pod),
                detail={
                    "reclaimer": eviction.reclaimer,
                    "action": eviction.action,
                    "role": str(eviction.role),
                    "reason": eviction.reason,
                },
            )
        )
    return sorted(drafts, key=lambda draft: (draft.reclaim if draft.reclaim is not None else -1, draft.gang))


def _binds(binds: Sequence[Bind], pods: dict[str, Pod], groups: dict[str, PodGroup]) -> list[Draft]:
    decided = Counter(pods[bind.pod].group_key for bind in binds)
    there = Counter(
        pod.group_key
        for pod in pods.values()
        if pod.node and not pod.finished and pod.deleted is None and pod.group_key in decided
    )
    drafts = []
    for bind in binds:
        pod = pods[bind.pod]
        group = groups.get(pod.group_key)
        minimum = group.min_member if group is not None else 1
        drafts.append(
            Draft(
                kind=DecisionKind.BIND,
                gang=pod.group_key or pod.key,
                target=bind.pod,
                uid=pod.uid,
                node=bind.node,
                detail={
                    "card": bind.card,
                    "card_indices": list(bind.card_indices),
                    "group": "" if GROUP_NAME in pod.annotations or not pod.owner else pod.group,
                    # How many of this gang's binds must succeed for it to stand; 0 = it stands already.
                    "required": max(0, min(minimum - there[pod.group_key], decided[pod.group_key])),
                },
            )
        )
    return sorted(drafts, key=lambda draft: draft.gang)


def _condition_keys(conditions: Iterable[GangCondition]) -> list[tuple[str, str, str]]:
    return sorted((condition.type, condition.status, condition.reason) for condition in conditions)


def status_differs(outcome: GangOutcome, group: PodGroup) -> bool:
    """True where the cluster's PodGroup must be written. A new sentence for the same condition is not worth a write."""
    if group.made:
        return False
    return outcome.phase != group.phase or _condition_keys(outcome.conditions) != _condition_keys(group.conditions)


def status_draft(outcome: GangOutcome, group: PodGroup) -> Draft:
    return Draft(
        kind=DecisionKind.STATUS,
        gang=outcome.name,
        target=outcome.name,
        uid=group.uid,
        detail={"phase": str(outcome.phase), "conditions": msgspec.to_builtins(outcome.conditions)},
    )


def _event(counted: Counted, pods: dict[str, Pod], groups: dict[str, PodGroup]) -> Draft:
    event = counted.event
    about: Any = pods.get(event.name) if event.kind == "Pod" else groups.get(event.name)
    gang = about.group_key if isinstance(about, Pod) else event.name
    detail = {
        "kind": event.kind,
        "type": event.type,
        "reason": event.reason,
        "message": event.message,
        "count": counted.count,
        "first": counted.first,
    }
    if counted.reclaim is not None:
        detail["reclaim"] = counted.reclaim
    return Draft(
        kind=DecisionKind.EVENT, gang=gang, target=event.name, uid=about.uid if about is not None else "", detail=detail
    )
