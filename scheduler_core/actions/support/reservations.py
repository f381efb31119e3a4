"""Promises that outlive a session: room that eviction freed stays with the gang it was freed for. Source: traps 13,
pitfall 8 of the semantics, contracts 3."""

from collections.abc import Iterable

from scheduler_core.actions.support.placement import allowed_options
from scheduler_core.framework.candidates import Spot
from scheduler_core.framework.plugin import number
from scheduler_core.framework.session import Session
from scheduler_core.framework.statement import Statement
from scheduler_core.model.memory import Reservation, Rest
from scheduler_core.model.podgroup import EvictedPolicy
from scheduler_core.model.resources import MILLI
from scheduler_core.model.rules import Rule
from scheduler_core.state.status import TaskStatus

RESERVATION_SECONDS = number(
    "reservationSeconds",
    120.0,
    (1.0, 86400.0),
    "how long freed room stays promised to the gang it was freed for; more than grace + controller delay",
)
# Policies after which the job does not come back; and a bound, so that memory cannot grow for ever.
_ENDS = (EvictedPolicy.ABORT_JOB, EvictedPolicy.TERMINATE_JOB)
_MOST_PLACES = 10_000


def settle_promises(session: Session, statement: Statement, gang: int) -> None:
    """Turn promises whose room is free by now into allocations, each on its own node."""
    if not session.gangs.waiting(gang):
        return
    queue = session.queue_of(gang)
    for task in session.pending_tasks(gang, TaskStatus.PIPELINED):
        place = session.cluster.place_of(task)
        point = statement.checkpoint()
        statement.unpipeline(task)
        cls = session.cluster.class_of(task)
        options, _ = allowed_options(session, queue, cls)
        if place.card >= 0:
            options = [ok and card == place.card for ok, card in zip(options, cls.cards, strict=True)]
        spot = session.candidates.spot_on(cls, place.node, options, now=True) if any(options) else None
        if spot is None:
            statement.rollback(point)
        else:
            statement.allocate(task, spot.node, spot.card, spot.indices)


def reserve(session: Session, gang: int, leaving: Iterable[int], seconds: float) -> None:
    """Promise a gang the places of its reclaim beyond this session, each with the pods that must leave it first.
    ``leaving``: tasks that leave for it."""
    tasks, gone = session.tasks, list(leaving)
    promised = session.gangs.with_status(gang, TaskStatus.PIPELINED)
    held_by = zip(tasks.node[gone].tolist(), (tasks.keys[task] for task in gone), strict=True)
    columns = (tasks.node[promised].tolist(), tasks.card[promised].tolist(), map(tasks.indices.__getitem__, promised))
    places = zip((tasks.keys[task] for task in promised), *columns, strict=True)
    keep(session, gang, places, held_by, seconds)


def keep(
    session: Session, gang: int, places: Iterable[tuple[str, int, int, tuple[int, ...]]],
    leaving: Iterable[tuple[int, str]], seconds: float,
) -> None:  # fmt: skip
    """The same for places that the caller names. ``places``: pod, node, card type and cards of each task that has a
    promise. ``leaving``: node and name of each pod that leaves."""
    axes, kept, now, name = session.axes, session.reservations, session.now, session.gangs.names[gang]
    victims: dict[int, list[str]] = {}
    for node, pod in leaving:
        victims.setdefault(node, []).append(pod)
    leave = {node: tuple(sorted(names)) for node, names in victims.items()}
    for pod, node, card, indices in places:
        if pod not in kept:
            kept[pod] = Reservation(
                pod=pod, gang=name, node=axes.nodes[node], card=axes.cards[card] if card >= 0 else "",
                card_indices=indices, victims=leave.get(node, ()), made=now, expires=now + seconds,
            )  # fmt: skip


