"""A naive scheduler for the founding policy: enqueue, allocate, backfill, reclaim, in plain loops.

It decides what the documents say and nothing faster: victims of a reclaim are found by trying every set of gangs.
"""

from __future__ import annotations

from tests.reference import pods
from tests.reference.keeping import elect, reserve, shuffle
from tests.reference.placement import admitted, allows, curable, on, place, take
from tests.reference.policy import FOUNDING, install, options_of
from tests.reference.queued_pods import seen
from tests.reference.quota import elastic, minimum, renew
from tests.reference.reclaim import breaks_a_gang, choose_victims, units_near
from tests.reference.startable import DryRun
from tests.reference.taking import TAKING
from tests.reference.world import (
    SCHEDULED,
    cards_on,
    count,
    fits,
    free_cards,
    in_task_order,
    members,
    open_world,
    pipelined,
    put,
    ready,
    schedulable,
    short_of_start,
    undo,
    valid,
    waiting_since,
)

__all__ = ["FOUNDING", "decide"]


def decide(snapshot, *, now, policy=None, options=None, memory=None, before=None):
    """Binds, promises and evictions by pod, phases by gang, and who took from whom.

    Args:
        policy: a parsed policy whose plugins all have naive versions; None = the founding one.
        options: arguments of capacity-card over those of the founding policy.
        memory: what the engine's session before left. before: the ``seen`` that this function gave for that session;
            only a policy that takes pods one by one asks for it.
    """
    world = install(open_world(snapshot, options_of(policy, options), now, memory), policy)
    world["memory"], world["before"], world["nominated"] = memory, before, {}
    world["snapshot"], world["policy"] = snapshot, policy
    _apply_reservations(world, memory)
    for action in world["actions"]:
        ACTIONS[action](world)
    return {
        "binds": _placed(world, "allocated"),
        "pipelined": _placed(world, "pipelined"),
        "evictions": sorted(world["evictions"]),
        "reclaims": sorted(world["reclaims"]),
        "phases": {gang: _phase_after(world, gang) for gang in sorted(world["gangs"])},
        "election": world["election"],
        "queue": world["pod_queue"].entries() if "pod_queue" in world else None,
        "seen": seen(world),
    }


def _placed(world, status):
    return {
        task["key"]: (task["node"], task["card"] or "", task["indices"])
        for task in sorted(world["tasks"].values(), key=lambda task: task["key"])
        if task["status"] == status
    }


def _phase_after(world, gang):
    on_nodes = count(world, gang, SCHEDULED)
    if on_nodes and on_nodes >= world["gangs"][gang].min_member:
        return "Completed" if count(world, gang, ("succeeded", "failed")) == len(members(world, gang)) else "Running"
    if count(world, gang, ("running",)):
        return "Unknown"
    if world["phase"][gang] == "Completed" and not members(world, gang):
        return "Completed"
    return "Inqueue" if world["phase"][gang] == "Inqueue" else "Pending"


# --- turns -----------------------------------------------------------------------------------------------------------


def _queue_order(world, name):
    queue = world["queues"][name]
    return (*world["hooks"].key("queue_order", world, name), queue.created, name)


def _gang_order(world, gang):
    return (*world["hooks"].key("gang_order", world, gang), waiting_since(world, gang), gang)


class _Turns:
    """Again and again the best gang of the best queue; a gang's place is that of the moment it was put in."""

    def __init__(self, world, gangs):
        self.world, self.waiting = world, {}
        for gang in gangs:
            self.put(gang)

    def put(self, gang):
        queue = self.world["gangs"][gang].queue
        self.waiting.setdefault(queue, []).append((_gang_order(self.world, gang), gang))

    def next(self):
        if not self.waiting:
            return None
        queue = min(self.waiting, key=lambda name: _queue_order(self.world, name))
        best = min(self.waiting[queue])
        self.waiting[queue].remove(best)
        if not self.waiting[queue]:
            del self.waiting[queue]
        return best[1]

    def drop(self, queue):
        """The queue takes no more turns."""
        self.waiting.pop(queue, None)


