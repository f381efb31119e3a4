"""Queue quotas: what is in use, what is promised, and whether more may be admitted or placed."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

from tests.reference.world import (
    CHARGED,
    count,
    free_cards,
    in_task_order,
    members,
    missing,
    queue_open,
    service_type,
)


def in_use(world, queue, what, *, statuses=(*CHARGED, "pipelined")):
    """What a queue's tasks take of ``cpu``, ``memory`` or a card type."""
    total = 0
    for task in world["tasks"].values():
        if task["queue"] == queue and task["status"] in statuses:
            total += _amount(task, what)
    return total


def _amount(task, what):
    if what == "cpu":
        return task["charge_cpu"]
    if what == "memory":
        return task["charge_memory"]
    return task["milli"] if task["card"] == what else 0


def limit(world, name, what):
    """The queue's ceiling; None where there is none."""
    queue = world["queues"][name]
    if what == "cpu":
        return queue.cpu_milli
    if what == "memory":
        return queue.memory_mib
    return (queue.card_quota or {}).get(what, 0)


def share(world, name):
    """Largest used part of a ceiling; 1 where nothing is allowed and something is used."""
    largest = 0.0
    for what in ("cpu", "memory", *sorted(world["resource"])):
        used, most = in_use(world, name, what), limit(world, name, what)
        if used > 0 and most is not None:
            largest = max(largest, used / most if most else 1.0)
    return largest


def allows(world, task, card):
    """One more task on a card of one type: inside the queue's quota?"""
    name = task["queue"]
    if not queue_open(world, name):
        return False
    for what, asked in (("cpu", task["charge_cpu"]), ("memory", task["charge_memory"])):
        most = limit(world, name, what)
        if asked and most is not None and in_use(world, name, what) + asked > most:
            return False
    if card is not None and (task["named"] or world["queues"][name].card_quota is not None):
        return in_use(world, name, card) + task["milli"] <= limit(world, name, card)
    return True


def nameless(world, gang):
    """A member asks for cards without naming them, in a queue that has a quota by card type."""
    asks = any(t["milli"] and not t["named"] and not t["implied"] for t in members(world, gang, "pending", "pipelined"))
    return asks and world["queues"][world["gangs"][gang].queue].card_quota is not None


# --- admission -------------------------------------------------------------------------------------------------------


def demand(world, tasks):
    """CPU, memory, cards by choice, and cards that no node has, of several tasks."""
    total = {"cpu": 0, "memory": 0, "cards": {}, "unnamed": {}, "unknown": {}}
    for task in tasks:
        total["cpu"] += task["charge_cpu"]
        total["memory"] += task["charge_memory"]
        if task["choices"]:
            queue = world["queues"].get(task["queue"])
            counts = task["implied"] and queue is not None and queue.card_quota is not None
            kind, key = "cards" if task["named"] or counts else "unnamed", tuple(task["choices"])
        elif task["milli"]:
            kind, key = "unknown", task["card_key"]
        else:
            continue
        total[kind][key] = total[kind].get(key, 0) + task["milli"]
    return total


def minimum(world, gang):
    """What a gang needs beyond what it has, to reach minMember."""
    wanted = missing(world, gang)
    if not wanted:
        return demand(world, [])
    group = world["gangs"][gang]
    if nobody_makes_the_rest(world, gang):
        return demand(world, [])
    seen = demand(world, in_task_order(members(world, gang, "pending"))[:wanted])
    if group.min_resources is None and not group.card_request:
        return seen
    total = demand(world, [])
    for name, milli in sorted(group.card_request.items()):
        known = tuple(part for part in name.split("|") if part in world["resource"])
        kind, key = ("cards", known) if known else ("unknown", name)
        total[kind][key] = total[kind].get(key, 0) + milli
    named = {world["resource"][choice[0]] for choice in total["cards"]}
    for resource, number in group.min_scalars.items():
        choice = tuple(sorted(card for card, counted in world["resource"].items() if counted == resource))
        if choice and number and resource not in named:
            total["unnamed"][choice] = 1000 * number
    with_cards = any(total[kind] for kind in ("cards", "unnamed", "unknown"))
    if group.min_resources is not None and not (world["options"]["cardUnlimitedCpuMemory"] and with_cards):
        total["cpu"], total["memory"] = group.min_resources.cpu_milli, group.min_resources.memory_mib
    done = members(world, gang, "pipelined", "allocated", "bound", "running", "succeeded", "gated")
    more = _less(_less(total, demand(world, done)), seen)
    for what in ("cpu", "memory"):
        seen[what] += more[what]
    for kind in ("cards", "unnamed", "unknown"):
        for key, milli in more[kind].items():
            seen[kind][key] = seen[kind].get(key, 0) + milli
    return seen


def nobody_makes_the_rest(world, gang):
    """One of its members has ended, others never came, and it belongs to nobody who would make them."""
    group = world["gangs"][gang]
    there = count(world, gang, ("pipelined", "allocated", "bound", "running", "succeeded", "gated", "pending"))
    ended = count(world, gang, ("succeeded", "failed"))
    return bool(ended) and there < group.min_member and not group.owner_kind and not group.waits_for_admission


def _less(total, held):
    """What is left of a demand beside another one; never below zero."""
    left = {what: max(0, total[what] - held[what]) for what in ("cpu", "memory")}
    # What members hold of cards that nobody need name counts whatever they call it.
    by_kind = {kind: dict(held[kind]) for kind in ("cards", "unnamed", "unknown")}
    for choice in total["unnamed"]:
        inside = [m for kind in ("cards", "unnamed") for key, m in held[kind].items() if set(key) <= set(choice)]
        by_kind["unnamed"][choice] = sum(inside)
    for kind, taken in by_kind.items():
        rest = {key: milli - taken.get(key, 0) for key, milli in total[kind].items()}
        left[kind] = {key: milli for key, milli in rest.items() if milli > 0}
    return left


