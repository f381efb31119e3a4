"""Reclaim as upstream does it, pod by pod: what ``compatibility: volcano`` asks for.

A queue's starving gangs are all served before the next queue. For each task the first node, in order of name, whose
running pods of other reclaimable queues would be enough gives them up in victim order until the task fits. Quota and
votes are not asked again, siblings are not looked at, nothing stays promised beyond the session.
Source: volcano-semantics 1.6, 3.5 and its defects."""

from collections.abc import Iterable

import numpy as np

from scheduler_core.actions.support.admission import renew_promise
from scheduler_core.actions.support.attempt import Attempt, record
from scheduler_core.actions.support.placement import allowed_options
from scheduler_core.actions.support.upstream_victims import (
    PodsByNode,
    enough_in_sum,
    note_eviction,
    spot_with_room,
    victim_order,
)
from scheduler_core.actions.support.victims import Victims
from scheduler_core.framework.session import Session
from scheduler_core.model.rules import Rule
from scheduler_core.state.status import RUNNING

_RULE = Rule.UPSTREAM_RECLAIMS.text()


def reclaim_as_upstream(session: Session, starving: Iterable[int]) -> None:
    """Serve the starving gangs queue by queue; O(tasks x nodes)."""
    by_queue: dict[int, list[int]] = {}
    for gang in starving:
        by_queue.setdefault(session.queue_of(gang), []).append(gang)
    pods, work = PodsByNode(session), Victims(session)
    while by_queue:
        queue = min(by_queue, key=session.queue_key)
        gangs = by_queue.pop(queue)
        if session.hooks.any_true("overused", queue):
            continue
        for gang in sorted(gangs, key=session.job_key):
            _for_gang(session, pods, work, gang)


def _for_gang(session: Session, pods: PodsByNode, work: Victims, gang: int) -> None:
    attempt = Attempt(gang, session.statement())
    for task in session.pending_tasks(gang):
        if not session.hooks.first_tier_all("job_starving", gang):
            break
        cls = session.cluster.class_of(task)
        if cls.best_effort or session.tasks.pod(task).preemption_policy == "Never":
            continue
        options, _ = allowed_options(session, session.queue_of(gang), cls, "preemptive")
        if any(options):
            _for_task(session, pods, attempt, task)
    if not attempt.placed or not session.is_pipelined(gang):
        attempt.statement.discard()
        return
    session.commit(attempt.statement)
    renew_promise(session, gang)
    lost = {task: work.work_lost(task) for unit in attempt.units for task in unit.members}
    record(session, "reclaim", attempt, lost, rule=_RULE)


def _for_task(session: Session, pods: PodsByNode, attempt: Attempt, task: int) -> None:
    """The first node whose victims are enough; a task that finds none does not stop the others."""
    view = session.candidates.view(session.cluster.class_of(task))
    queue = session.queue_of(attempt.gang)

    def of_another_queue(other: int) -> bool:
        held = session.queue_of(int(session.tasks.gang[other]))
        return held not in (queue, -1) and session.ledger.queues[held].reclaimable

    for node in np.flatnonzero(view.curable).tolist():
        candidates = pods.on(node, (RUNNING,), of_another_queue)
        if not candidates:
            continue
        verdict = session.hooks.victims("reclaimable", task, candidates)
        victims = [other for other in candidates if other in verdict.allowed]
        if not victims or not enough_in_sum(session, task, node, victims):
            continue
        point, before = attempt.statement.checkpoint(), len(attempt.units)
        for other in victim_order(session, victims, queue):
            note_eviction(session, attempt, other)
            spot = spot_with_room(session, task, node)
            if spot is not None:
                attempt.statement.pipeline(task, spot.node, spot.card, spot.indices)
                attempt.placed.append(task)
                attempt.backed.append(task)
                attempt.verdict = verdict
                return
        attempt.statement.rollback(point)
        del attempt.units[before:]
