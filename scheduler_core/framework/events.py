"""Kubernetes events about quota, for the pod or PodGroup that is refused; each is reported once, not in every session.
Source: document 000, volcano-semantics 4.10 (defect l: no event per object and cycle), contracts 4."""

from scheduler_core.framework.messages import human
from scheduler_core.framework.session import Session
from scheduler_core.model.decision import Event
from scheduler_core.model.podgroup import GangPhase
from scheduler_core.model.reason import Reason, ReasonCode

_QUOTA = (ReasonCode.WAITING_FOR_QUOTA, ReasonCode.EXCEEDS_MAX_QUOTA)
_REQUEST = (ReasonCode.NO_MATCHING_CARD, ReasonCode.MISCONFIGURED)


def quota_events(session: Session, reasons: dict[int, Reason]) -> tuple[list[Event], dict[str, str]]:
    """Events that say something new, and what was said of each gang that waits (for the memory)."""
    events, told = [], dict[str, str]()
    before = session.memory.told
    for gang in sorted(reasons):
        event = _event(session, gang, reasons[gang])
        if event is None:
            continue
        numbers = reasons[gang].numbers
        said = f"{event.kind} {event.reason} {numbers.resource} {numbers.requested} {numbers.limit}"
        name = session.gangs.names[gang]
        told[name] = said
        if session.compat or before.get(name) != said:
            events.append(event)
    return events, told


def _event(session: Session, gang: int, reason: Reason) -> Event | None:
    queue = session.group(gang).queue
    if reason.code in _REQUEST:
        if reason.code is ReasonCode.MISCONFIGURED and not any(cls.milli for cls in session.classes_of(gang)):
            return None
        text = f"Get request resource failed, queue {queue}: {reason.message}"
        return _to(session, gang, "GetTaskRequestResourceFailed", text)
    if reason.code not in _QUOTA:
        return None
    numbers = reason.numbers
    resource = numbers.resource or ""
    axes = session.axes
    by_type = resource not in ("cpu", "memory", "pods", *axes.cards_of_resource, *axes.scalars)
    if by_type and not session.ledger.queues[session.queue_of(gang)].card_quota:
        text = f"Queue {queue} has no quota of any card; {human(resource, numbers.requested)} requested"
        return _to(session, gang, "EmptyQueueCapability", text)
    word = {"cpu": "CPU", "memory": "Memory"}.get(resource, "Scalar")
    total = (numbers.requested or 0) + (numbers.allocated or 0) + (numbers.inqueue or 0)
    text = (
        f"Queue {queue} has insufficient {resource} quota: requested {human(resource, numbers.requested)}, "
        f"total would be {human(resource, total)}, but capability is {human(resource, numbers.limit)}"
    )
    return _to(session, gang, f"Insufficient{word}Quota", text)


def _to(session: Session, gang: int, reason: str, message: str) -> Event:
    """On the PodGroup while it waits for admission, else on its first waiting pod."""
    waiting = session.pending_tasks(gang)
    if session.phase[gang] is GangPhase.PENDING or not waiting:
        return Event(kind="PodGroup", name=session.gangs.names[gang], type="Warning", reason=reason, message=message)
    return Event(kind="Pod", name=session.tasks.keys[waiting[0]], type="Warning", reason=reason, message=message)