def promised(world, queue, what):
    """What is promised to admitted gangs: cpu, memory, or milli-cards by choice (``what="cards"``)."""
    found = [held for gang, held in world["promised"].items() if queue is None or world["gangs"][gang].queue == queue]
    if what != "cards":
        return sum(held[what] for held in found)
    cards = {}
    for held in found:
        for kind in ("cards", "unnamed"):
            for choice, milli in held[kind].items():
                cards[choice] = cards.get(choice, 0) + milli
    return cards


def renew(world, gang):
    """Bring the promise to a gang up to date."""
    world["promised"].pop(gang, None)
    group = world["gangs"][gang]
    starts = not group.problem and not group.unsupported and world["hooks"].all("well_written", world, gang)
    usable = group.queue in world["queues"] and not world["queues"][group.queue].problem
    if world["phase"][gang] == "Inqueue" and usable and starts and not nobody_makes_the_rest(world, gang):
        world["promised"][gang] = minimum(world, gang)


def elastic(world, queue, what):
    """What a queue's gangs hold beyond their minimum: the last members by name could go."""
    total = 0
    for gang, group in world["gangs"].items():
        if group.queue != queue:
            continue
        held = members(world, gang, *CHARGED)
        least = max(0, group.min_member - count(world, gang, ("succeeded",)))
        for task in held[least:]:
            total += _amount(task, what)
    return total


def admits(world, gang):
    """May the gang ask for room: inside its queue's quota and the over-committed cluster?"""
    asked = minimum(world, gang)
    if not queue_open(world, world["gangs"][gang].queue) or not within_quota(world, gang):
        return False
    return not asked["unknown"] and _within_over_commit(world, gang, asked)


def within_quota(world, gang, *, admission=True):
    """The queue's quota alone; for admission promises count and what goes beyond minimums does not."""
    name = world["gangs"][gang].queue
    asked = minimum(world, gang)

    def beyond(what):
        return world["elastic"][name, what] if admission else 0

    for what in ("cpu", "memory"):
        most = limit(world, name, what)
        used = in_use(world, name, what) - beyond(what) + (promised(world, name, what) if admission else 0)
        if asked[what] and most is not None and asked[what] + used > most:
            return False
    for key, milli in asked["unknown"].items():
        if milli > sum((world["queues"][name].card_quota or {}).get(part, 0) for part in key.split("|")):
            return False
    left = {card: limit(world, name, card) - in_use(world, name, card) + beyond(card) for card in world["resource"]}
    before = promised(world, name, "cards") if admission else {}
    cards = dict(asked["cards"])
    if world["queues"][name].card_quota is not None:
        # A queue that counts cards counts those too that are asked for by their resource alone.
        for choice, milli in asked["unnamed"].items():
            cards[choice] = cards.get(choice, 0) + milli
    return not cards or _serves(cards, before, left)


def _within_over_commit(world, gang, asked):
    factor = Fraction(str(world["options"]["overCommitFactor"]))
    taking = "reclaim" in world["actions"] and (
        service_type(world, gang) == "inference"
        or (service_type(world, gang) == "unknown" and world["options"]["unknownReclaimer"] == "allow")
    )
    for what in ("cpu", "memory"):
        if not asked[what]:
            continue
        total = sum(node.cpu_milli if what == "cpu" else node.memory_mib for node in world["nodes"].values())
        used = 0
        for task in world["tasks"].values():
            if task["node"] is not None and task["status"] in (*CHARGED, "unknown", "pipelined"):
                used += task["need"][what]
        used = max(0, used - (_could_be_taken(world, what) if taking else 0))
        if asked[what] + used + promised(world, None, what) > int(total * factor):
            return False
    cards = dict(asked["cards"])
    for choice, milli in asked["unnamed"].items():
        cards[choice] = cards.get(choice, 0) + milli
    if not cards:
        return True
    left = {}
    for card in world["resource"]:
        total = 1000 * sum(c.count for node in world["nodes"].values() for c in node.cards if c.card == card)
        used = total - _free_in_all(world, card)
        used = max(0, used - (_could_be_taken(world, card) if taking else 0))
        left[card] = int(total * factor) - used
    return _serves(cards, promised(world, None, "cards"), left)


def _free_in_all(world, card):
    return sum(max(0, milli) for node in world["nodes"] for milli in free_cards(world, node, card, future=True))


def _could_be_taken(world, what):
    return sum(
        in_use(world, name, what, statuses=CHARGED)
        for name, queue in world["queues"].items()
        if queue.reclaimable and queue.service_type != "inference"
    )


def _serves(new, before, left):
    """Whether the demands fit what is left, each of them on any of the cards of its choice (Hall's condition)."""
    total = {}
    for part in (before, new):
        for choice, milli in part.items():
            if milli:
                total[frozenset(choice)] = total.get(frozenset(choice), 0) + milli
    choices = sorted(total, key=sorted)
    for start in (frozenset(choice) for choice, milli in new.items() if milli):
        for size in range(len(choices)):
            for others in combinations([c for c in choices if c != start], size):
                union = _connected(start, others)
                if union is None:
                    continue
                asked = sum(milli for choice, milli in total.items() if choice <= union)
                if asked > sum(left[card] for card in union):
                    return False
    return True


def _connected(start, others):
    """The union of ``start`` and the others if they hang together, else None."""
    union, rest = set(start), list(others)
    while rest:
        touching = [choice for choice in rest if choice & union]
        if not touching:
            return None
        for choice in touching:
            union |= choice
            rest.remove(choice)
    return frozenset(union)
