"""The per-pod cycle in plain loops: sort, filter, score, permit, bind; preemption by trying.

What the queue of pods comes to is in :mod:`tests.reference.queued_pods`.
"""

from __future__ import annotations

from tests.reference import session as frame
from tests.reference.budgets import spared
from tests.reference.placement import admitted, allows, curable, on, score, take
from tests.reference.queued_pods import QueuedPods
from tests.reference.reclaim import SYSTEM_CLASSES
from tests.reference.world import CHARGED, fits, in_task_order, members, put, schedulable, undo


def run(world):
    """Every pod that is due has one cycle."""
    hooks, memory = world["hooks"], world["memory"]
    promised = [r for r in memory.reservations if world["tasks"][r.pod]["status"] == "pipelined"] if memory else []
    world["waits"] = {r.pod: r.expires for r in promised if not r.victims}
    world["backed"] = {r.pod for r in promised if r.victims}
    # How often those who keep a place had been tried when they got it, and those who lost it before the queue is read.
    world["attempts"] = {r.pod: r.attempts for r in promised}
    world["tries"] = {entry.pod: entry.attempts for entry in memory.queue} if memory else {}
    world["lost"], world["too_late"] = {}, set()
    for gang in sorted(world["gangs"]):
        _ask_again(world, gang)
    waiting = [
        task
        for gang in sorted(world["gangs"])
        if world["phase"][gang] != "Pending" and schedulable(world, gang)
        for task in members(world, gang, "pending")
    ]
    queue = world["pod_queue"] = QueuedPods(world, waiting)
    ours, tried = {task["key"]: task for task in waiting}, set()
    while due := [task for key, task in ours.items() if key in queue.aside and queue.due(task) and key not in tried]:
        tried |= {task["key"] for task in due}
        due.sort(key=lambda task: (*hooks.key("queue_sort", world, task), task["pod"].created, task["key"]))
        for task in due:
            if task["status"] == "pending" and queue.due(task):
                queue.take(task)
                world["tries"][task["key"]] = queue.attempts + 1
                if not _cycle(world, task):
                    queue.put_aside(task, world["nominated"].pop(task["key"], None))


def _cycle(world, task):
    """True when the pod has a place that is free, be it as one that waits for others."""
    for call in world["hooks"].flat("pre_filter"):
        answer = call(world, task)
        if answer is not None:
            if answer == "late":
                _let_go(world, task["gang"], task)
            return False
    changes = []
    if not _find(world, task, changes):
        _make_room(world, task)
        return False
    answer = _permit(world, task)
    if answer == "late":
        _let_go(world, task["gang"], task)
    if answer in ("late", "no"):
        undo(changes)
        return False
    if answer == "ok":
        _ask_again(world, task["gang"])
    else:
        _keep(world, task, answer)
    return True


def _keep(world, task, until):
    put(task, "pipelined", task["node"], task["card"], task["indices"])
    world["waits"][task["key"]] = until
    world["attempts"][task["key"]] = world["tries"].get(task["key"], 0)


def _lose(world, task):
    attempts = world["attempts"].pop(task["key"], 0)
    if "pod_queue" in world:
        world["pod_queue"].lose(task, attempts)
    else:
        world["lost"][task["key"]] = attempts


def _find(world, task, changes):
    """The best node where it fits now."""
    options = [card for card in (task["choices"] or [None]) if allows(world, task, card)]
    best = None
    for node in sorted(world["nodes"]):
        if not admitted(world, task, node, future=False) or not world["hooks"].all("task_filter", world, task, node):
            continue
        if any(on(world, node, card) and fits(world, task, node, card, future=False) for card in options):
            points = score(world, task, node) + world["hooks"].total("task_score", world, task, node)
            if best is None or points > best[0]:
                best = (points, node)
    return best is not None and take(world, task, best[1], options, changes, future=False)


def _permit(world, task):
    """``ok``, ``late``, or until when to wait: the longest."""
    longest = "ok"
    for call in world["hooks"].flat("permit"):
        answer = call(world, task)
        if answer == "late":
            return answer
        if answer != "ok" and (longest == "ok" or answer > longest):
            longest = answer
    return longest


def _ask_again(world, gang):
    """Those that keep a place, when one of them is bound or a session begins."""
    for task in in_task_order(members(world, gang, "pipelined")):
        if task["status"] != "pipelined":
            continue
        if task["key"] not in world["waits"]:
            _take_promised(world, gang, task)
            continue
        answer = _permit(world, task)
        if answer not in ("ok", "late") and world["now"] < world["waits"][task["key"]]:
            continue
        if answer == "ok":
            kept = put(task, "pending")
            _, (_, node, card, _) = kept
            options = [c for c in (task["choices"] or [None]) if allows(world, task, c) and card in (None, c)]
            if not (admitted(world, task, node, future=False) and take(world, task, node, options, [], future=False)):
                undo([kept])
                continue
        else:
            put(task, "pending")
            _lose(world, task)
            _let_go(world, gang, task, lost=True)
        world["waits"].pop(task["key"], None)