def cool_down(session: Session, gangs: Iterable[int], seconds: float) -> None:
    """Leave evicted gangs alone for a while once they are back, whatever name their PodGroup has then."""
    if seconds <= 0:
        return
    lasting, groups, cooling = session.cluster.workspace.lasting_names, session.gangs.groups, session.trace.cooling
    why, until = Rule.COOLING_DOWN.text(seconds=f"{seconds:g}"), session.now + seconds
    for gang in sorted(set(gangs)):
        if groups[gang].evicted_policy not in _ENDS:
            name = lasting[gang]
            cooling[name] = Rest(gang=name, why=why, until=until, seconds=seconds, cools=True)


def standing(session: Session) -> tuple[Reservation, ...]:
    """What to remember: promises of pods that do not run yet, by pod, without those that have expired."""
    return tuple(kept for _, kept in sorted(session.reservations.items()) if kept.expires > session.now)


def kept_places(session: Session) -> dict[str, float]:
    """Places in the queue of gangs that were evicted and come back under a new PodGroup, until they run again."""
    gangs, lasting = session.gangs, session.cluster.workspace.lasting_names
    places = dict(session.memory.submitted)
    if places:
        for gang, name in enumerate(lasting):
            if name in places and gangs.ready(gang) >= gangs.least[gang] > 0:
                del places[name]
    for gang in sorted(session.trace.fallen):
        if gangs.groups[gang].evicted_policy not in _ENDS:
            places[lasting[gang]] = session.waiting_since(gang)
    return {name: places[name] for name in sorted(places)[:_MOST_PLACES]}


def apply_reservations(session: Session) -> None:
    """Put the promises of earlier sessions back. A promise ends when its pod has a place or is gone, when its room is
    no longer there, or when it expires; an expired one holds for one more session, so that no eviction for it was in
    vain where sessions are far apart."""
    statement = session.statement()
    wanted = {reservation.pod: reservation for reservation in session.memory.reservations}
    if not wanted:
        return
    slots = _slots(session, wanted)
    for pod, reservation in sorted(wanted.items()):
        task = slots.get(pod)
        node = session.axes.node_index.get(reservation.node)
        if task is None or node is None:
            continue
        gang = int(session.tasks.gang[task])
        if session.tasks.status[task] != TaskStatus.PENDING or gang < 0:
            continue
        if not session.schedulable(gang) and not session.group(gang).elsewhere:
            continue
        spot = _spot(session, task, node, reservation)
        if spot is not None:
            statement.pipeline(task, spot.node, spot.card, spot.indices)
            session.reservations[pod] = reservation
    session.commit(statement)


def _slots(session: Session, wanted: dict[str, Reservation]) -> dict[str, int]:
    slots: dict[str, int] = {}
    gang_of = {name: g for g, name in enumerate(session.gangs.names)}
    for gang in sorted({gang_of[r.gang] for r in wanted.values() if r.gang in gang_of}):
        for task in session.gangs.members(gang):
            if session.tasks.keys[task] in wanted:
                slots[session.tasks.keys[task]] = task
    return slots


def _spot(session: Session, task: int, node: int, reservation: Reservation) -> Spot | None:
    """The promised place if it is still there, else another one on the same node."""
    cls = session.cluster.class_of(task)
    options, _ = allowed_options(session, session.queue_of(int(session.tasks.gang[task])), cls)
    if reservation.card:
        card = session.axes.card_index.get(reservation.card, -1)
        options = [ok and option == card for ok, option in zip(options, cls.cards or (-1,), strict=True)]
    if not any(options) or not session.candidates.view(cls).allowed[node]:
        return None
    spot = session.candidates.spot_on(cls, node, options, now=False)
    if spot is None or spot.card < 0:
        return spot
    free = session.cards.free_future(spot.card, node)
    each = cls.share or MILLI
    if reservation.card_indices and all(i < len(free) and free[i] >= each for i in reservation.card_indices):
        return Spot(node, spot.card, reservation.card_indices, False)
    return spot