def _candidate(world, gang):
    """Admitted, complete, and with a member that waits."""
    return (
        world["phase"][gang] != "Pending"
        and bool(members(world, gang, "pending", "pipelined"))
        and schedulable(world, gang)
        and valid(world, gang)
    )


# --- promises of earlier sessions ------------------------------------------------------------------------------------


def _apply_reservations(world, memory):
    for held in sorted(memory.reservations, key=lambda r: r.pod) if memory else []:
        task = world["tasks"].get(held.pod)
        if task is None or held.node not in world["nodes"]:
            continue
        if task["status"] != "pending" or task["gang"] != held.gang or not schedulable(world, held.gang):
            continue
        options = [card for card in (task["choices"] or [None]) if allows(world, task, card)]
        if held.card:
            options = [card for card in options if card == held.card]
        if not admitted(world, task, held.node):
            continue
        changes = []
        if not take(world, task, held.node, options, changes, future=True) or task["card"] is None:
            continue
        indices = task["indices"]
        undo(changes)
        free = free_cards(world, held.node, held.card, future=True) if held.card else []
        each = task["share"] or 1000
        if held.card_indices and all(i < len(free) and free[i] >= each for i in held.card_indices):
            indices = held.card_indices
        card = next(
            card for card in options if on(world, held.node, card) and fits(world, task, held.node, card, future=True)
        )
        put(task, "pipelined", held.node, card, indices)


# --- actions ---------------------------------------------------------------------------------------------------------


def _enqueue(world):
    world["elastic"] = {
        (queue, what): elastic(world, queue, what)
        for queue in world["queues"]
        for what in ("cpu", "memory", *world["resource"])
    }
    order = []
    for phase in ("Inqueue", "Pending"):
        turns = _Turns(
            world, [g for g in sorted(world["gangs"]) if world["phase"][g] == phase and schedulable(world, g)]
        )
        while (gang := turns.next()) is not None:
            order.append(gang)
    said = _votes(world, order, None)
    first_refused = dict(world["refused_by"])
    # Where somebody is kept out who could start now, those who could go before those who could not.
    kept_out = [gang for gang in order if not said[gang] and DryRun(world).could(gang)]
    if kept_out:
        again = _votes(world, order, DryRun(world))
        if any(again[gang] for gang in kept_out):
            said = again
        else:
            world["refused_by"] = first_refused
    for gang in order:
        world["phase"][gang] = "Inqueue" if said[gang] else "Pending"
    for gang in order:
        renew(world, gang)


def _votes(world, order, room):
    """Whether each gang is admitted, given the promises to those before it."""
    for gang in order:
        world["promised"].pop(gang, None)
    said, later = {}, []
    for gang in order:
        if room is not None and world["hooks"].vote("enqueueable", world, gang) and not room.take(gang):
            later.append(gang)
        else:
            _vote(world, gang, said)
    for gang in later:
        _vote(world, gang, said)
    return said


def _vote(world, gang, said):
    against = world["hooks"].rejecter("enqueueable", world, gang)
    said[gang] = against is None
    world["refused_by"].pop(gang, None)
    if against is None:
        world["promised"][gang] = minimum(world, gang)
    elif hasattr(against, "only_room") and against.only_room(world, gang):
        world["refused_by"][gang] = "room"


def _allocate(world):
    if "enqueue" not in world["actions"]:
        # Without an enqueue action every gang counts as admitted.
        for gang in sorted(world["gangs"]):
            if world["phase"][gang] == "Pending" and schedulable(world, gang):
                world["phase"][gang] = "Inqueue"
                renew(world, gang)
    if world["hooks"].flat("queue_sort"):
        pods.run(world)
        return
    turns = _Turns(world, [gang for gang in sorted(world["gangs"]) if _candidate(world, gang)])
    while (gang := turns.next()) is not None:
        queue = world["gangs"][gang].queue
        if world["hooks"].any("overused", world, queue):
            turns.drop(queue)
        elif _allocate_turn(world, gang):
            turns.put(gang)