def _take_promised(world, gang, task):
    """Room that was made for it is free: it needs permission like anybody."""
    changes = []
    frame._settle_one(world, task, changes)
    if not changes:
        return
    world["backed"].discard(task["key"])
    answer = _permit(world, task)
    if answer == "ok":
        _ask_again(world, gang)
    elif answer == "late":
        put(task, "pending")
        _let_go(world, gang, task)
    else:
        _keep(world, task, answer)


def _let_go(world, gang, but, lost=False):
    """The group is too late: nobody keeps a place, and where somebody had one, none takes it again at once."""
    for task in members(world, gang, "pipelined"):
        if task is not but and (task["key"] in world["waits"] or task["key"] in world["backed"]):
            world["waits"].pop(task["key"], None)
            put(task, "pending")
            _lose(world, task)
            lost = True
    if lost:
        world["too_late"].add(gang)
        for task in members(world, gang, "pending") if "pod_queue" in world else ():
            world["pod_queue"].rest(task)


# --- preemption ------------------------------------------------------------------------------------------------------


def _make_room(world, task):
    if not any(True for _ in world["hooks"].flat("post_filter")) or task["pod"].preemption_policy == "Never":
        return
    best = None
    for node in sorted(world["nodes"]):
        if not admitted(world, task, node) and not curable(world, task, node):
            continue
        victims = [
            other
            for other in world["tasks"].values()
            if other["node"] == node
            and other["status"] in CHARGED
            and other["gang"] is not None
            and other["pod"].priority < task["pod"].priority
            and other["pod"].preemptable is not False
            and other["pod"].namespace != "kube-system"
            and other["pod"].priority_class not in SYSTEM_CLASSES
        ]
        chosen = _needed(world, task, node, victims) if victims else None
        if chosen is not None and (best is None or chosen < best):
            best = chosen
    if best is not None:
        _evict(world, task, best[-2], best[-1])


def _needed(world, task, node, victims):
    """The rules' key of the node, its name, and the keys of those who have to leave; None = not even all are enough."""
    victims = sorted(victims, key=lambda t: (-t["pod"].priority, _began(t), t["key"]))
    kept = spared(world, victims)
    if not _fits_without(world, task, node, victims):
        return None
    leaving = list(victims)
    for victim in sorted(victims, key=lambda t: t["key"] not in kept):
        fewer = [other for other in leaving if other is not victim]
        if _fits_without(world, task, node, fewer):
            leaving = fewer
    top = max((t["pod"].priority for t in leaving), default=-(1 << 31))
    return (
        sum(1 for t in leaving if t["key"] in kept),
        top,
        sum(t["pod"].priority + (1 << 31) for t in leaving),
        len(leaving),
        -min((_began(t) for t in leaving if t["pod"].priority == top), default=0.0),
        node,
        [t["key"] for t in leaving],
    )


def _began(task):
    return task["pod"].created if task["pod"].started is None else task["pod"].started


def _fits_without(world, task, node, leaving):
    changes = [put(other, "releasing", other["node"], other["card"], other["indices"]) for other in leaving]
    options = [card for card in (task["choices"] or [None]) if allows(world, task, card)]
    let_in = admitted(world, task, node) and world["hooks"].all("task_filter", world, task, node)
    found = let_in and take(world, task, node, options, changes, future=True)
    undo(changes)
    return found


def _evict(world, task, node, keys):
    """The victims and those who fall with them."""
    falling = set(keys)
    for key in keys:
        gang = world["tasks"][key]["gang"]
        ends = world["gangs"][gang].evicted_policy.value in ("AbortJob", "RestartJob", "TerminateJob")
        if world["falls_whole"] or ends:
            falling |= {other["key"] for other in members(world, gang, *CHARGED)}
    changes = []
    for key in sorted(falling):
        other = world["tasks"][key]
        changes.append(put(other, "releasing", other["node"], other["card"], other["indices"]))
    options = [card for card in (task["choices"] or [None]) if allows(world, task, card)]
    if not admitted(world, task, node) or not take(world, task, node, options, changes, future=True):
        undo(changes)
        return
    world["backed"].add(task["key"])
    world["nominated"][task["key"]] = node
    world["evictions"] += [(key, task["gang"]) for key in sorted(falling)]
    world["reclaims"].append((task["gang"], tuple(sorted({world["tasks"][key]["gang"] for key in falling}))))
