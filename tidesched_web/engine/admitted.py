"""An admitted Job has no pods yet: a second session, in which it has them, shows whether cards are free."""

from collections.abc import Set
from operator import attrgetter

import msgspec

from tidesched_web.engine.model import CardRequest, GangPhase, OwnerReference, Pod, PodGroup, Policy, Result, Snapshot
from tidesched_web.engine.what_if import Picture

# Beyond so many pods the rest of the Jobs is only called admitted.
MOST_PODS = 5_000


def after_admission(picture: Picture, snapshot: Snapshot, policy: Policy, names: Set[str]) -> Result | None:
    found = with_pods(snapshot, names, phase=GangPhase.INQUEUE)
    return None if found is snapshot else picture.decide(found, policy)


def with_pods(snapshot: Snapshot, names: Set[str], *, phase: GangPhase | None = None, least: bool = False) -> Snapshot:
    """A gang whose request cannot be split evenly is left as it is: nothing is guessed. ``least``: the fewest."""
    resources = {card.name: card.resource for card in snapshot.card_types}
    have_pods = {pod.group_key for pod in snapshot.pods if pod.group_key in names}
    groups, pods = list(snapshot.pod_groups), list(snapshot.pods)
    most = len(pods) + MOST_PODS
    for place, group in enumerate(groups):
        if group.key not in names or group.key in have_pods:
            continue
        # Counted before they are made: a Job may ask for two billion of them.
        if len(pods) + _number_of_members(group, least=least) > most:
            continue
        members = _members(group, resources, snapshot, least=least)
        if members:
            pods += members
            phase_now = group.phase if phase is None else phase
            groups[place] = msgspec.structs.replace(group, phase=phase_now, waits_for_admission=False)
    if len(pods) == len(snapshot.pods):
        return snapshot
    pods.sort(key=attrgetter("key"))
    return msgspec.structs.replace(snapshot, pod_groups=tuple(groups), pods=tuple(pods))


def _number_of_members(group: PodGroup, *, least: bool) -> int:
    if group.to_come:
        return sum(role.least if least else role.count for role in group.to_come)
    return group.min_member


def _members(group: PodGroup, resources: dict[str, str], snapshot: Snapshot, *, least: bool) -> list[Pod]:
    """None where the request of the PodGroup says nothing of a single pod: it has the sum of several roles."""
    if group.to_come:
        return [
            msgspec.structs.replace(role.pod, name=f"{role.pod.name}-{index}")
            for role in group.to_come
            for index in range(role.least if least else role.count)
        ]
    count = group.min_member
    roles = [role for role, fewest in group.min_task_member.items() if fewest]
    asked = group.min_resources
    card = _card_of_each(group, resources)
    if count < 1 or len(group.card_request) > 1 or (group.card_request and card is None):
        return []
    if (asked is None and card is None) or len(roles) > 1:
        return []
    return [
        Pod(
            namespace=group.namespace,
            name=f"{group.name}-admitted-{member}",
            created=group.created,
            scheduler=snapshot.schedulers[0],
            priority=group.priority,
            priority_class=group.priority_class,
            cpu_milli=asked.cpu_milli // count if asked else 0,
            memory_mib=asked.memory_mib // count if asked else 0,
            card=card,
            group=group.name,
            role=roles[0] if roles else "",
            owner=OwnerReference("Job", group.owner_name or group.name),
        )
        for member in range(count)
    ]


def _card_of_each(group: PodGroup, resources: dict[str, str]) -> CardRequest | None:
    for names, milli in group.card_request.items():
        each, rest = divmod(milli, max(1, group.min_member))
        choice = tuple(names.split("|"))
        if not rest and each and choice[0] in resources:
            return CardRequest(choice, resources[choice[0]], each)
    return None