def _allocate_turn(world, gang):
    changes, failed = [], set()
    _settle(world, gang, changes)
    before = len(changes)
    for task in in_task_order(members(world, gang, "pending")):
        if task["best_effort"] or task["class"] in failed:
            continue
        if not place(world, task, changes):
            failed.add(task["class"])
            left = [t for t in members(world, gang, "pending") if t["class"] not in failed]
            if short_of_start(world, gang) > len(left):
                break
        elif ready(world, gang):
            break
    progress = len(changes) > before
    if changes and "backfill" in world["actions"] and (ready(world, gang) or pipelined(world, gang)):
        # Members that ask for nothing count as in place; where minMember needs them, they must have one.
        for task in in_task_order(members(world, gang, "pending")):
            if task["best_effort"] and short_of_start(world, gang):
                place(world, task, changes)
    if short_of_start(world, gang) or (not ready(world, gang) and not pipelined(world, gang)):
        if changes and pipelined(world, gang) and world["hooks"].any("holds_partly", world, gang):
            _hold_back(world, gang)
            renew(world, gang)
        else:
            undo(changes)
        return False
    if not ready(world, gang):
        _hold_back(world, gang)
    renew(world, gang)
    more = any(t["class"] not in failed and not t["best_effort"] for t in members(world, gang, "pending"))
    return progress and ready(world, gang) and more


def _settle(world, gang, changes):
    """Promises whose room is free by now are taken."""
    for task in in_task_order(members(world, gang, "pipelined")):
        _settle_one(world, task, changes)


def _settle_one(world, task, changes):
    node, card = task["node"], task["card"]
    attempt = [put(task, "pending")]
    options = [c for c in (task["choices"] or [None]) if allows(world, task, c) and card in (None, c)]
    if admitted(world, task, node, future=False) and take(world, task, node, options, attempt, future=False):
        changes += attempt
    else:
        undo(attempt)


def _hold_back(world, gang):
    for task in members(world, gang, "allocated"):
        put(task, "pipelined", task["node"], task["card"], task["indices"])


def _backfill(world):
    def best_effort(gang):
        return [task for task in in_task_order(members(world, gang, "pending")) if task["best_effort"]]

    turns = _Turns(world, [g for g in sorted(world["gangs"]) if _candidate(world, g) and best_effort(g)])
    while (gang := turns.next()) is not None:
        changes = []
        for task in best_effort(gang):
            placed = []
            if place(world, task, placed):
                if task["status"] == "pipelined":
                    undo(placed)
                else:
                    changes += placed
        if not ready(world, gang) or short_of_start(world, gang):
            undo(changes)


def _reclaim(world):
    """Each starving gang that the tide lets take anything tries once, all its waiting members together."""
    hooks = world["hooks"]
    starving = [g for g in sorted(world["gangs"]) if _candidate(world, g) and members(world, g, "pending")]
    asks = [g for g in starving if hooks.all("reclaimer", world, g) and hooks.first_tier_all("starving", world, g)]
    turns = _Turns(world, asks)
    while (gang := turns.next()) is not None:
        queue = world["gangs"][gang].queue
        if hooks.any("overused", world, queue):
            turns.drop(queue)
            continue
        _reclaim_turn(world, gang)


def _reclaim_turn(world, gang):
    changes, taken, placed, backed = [], [], [], []
    classes = {}
    for task in in_task_order(members(world, gang, "pending")):
        if not task["best_effort"] and task["pod"].preemption_policy != "Never":
            classes.setdefault((task["class"], _said_of(world, task)), []).append(task)
    for tasks in classes.values():
        _reclaim_class(world, gang, tasks, changes, taken, placed, backed)
    if len({task["class"] for task in backed}) > 1:
        taken = _reprieve(world, changes, taken, placed)
    if not placed or not pipelined(world, gang) or short_of_start(world, gang):
        undo(changes)
        return
    if not ready(world, gang):
        _hold_back(world, gang)
    renew(world, gang)
    for unit in taken:
        world["evictions"] += [(task["key"], gang) for task in unit["tasks"]]
    if taken:
        world["reclaims"].append((gang, tuple(sorted({unit["gang"] for unit in taken}))))


