"""resourcequota: quotas of namespaces, for pods that are still to be made."""

from __future__ import annotations

import math

from tests.reference.world import members, missing


class ResourceQuota:
    """used + let in + to be made within hard."""

    def __init__(self, arguments):
        self.asked = None

    def enqueueable(self, world, gang):
        if self.asked is None:
            # What pods the session itself binds changes nothing about which pods exist.
            self.asked = {name: _to_make(world, name) for name in world["gangs"]}
        mine = self.asked[gang]
        for quota in world["resource_quotas"]:
            if quota.namespace != world["gangs"][gang].namespace or not _about(world, quota, gang, mine):
                continue
            used = _used(world, quota)
            for what, hard in quota.hard.items():
                others = sum(
                    asked.get(what, 0)
                    for other, asked in self.asked.items()
                    if other != gang
                    and other in world["promised"]
                    and world["gangs"][other].namespace == quota.namespace
                    and asked
                    and _about(world, quota, other, asked)
                )
                if mine.get(what, 0) > 0 and mine[what] + used.get(what, 0) + others > hard:
                    return -1
        return 1


def _to_make(world, gang):
    group = world["gangs"][gang]
    number = missing(world, gang) - len(members(world, gang, "pending"))
    if number <= 0 or group.min_resources is None:
        return {}
    whole = {"cpu": group.min_resources.cpu_milli, "memory": group.min_resources.memory_mib, **group.min_scalars}
    least = max(group.min_member, number)
    return {**{what: math.ceil(amount * number / least) for what, amount in whole.items()}, "pods": number}


def _about(world, quota, gang, asked):
    return _covers(quota, world["gangs"][gang].priority_class, any(n for what, n in asked.items() if what != "pods"))


def _covers(quota, priority, asks):
    if quota.priority_classes is not None and priority not in quota.priority_classes:
        return False
    if priority in quota.other_classes:
        return False
    for scope in quota.scopes:
        kind = scope.removeprefix("!")
        if kind == "BestEffort":
            true = not asks
        elif kind in ("NotBestEffort", "NotTerminating"):
            true = asks if kind == "NotBestEffort" else True
        elif kind == "PriorityClass":
            true = bool(priority)
        else:
            true = kind not in ("Terminating", "CrossNamespacePodAffinity")
        if true == scope.startswith("!"):
            return False
    return True


def _used(world, quota):
    if quota.used is not None:
        return quota.used
    total = {}
    for task in world["tasks"].values():
        pod = task["pod"]
        if pod.namespace != quota.namespace or pod.phase.value in ("Succeeded", "Failed"):
            continue
        held = {"cpu": pod.cpu_milli, "memory": pod.memory_mib, **pod.scalars}
        if pod.card is not None and pod.card.resource:
            held[pod.card.resource] = held.get(pod.card.resource, 0) + pod.card.milli // 1000
        if _covers(quota, pod.priority_class, any(held.values())):
            for what, amount in {**held, "pods": 1}.items():
                total[what] = total.get(what, 0) + amount
    return total
