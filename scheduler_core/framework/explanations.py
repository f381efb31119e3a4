"""Why a gang waits, with all candidates: made from a session's tables after its actions."""

import numpy as np

from scheduler_core.framework.cluster_reasons import place
from scheduler_core.framework.demand import Shortfall
from scheduler_core.framework.gang_outcomes import phase_after
from scheduler_core.framework.messages import human
from scheduler_core.framework.session import Session
from scheduler_core.model.explanation import Explanation, MemberCandidates, NodeCandidate, VictimCandidate
from scheduler_core.model.reason import Reason
from scheduler_core.model.resources import MILLI, node_unit, quota_unit
from scheduler_core.state.axes import CPU, FIRST_SCALAR, MEMORY, PODS
from scheduler_core.state.status import ALLOCATED, PENDING, PIPELINED
from scheduler_core.state.task_class import TaskClass

# So many pods that leave are named.
_MOST_LEAVING = 20
# So many members are placed for trial; those behind them are shown beside these.
_MOST_PLACED = 500


def explain(session: Session, gang: int, reason: Reason | None) -> Explanation:
    """Everything about one gang; O(kinds of members x nodes)."""
    refused = session.trace.reclaim_refusals.get(gang, {})
    queues = {group.key: group.queue for group in session.gangs.groups}
    return Explanation(
        podgroup=session.gangs.names[gang],
        queue=session.group(gang).queue,
        phase=phase_after(session, gang).value,
        decision=_decision(session, gang),
        reason=reason,
        quota=_quota(session, gang),
        members=_members(session, gang),
        victims=tuple(
            VictimCandidate(gang=name, queue=queues.get(name, ""), rule=rule) for name, rule in sorted(refused.items())
        ),
    )


def _members(session: Session, gang: int) -> tuple[MemberCandidates, ...]:
    """Waiting members with their nodes: first those that have room together, then the others beside these. "Fits" of a
    node so holds for as many members as are named there, not for each of the gang alone."""
    waiting = session.pending_tasks(gang)
    statement, left = session.statement(), list[int]()
    for number, task in enumerate(waiting):
        if number >= _MOST_PLACED or not place(session, statement, task):
            left.append(task)
    operations = list(statement.operations)
    statement.rollback(0)
    placed = [operation.task for operation in operations]
    found = _alike(session, placed)
    statement.repeat(operations)
    found += _alike(session, left)
    statement.discard()
    return tuple(found)


def _alike(session: Session, tasks: list[int]) -> list[MemberCandidates]:
    """The nodes of some tasks, once for those of one class of which plugins say the same."""
    kinds: dict[tuple[int, bytes, bytes], list[int]] = {}
    for task in tasks:
        mask, score = (b"" if said is None else said.tobytes() for said in session.candidates.of_task(task))
        kinds.setdefault((int(session.tasks.cls[task]), mask, score), []).append(task)
    return [
        MemberCandidates(pods=tuple(session.tasks.keys[task] for task in alike), nodes=tuple(_nodes(session, alike[0])))
        for _, alike in sorted(kinds.items())
    ]


def _decision(session: Session, gang: int) -> str:
    gangs = session.gangs
    parts = [
        f"{gangs.count(gang, status)} {word}"
        for status, word in ((ALLOCATED, "bound now"), (PIPELINED, "promised room"), (PENDING, "waiting"))
        if gangs.count(gang, status)
    ]
    name, there = gangs.names[gang], session.cluster.workspace.slot_of
    held = (promise for promise in session.reservations.values() if promise.gang == name)
    leaving = sorted({pod for promise in held for pod in promise.victims if pod in there})
    if leaving:
        more = f" and {len(leaving) - _MOST_LEAVING} more" if len(leaving) > _MOST_LEAVING else ""
        parts.append(f"{', '.join(leaving[:_MOST_LEAVING])}{more} leave for it")
    return ", ".join(parts) or "nothing to decide"


def _quota(session: Session, gang: int) -> str:
    refusal = session.trace.enqueue_refusals.get(gang)
    if refusal is None:
        refusal = session.hooks.first("quota_shortfall", gang, session.minimum(gang))
    if not isinstance(refusal, Shortfall):
        return ""
    whose = refusal.whose or (f"queue {refusal.queue}" if refusal.queue else "the cluster")
    unit = quota_unit(refusal.resource)

    def shown(amount: int | None) -> str:
        return human(refusal.resource, (amount or 0) * unit)

    return (
        f"asks for {shown(refusal.requested)}, {shown(refusal.allocated)} in use and {shown(refusal.inqueue)} promised "
        f"of {shown(refusal.limit)} in {whose}, {shown(refusal.short)} short"
    )


def _nodes(session: Session, task: int) -> list[NodeCandidate]:
    """Every node by name: where the member fits, or the first thing that prevents it."""
    cls = session.cluster.class_of(task)
    labels = session.candidates.first_refusals(task)
    view = session.candidates.view(cls)
    only, extra = session.candidates.of_task(task)
    now, later = np.logical_or.reduce(view.now), np.logical_or.reduce(view.future)
    found = []
    for node, name in enumerate(session.axes.nodes):
        if (now[node] or later[node]) and (only is None or only[node]):
            score = view.score[node] if extra is None else view.score[node] + extra[node]
            found.append(NodeCandidate(node=name, fits="now" if now[node] else "later", score=float(score)))
        elif labels[node]:
            found.append(NodeCandidate(node=name, refusal=labels[node]))
        else:
            found.append(_short(session, cls, node, name))
    return found


def _short(session: Session, cls: TaskClass, node: int, name: str) -> NodeCandidate:
    """The first resource of which the node has too little, cards first."""
    if cls.missing:
        return NodeCandidate(node=name, refusal="no such resource", resource=cls.missing[0])
    if cls.milli and not any(session.cards.count[card, node] for card in cls.cards):
        return NodeCandidate(node=name, refusal="no such card", resource=cls.card_key, requested=cls.milli / MILLI)
    for row in cls.rows:
        free, asked = int(session.nodes.future[row, node]), int(cls.request[row])
        if free < asked:
            label = {CPU: "cpu", MEMORY: "memory", PODS: "pods"}.get(row) or session.axes.scalars[row - FIRST_SCALAR]
            unit = node_unit(label)
            return NodeCandidate(
                node=name, refusal=f"too little {label}", resource=label, requested=asked * unit,
                free=max(0, free) * unit,
            )  # fmt: skip
    free = max(
        sum(max(0, milli) for milli in session.cards.free_future(card, node)) if session.cards.count[card, node] else 0
        for card in cls.cards or (0,)
    )
    refusal = "no card with so much left" if cls.share else "too few free cards"
    return NodeCandidate(
        node=name, refusal=refusal, resource=cls.card_key, requested=cls.milli / MILLI, free=free / MILLI
    )
