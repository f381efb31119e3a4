"""Binds of earlier per-pod cycles that the cluster has not shown yet: their pods keep their places meanwhile."""

from scheduler_core.framework.pod_cache import PodCache
from scheduler_core.framework.session import Session
from scheduler_core.model.memory import AssumedPod
from scheduler_core.state.cluster import Place
from scheduler_core.state.status import PENDING, TaskStatus


def apply_assumed(session: Session) -> None:
    """Confirm, forget or expire what was assumed, and put the rest in place; O(assumed pods)."""
    if not session.memory.assumed:
        return
    cache = PodCache(session.memory.assumed)
    session.pod_cache = cache
    cache.expire(session.now)
    slots = session.cluster.workspace.slot_of
    for entry in cache.dump():
        task = slots.get(entry.pod, -1)
        if task < 0 or (entry.uid and session.tasks.pod(task).uid != entry.uid):
            cache.forget(entry.pod)
        elif session.tasks.status[task] != PENDING:
            cache.add(entry.pod)
        else:
            place = _place(session, entry)
            if place is None:
                cache.forget(entry.pod)
            else:
                session.cluster.move(task, place)


def _place(session: Session, entry: AssumedPod) -> Place | None:
    """Where the pod is believed to be; None when the node or its cards are not there any more."""
    node = session.axes.node_index.get(entry.node, -1)
    card = session.axes.card_index.get(entry.card, -1) if entry.card else -1
    if node < 0 or (entry.card and card < 0):
        return None
    if card >= 0 and any(index >= len(session.cards.free_now(card, node)) for index in entry.card_indices):
        return None
    return Place(TaskStatus.BOUND, node, card, entry.card_indices)


def assume(session: Session, task: int, seconds: float) -> None:
    """A pod was bound: believe it for so long."""
    place, pod = session.cluster.place_of(task), session.tasks.pod(task)
    cache = session.pod_cache
    cache.assume(
        AssumedPod(
            pod=pod.key, uid=pod.uid, node=session.axes.nodes[place.node],
            card=session.axes.cards[place.card] if place.card >= 0 else "", card_indices=place.indices,
            made=session.now,
        )
    )  # fmt: skip
    cache.finish_binding(pod.key, session.now, seconds)
