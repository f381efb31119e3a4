"""Safe and whole bundles of victims, in the order in which the gang actions take them. Safe is what a gang has above
its minimum, whole is all of it. What a bundle is worth is the part of the demand that it frees where the demand can use
it, over what its gang holds in all (ROI). Source: volcano-semantics 3.6."""

from collections.abc import Iterable, Sequence
from fractions import Fraction

import msgspec
import numpy as np

from scheduler_core.actions.support.bundles import bundle
from scheduler_core.actions.support.guards import Guards
from scheduler_core.algorithms.victims import Unit
from scheduler_core.framework.session import Session
from scheduler_core.model.podgroup import EvictedPolicy
from scheduler_core.state.status import Bools

Key = str | tuple[int, ...]


class Offer(msgspec.Struct, frozen=True, gc=False):
    """What one gang offers: single members that it can spare, the first to go first, or all that it has. ``gang``: its
    position. ``whole``: one bundle of all members, else singles. ``parts``: the bundles. ``worth``: see the module."""

    gang: int
    whole: bool
    parts: tuple[Unit, ...]
    worth: Fraction


class Demand:
    """What the waiting tasks ask for in all, and what of a victim counts for it."""

    def __init__(self, session: Session, tasks: Sequence[int]) -> None:
        self._session = session
        self.need: dict[Key, int] = {}
        classes = {int(session.tasks.cls[task]): session.cluster.class_of(task) for task in tasks}
        self._useful: Bools = np.zeros(len(session.nodes), dtype=np.bool_)
        for cls in classes.values():
            self._useful |= session.candidates.view(cls).curable
        for task in tasks:
            cls = session.cluster.class_of(task)
            for key, amount in (("cpu", cls.cpu_milli), ("memory", cls.memory_mib), (cls.cards, cls.milli)):
                if amount:
                    self.need[key] = self.need.get(key, 0) + amount

    def share(self, tasks: Iterable[int], *, local: bool) -> Fraction:
        """Sum over the asked resources of what the tasks hold over what is needed. ``local``: count only what lies on
        nodes that could be used, and not more than is needed."""
        held = dict.fromkeys(self.need, 0)
        for task in tasks:
            node = self._session.tasks.node[task]
            if local and (node < 0 or not self._useful[node]):
                continue
            cls, card = self._session.cluster.class_of(task), int(self._session.tasks.card[task])
            for key in held:
                if key == "cpu":
                    held[key] += cls.cpu_milli
                elif key == "memory":
                    held[key] += cls.memory_mib
                elif card in key:
                    held[key] += cls.milli
        return sum(
            (Fraction(min(held[key], need) if local else held[key], need) for key, need in self.need.items()),
            Fraction(0),
        )


def offers(
    session: Session, guards: Guards, gang: int, demand: Demand, allowed: frozenset[int], *, allow_whole: bool
) -> list[Offer]:
    """The safe and the whole offer of a gang, as far as the allowed tasks make one up."""
    holding, found = guards.holding(gang), []
    singles = [task for task in _can_be_spared(session, guards, gang) if task in allowed]
    if singles:
        parts = tuple(bundle(session, guards, (task,), len(singles)) for task in singles)
        found.append(Offer(gang, False, parts, _worth(demand, singles, singles)))
    if allow_whole and holding.whole and allowed.issuperset(holding.members):
        rest = [task for task in holding.members if task not in singles]
        if rest:
            parts = (bundle(session, guards, holding.members),)
            found.append(Offer(gang, True, parts, _worth(demand, rest, holding.members)))
    return found


def in_order(session: Session, found: Iterable[Offer], queue: int, *, across: bool) -> list[Offer]:
    """Safe before whole, then whose turn it is to give, then what is worth most, then names. ``queue``: who takes.
    ``across``: between queues, the queue that is robbed first comes first; then and inside a queue the gang that is
    last in line (upstream: between queues gangs are not compared)."""
    ordered = sorted(found, key=lambda offer: (-offer.worth, session.gangs.names[offer.gang]))
    if not (across and session.compat):
        ordered.sort(key=lambda offer: session.hooks.key("job_order", offer.gang), reverse=True)
    if across:
        ordered.sort(key=lambda offer: session.queue_key(session.queue_of(offer.gang)), reverse=True)
        ordered.sort(key=lambda offer: session.hooks.key("victim_queue_order", session.queue_of(offer.gang), queue))
    ordered.sort(key=lambda offer: offer.whole)
    return ordered


def _can_be_spared(session: Session, guards: Guards, gang: int) -> list[int]:
    """Members above minMember and the minima of roles, the lowest first; all of them where it cannot run anyway."""
    if session.group(gang).evicted_policy is not EvictedPolicy.NONE and not session.compat:
        return []
    if session.gangs_fall_whole and session.gangs.ready(gang) < session.gangs.least[gang]:
        return []
    tasks, gangs, group = session.tasks, session.gangs, session.group(gang)
    members = [task for task in guards.holding(gang).members if not tasks.protected[task]]
    members.sort(key=lambda task: (int(tasks.priority[task]), guards.work_lost(task), tasks.keys[task]))
    ready, least = gangs.ready(gang), gangs.least[gang]
    if ready < least:
        return members
    left = {role: -count for role, count in group.min_task_member.items()}
    for task in guards.holding(gang).members:
        role = tasks.pod(task).role
        left[role] = left.get(role, 0) + 1
    spared: list[int] = []
    for task in members:
        role = tasks.pod(task).role
        if len(spared) < ready - least and left[role] > 0:
            spared.append(task)
            left[role] -= 1
    return spared


def _worth(demand: Demand, local: Sequence[int], entire: Sequence[int]) -> Fraction:
    cost = demand.share(entire, local=False)
    return demand.share(local, local=True) / cost if cost else Fraction(0)
