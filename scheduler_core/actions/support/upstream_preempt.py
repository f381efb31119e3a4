"""Preempt as upstream does it, pod by pod: what ``compatibility: volcano`` asks for. For each task of a starving gang
the nodes come by score; the first one whose lower pods are enough gives them up in victim order until queue, room and
filters say yes. Then the tasks of one gang among themselves, kept task by task. Source: volcano-semantics 1.6, 3.4."""

from collections.abc import Callable, Iterable

import numpy as np

from scheduler_core.actions.support.admission import renew_promise
from scheduler_core.actions.support.attempt import Attempt, record
from scheduler_core.actions.support.bundles import bundle
from scheduler_core.actions.support.guards import Guards
from scheduler_core.actions.support.nomination import Eligibility
from scheduler_core.actions.support.rotation import Rotation
from scheduler_core.actions.support.topology_choice import Limits, choose_node, spot_on
from scheduler_core.actions.support.upstream_victims import PodsByNode, enough_in_sum, note_eviction, victim_order
from scheduler_core.algorithms.victims import Unit
from scheduler_core.framework.session import Session
from scheduler_core.model.rules import Rule
from scheduler_core.state.status import BOUND, RUNNING, Floats

_RULE = Rule.UPSTREAM_PREEMPTS.text()


class UpstreamPreempt:
    """One run of the action; with ``limits`` nodes are chosen as the topology-aware mode does."""

    def __init__(self, session: Session, limits: Limits | None = None) -> None:
        self._session, self._limits = session, limits
        self._pods, self._guards, self._eligible = PodsByNode(session), Guards(session), Eligibility(session)

    def run(self, starving: Iterable[int]) -> None:
        """Between gangs, then inside gangs; O(tasks x nodes)."""
        gangs = list(starving)
        rotation = Rotation(self._session, gangs)
        while (queue := rotation.best_queue()) is not None:
            self._between(rotation.pop(queue))
        rotation = Rotation(self._session, gangs)
        while (queue := rotation.best_queue()) is not None:
            self._inside(rotation.pop(queue))

    def _between(self, gang: int) -> None:
        session = self._session
        attempt = Attempt(gang, session.statement())
        queue = session.queue_of(gang)
        for task in session.pending_tasks(gang):
            if not session.hooks.first_tier_all("job_starving", gang):
                break
            idle = session.cluster.class_of(task).best_effort

            def of_the_queue(other: int, idle: bool = idle) -> bool:
                of = int(session.tasks.gang[other])
                return of != gang and session.queue_of(of) == queue and (not idle or self._asks_nothing(other))

            self._for_task(attempt, task, of_the_queue)
        if attempt.placed and session.is_pipelined(gang):
            self._keep(attempt)
        else:
            attempt.statement.discard()

    def _inside(self, gang: int) -> None:
        for task in self._session.pending_tasks(gang):
            attempt = Attempt(gang, self._session.statement())
            if self._for_task(attempt, task, lambda other: int(self._session.tasks.gang[other]) == gang):
                self._keep(attempt)
            else:
                attempt.statement.discard()

    def _for_task(self, attempt: Attempt, task: int, wanted: Callable[[int], bool]) -> bool:
        session = self._session
        if not self._eligible.may_take(task):
            return False
        cls = session.cluster.class_of(task)
        view = session.candidates.view(cls)
        if self._limits is not None:
            return self._by_topology(attempt, task, wanted, self._limits)
        score: Floats = np.zeros(len(view.allowed), dtype=np.float64)
        for _, call in session.hooks.flat("node_order"):
            score = score + call(cls, slice(None))
        for node in np.argsort(-score, kind="stable").tolist():
            if not view.curable[node]:
                continue
            candidates = self._pods.on(node, (RUNNING, BOUND), wanted)
            verdict = session.hooks.victims("preemptable", task, candidates)
            victims = [other for other in candidates if other in verdict.allowed]
            if not victims or not enough_in_sum(session, task, node, victims):
                continue
            point, before = attempt.statement.checkpoint(), len(attempt.units)
            spot = spot_on(session, task, node)
            for other in victim_order(session, victims, session.queue_of(attempt.gang)):
                if spot is not None:
                    break
                note_eviction(session, attempt, other)
                spot = spot_on(session, task, node)
            if spot is not None:
                attempt.statement.pipeline(task, spot.node, spot.card, spot.indices)
                attempt.placed.append(task)
                attempt.backed.append(task)
                attempt.verdict = verdict
                return True
            attempt.statement.rollback(point)
            del attempt.units[before:]
        return False

    def _by_topology(self, attempt: Attempt, task: int, wanted: Callable[[int], bool], limits: Limits) -> bool:
        session, guards = self._session, self._guards
        pool: list[Unit] = []
        view = session.candidates.view(session.cluster.class_of(task))
        for node in np.flatnonzero(view.curable).tolist():
            candidates = self._pods.on(node, (RUNNING, BOUND), wanted)
            verdict = session.hooks.victims("preemptable", task, candidates)
            pool += [bundle(session, guards, (t,), len(session.tasks)) for t in candidates if t in verdict.allowed]
        found = choose_node(session, attempt.statement, task, pool, limits)
        if found is None:
            return False
        for unit in found.leaving:
            note_eviction(session, attempt, unit.members[0])
        attempt.statement.pipeline(task, found.spot.node, found.spot.card, found.spot.indices)
        attempt.placed.append(task)
        attempt.backed.append(task)
        return True

    def _asks_nothing(self, task: int) -> bool:
        return self._session.cluster.class_of(task).best_effort

    def _keep(self, attempt: Attempt) -> None:
        session = self._session
        session.commit(attempt.statement)
        renew_promise(session, attempt.gang)
        if attempt.units:
            lost = {task: self._guards.work_lost(task) for unit in attempt.units for task in unit.members}
            record(session, "preempt", attempt, lost, rule=_RULE, verb="preempts for")