def _said_of(world, task):
    """What plugins say of one task beyond its class, node by node."""
    calls = world["hooks"].flat("task_filter")
    return tuple(tuple(call(world, task, name) for name in sorted(world["nodes"])) for call in calls)


def _reprieve(world, changes, taken, placed):
    """Somebody who was taken for the first kind of member may not be needed for all of them: try without each."""
    for unit in sorted(taken, key=lambda unit: (unit["level"], unit["work"], unit["name"]), reverse=True):
        fewer = [other for other in taken if other is not unit]
        if _again(world, changes, fewer, placed):
            taken = fewer
    if not _again(world, changes, taken, placed):
        placed.clear()
    return taken


def _again(world, changes, units, placed):
    """The whole attempt anew with these victims; False leaves everything as it was."""
    old = [(task, (task["status"], task["node"], task["card"], task["indices"])) for task, _ in changes]
    before = list(changes)
    undo(changes)
    if not breaks_a_gang(world, units):
        _evict(units, changes)
        if all(place(world, task, changes) for task in placed):
            return True
        undo(changes)
    for task, (status, node, card, indices) in old:
        put(task, status, node, card, indices)
    changes += before
    return False


def _evict(units, changes):
    for task in sorted((t for unit in units for t in unit["tasks"]), key=lambda task: task["key"]):
        changes.append(put(task, "releasing", task["node"], task["card"], task["indices"]))


def _reclaim_class(world, gang, tasks, changes, taken, placed, backed):
    """Place equal tasks, first on room that is there, then on room that others leave."""
    together, _ = _quota_room(world, tasks[0], len(tasks))
    wanted = tasks[:together]
    while wanted and place(world, wanted[0], changes):
        placed.append(wanted.pop(0))
    if not wanted:
        return
    _, alone = _quota_room(world, wanted[0], len(wanted))
    nodes = [
        name
        for name in sorted(world["nodes"])
        if curable(world, wanted[0], name)
        and world["hooks"].all("task_filter", world, wanted[0], name)
        and (
            not wanted[0]["milli"] or any(alone[card] and cards_on(world, name, card) for card in wanted[0]["choices"])
        )
    ]
    units = units_near(world, gang, wanted[0], nodes)
    for size in range(len(wanted), 0, -1):
        chosen = choose_victims(world, wanted[0], units, nodes, alone, size)
        if chosen is None:
            continue
        attempt = []
        _evict(chosen, attempt)
        if all(place(world, task, attempt) for task in wanted[:size]):
            changes += attempt
            taken += chosen
            placed += wanted[:size]
            backed += wanted[:size]
            return
        undo(attempt)


def _quota_room(world, task, most):
    """How many equal tasks the quota allows in all, and on each card type alone."""

    def fill(cards):
        held, done, cards = [], 0, list(cards)
        while done < most and cards:
            if not (world["hooks"].all("preemptive", world, task, cards[0]) and allows(world, task, cards[0])):
                cards.pop(0)
                continue
            # A stand-in that takes quota but no room.
            ghost = {**task, "key": f"{task['key']}#{done}", "status": "pipelined", "node": None, "card": cards[0]}
            world["tasks"][ghost["key"]] = ghost
            held.append(ghost["key"])
            done += 1
        for key in held:
            del world["tasks"][key]
        return done

    options = task["choices"] or [None]
    return fill(options), {card: fill([card]) for card in options}


# Naive actions by the name that a policy uses.
ACTIONS = {
    "enqueue": _enqueue,
    "elect": elect,
    "allocate": _allocate,
    "reserve": reserve,
    "backfill": _backfill,
    "reclaim": _reclaim,
    "shuffle": shuffle,
    **TAKING,
}
