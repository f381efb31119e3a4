"""What must hold after any session, counted again from the snapshot and the result alone."""

from __future__ import annotations

from collections import Counter

import msgspec

from tests.reference.company import COMING, PRESENT, far_enough, near_enough
from tests.reference.placement import admitted
from tests.reference.policy import install
from tests.reference.reclaim import SYSTEM_CLASSES
from tests.reference.world import CHARGED, HOLDING, READY, capacity, members, open_world, put, service_type

CODES = (
    "Suspended",
    "Misconfigured",
    "NotSupported",
    "TimedOut",
    "NoMatchingCard",
    "QueueClosed",
    "ExceedsMaxQuota",
    "GangIncomplete",
    "WaitingForReclaim",
    "NotAllowedInQueue",
    "WaitingForQuota",
    "OverCommitted",
    "WaitingForCards",
    "NoNodeMatches",
    "WaitingForResources",
    "Fragmented",
    "BehindHigherPriority",
    "ReclaimForbidden",
    "BackingOff",
    "PendingEvaluation",
)


def broken(snapshot, result, options, now):
    """Everything that does not hold, one sentence each; empty is good."""
    world = install(open_world(snapshot, options, now, None))
    found = list(_decisions_are_possible(world, result))
    found += _evictions_are_allowed(world, result)
    _apply(world, result)
    found += _nodes_have_room(world, result)
    found += _company_is_kept(world, result)
    found += _cards_are_used_once(world, result)
    found += _quotas_hold(world, result)
    found += _gangs_are_whole(world, result)
    found += _books_agree(world, result)
    found += _reasons_are_given(world, result)
    return found


def _apply(world, result):
    for eviction in result.evictions:
        task = world["tasks"][eviction.pod]
        put(task, "releasing", task["node"], task["card"], task["indices"])
    for status, places in (("allocated", result.binds), ("pipelined", result.pipelined)):
        for place in places:
            put(world["tasks"][place.pod], status, place.node, place.card or None, place.card_indices)


def _decisions_are_possible(world, result):
    for kind, places in (("bind", result.binds), ("promise", result.pipelined)):
        for place in places:
            task = world["tasks"].get(place.pod)
            if task is None or task["status"] != "pending" or task["gang"] is None:
                yield f"{kind} of {place.pod}, which does not wait"
            elif place.node not in world["nodes"] or not admitted(world, _without_company(task), place.node):
                yield f"{kind} of {place.pod} to {place.node}, where it may not be"
            elif task["milli"] and place.card not in task["choices"]:
                yield f"{kind} of {place.pod} on {place.card}, which it does not ask for"
    twice = [pod for pod, n in Counter(p.pod for p in (*result.binds, *result.pipelined)).items() if n > 1]
    if twice:
        yield f"decided twice: {twice}"


def _without_company(task):
    """The task as if it had to do with no other: whom it is near is looked at when all are in place."""
    return {**task, "pod": msgspec.structs.replace(task["pod"], relations=None, labels={}, claims=())}


def _company_is_kept(world, result):
    for kind, places, states in (("bind", result.binds, PRESENT), ("promise", result.pipelined, COMING)):
        for place in places:
            if not far_enough(world, world["tasks"][place.pod], place.node, states):
                yield f"{kind} of {place.pod} to {place.node}, next to whom it must not be"
            if not near_enough(world, world["tasks"][place.pod], place.node, PRESENT):
                yield f"{kind} of {place.pod} to {place.node}, away from whom it must be near"


def _evictions_are_allowed(world, result):
    whole = Counter()
    for eviction in result.evictions:
        task, gang = world["tasks"][eviction.pod], world["gangs"][eviction.gang]
        queue, taker = world["queues"][gang.queue], world["gangs"][eviction.reclaimer]
        whole[eviction.gang] += 1
        kind = service_type(world, eviction.reclaimer)
        if kind != "inference" and not (kind == "unknown" and world["options"]["unknownReclaimer"] == "allow"):
            yield f"{eviction.reclaimer} ({kind}) takes from {eviction.gang}"
        if service_type(world, eviction.gang) != "training":
            yield f"{eviction.gang} is no training"
        if not queue.reclaimable or gang.queue == taker.queue:
            yield f"{eviction.gang} is taken from queue {gang.queue}"
        if gang.preemptable is False or task["pod"].preemptable is False:
            yield f"{eviction.pod} is protected"
        if task["pod"].namespace == "kube-system" or task["pod"].priority_class in SYSTEM_CLASSES:
            yield f"{eviction.pod} belongs to the system"
        if task["status"] not in ("running", "bound"):
            yield f"{eviction.pod} is {task['status']}"
    for gang, number in whole.items():
        in_place = len(members(world, gang, *CHARGED))
        left = len(members(world, gang, *READY)) - number
        alone = not world["gangs"][gang].evicted_policy.value and left >= world["gangs"][gang].min_member
        if number != in_place and not alone:
            yield f"{gang} loses {number} of {in_place} members"


def _nodes_have_room(world, result):
    for name in sorted({place.node for place in (*result.binds, *result.pipelined)}):
        node = world["nodes"][name]
        here = [task for task in world["tasks"].values() if task["node"] == name]
        for what in ("cpu", "memory", "pods", *node.scalars):
            held = sum(t["need"].get(what, 0) for t in here if t["status"] in HOLDING)
            leaving = sum(t["need"].get(what, 0) for t in here if t["status"] == "releasing")
            promised = sum(t["need"].get(what, 0) for t in here if t["status"] == "pipelined")
            new = sum(t["need"].get(what, 0) for t in here if t["status"] == "allocated")
            full = capacity(node, what)
            if (new and held > full) or ((new or promised) and held - leaving + promised > full):
                yield f"{name}: {what} {held} held, {leaving} leave, {promised} promised, {full} there"


def _cards_are_used_once(world, result):
    decided = {place.pod for place in (*result.binds, *result.pipelined)}
    held, later, new, soon = Counter(), Counter(), set(), set()
    for task in world["tasks"].values():
        if task["node"] is None or task["card"] is None:
            continue
        if task["key"] in decided and len(set(task["indices"])) != (task["whole"] or 1):
            yield f"{task['key']} holds cards {task['indices']}"
        for index in task["indices"]:
            place = (task["node"], task["card"], index)
            each = task["share"] or 1000
            if task["status"] in HOLDING:
                held[place] += each
            if task["status"] in (*HOLDING, "pipelined") and task["status"] != "releasing":
                later[place] += each
            if task["key"] in decided:
                (new if task["status"] == "allocated" else soon).add(place)
    for place in sorted(new | soon):
        if (place in new and held[place] > 1000) or later[place] > 1000:
            yield f"card {place} holds {held[place]} and then {later[place]} thousandths"
        count = sum(cards.count for cards in world["nodes"][place[0]].cards if cards.card == place[1])
        if not 0 <= place[2] < count:
            yield f"card {place} does not exist"


def _quotas_hold(world, result):
    for name, queue in world["queues"].items():
        mine = [t for t in world["tasks"].values() if t["queue"] == name and t["status"] in (*CHARGED, "pipelined")]
        new = [t for t in mine if t["status"] in ("allocated", "pipelined")]
        for what, limit in (("charge_cpu", queue.cpu_milli), ("charge_memory", queue.memory_mib)):
            if limit is not None and any(t[what] for t in new) and sum(t[what] for t in mine) > limit:
                yield f"{name}: {what} is over its quota"
        for card in {t["card"] for t in new if t["card"] and (t["named"] or queue.card_quota is not None)}:
            used = sum(t["milli"] for t in mine if t["card"] == card)
            if used > (queue.card_quota or {}).get(card, 0):
                yield f"{name}: {used} of {card}, quota {queue.card_quota}"


def _gangs_are_whole(world, result):
    started = {world["tasks"][bind.pod]["gang"] for bind in result.binds}
    for gang in sorted(started):
        have, least = len(members(world, gang, *READY)), world["gangs"][gang].min_member
        if have < least:
            yield f"{gang} is started with {have} of {least} members"
    for reclaim in result.reclaims:
        have = len(members(world, reclaim.reclaimer, *READY, "pipelined"))
        if have < world["gangs"][reclaim.reclaimer].min_member:
            yield f"{reclaim.reclaimer} takes from others and still cannot run"


def _books_agree(world, result):
    if sorted(g.name for g in result.podgroups) != sorted(world["gangs"]):
        yield "not every gang is in the result"
    if sorted(q.name for q in result.queues) != sorted(world["queues"]):
        yield "not every queue is in the result"
    for queue in result.queues:
        mine = [t for t in world["tasks"].values() if t["queue"] == queue.name and t["status"] in CHARGED]
        cards = Counter()
        for task in mine:
            if task["card"]:
                cards[task["card"]] += task["milli"]
        if dict(queue.allocated.cards) != {card: milli for card, milli in cards.items() if milli}:
            yield f"{queue.name}: allocated {queue.allocated.cards}, counted {dict(cards)}"
        if queue.allocated.cpu_milli != sum(t["charge_cpu"] for t in mine):
            yield f"{queue.name}: allocated cpu {queue.allocated.cpu_milli}"
    for gang in result.podgroups:
        if gang.ready != len(members(world, gang.name, *READY)):
            yield f"{gang.name}: ready {gang.ready}"
        if gang.bound != len(members(world, gang.name, *CHARGED)):
            yield f"{gang.name}: bound {gang.bound}"
    evicted = Counter(e.reclaimer for e in result.evictions)
    if evicted != Counter({r.reclaimer: sum(len(v.pods) for v in r.victims) for r in result.reclaims}):
        yield "evictions and reclaims differ"


def _reasons_are_given(world, result):
    reasons = Counter(reason.podgroup for reason in result.reasons)
    for reason in result.reasons:
        if reason.code.value not in CODES:
            yield f"{reason.podgroup}: code {reason.code}"
        if not reason.message:
            yield f"{reason.podgroup}: no message"
    for gang in sorted(world["gangs"]):
        waits = bool(members(world, gang, "pending", "pipelined")) or (
            world["gangs"][gang].min_member > len(members(world, gang, *READY)) and not _over(world, gang)
        )
        if reasons[gang] > 1 or (waits and not reasons[gang]):
            yield f"{gang} waits and has {reasons[gang]} reasons"
        if reasons[gang] and not waits and not members(world, gang, "gated", "releasing", "failed", "unknown"):
            yield f"{gang} needs nothing and has a reason"


def _over(world, gang):
    """It is done or on its way out: nothing is asked for any more."""
    return world["gangs"][gang].phase.value == "Completed" or bool(
        members(world, gang, "failed", "releasing", "unknown")
    )
