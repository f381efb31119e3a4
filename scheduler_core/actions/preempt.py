"""Action ``preempt``: take by priority inside a queue, first between gangs, then between the tasks of one gang.

In steps: which tasks may take (preemptionPolicy, nominations) -> plain placement first -> who may be taken (hard
rules, votes of extension point preemptable) -> the cheapest set (contracts 3.1), each set tried with quota,
predicates, single cards and admission asked again -> keep it only if the gang can run. Source: volcano-semantics 3.4,
contracts 3.1 and 3.2.

On purpose different from upstream: victims are chosen for the gang and over all nodes, whole gangs where losing a
member ends the job; a gang that only the room or the quota it would get keeps from being admitted may preempt too
(pitfall 1), unless it is a Job without pods: it takes from no gang, and its reason says so; system pods and protected
gangs stay; no member of its own gang is evicted where that would stop it. Freed room stays promised. With
``enableTopologyAwarePreemption`` each task's node is chosen by upstream's rules for that mode. With
``compatibility: volcano`` victims are pods of the first node that works out."""

from typing import ClassVar

from scheduler_core.actions.support.attempt import Attempt
from scheduler_core.actions.support.bundles import asks_for_cards, bundle, bundles, in_order_of_taking
from scheduler_core.actions.support.guards import Guards
from scheduler_core.actions.support.keeping import keep
from scheduler_core.actions.support.nomination import Eligibility
from scheduler_core.actions.support.placement import place
from scheduler_core.actions.support.reservations import RESERVATION_SECONDS
from scheduler_core.actions.support.rotation import Rotation
from scheduler_core.actions.support.starving import starves
from scheduler_core.actions.support.topology_choice import Limits, choose_node
from scheduler_core.actions.support.trial import Outcome, Trial
from scheduler_core.actions.support.upstream_preempt import UpstreamPreempt
from scheduler_core.algorithms.smallest_set import everything, go_together, smallest_set
from scheduler_core.algorithms.victims import Unit
from scheduler_core.framework.plugin import Action, Argument, number, switch
from scheduler_core.framework.session import Session
from scheduler_core.model.podgroup import GangPhase
from scheduler_core.model.rules import Rule
from scheduler_core.state.status import CHARGED, TaskStatus

_RULE = Rule.PREEMPTS.text()
_NO_PODS = "It has no pods yet, so no gang of lower priority is evicted for it: whether they would fit cannot be tried."
_OWN_RULE = Rule.PREEMPTS_OWN.text()


class Preempt(Action):
    name: ClassVar[str] = "preempt"
    arguments: ClassVar[tuple[Argument, ...]] = (
        RESERVATION_SECONDS,
        switch(
            "enableTopologyAwarePreemption", False,
            "choose the node of each task by the lowest top priority of its victims, their sum, number and start",
        ),
        number(
            "minCandidateNodesPercentage", 10, (0, 100),
            "share of the nodes that the topology-aware mode tries; only with compatibility: volcano, else all",
        ),
        number(
            "minCandidateNodesAbsolute", 1, (0, 1_000_000),
            "at least so many nodes are tried; only with compatibility: volcano",
        ),
        number(
            "maxCandidateNodesAbsolute", 100, (1, 1_000_000),
            "at most so many nodes are tried; only with compatibility: volcano",
        ),
        number(
            "topologyAwarePreemptWorkerNum", 16, (1, 1024), "accepted without effect: nodes are not tried in parallel"
        ),
        switch(
            "predicateErrorCacheEnable", True,
            "accepted without effect: filters are asked once for each kind of task anyway",
        ),
    )  # fmt: skip

    def execute(self, session: Session) -> None:
        """Between gangs, then inside gangs; queues and gangs take turns, each gang is tried once in each part."""
        self._guards, self._eligible = Guards(session), Eligibility(session)
        # Kinds of gangs for which no victim was found, and after how many changes of the cluster that was found.
        self._hopeless: dict[tuple[object, ...], int] = {}
        self._changes = 0
        starving = [gang for gang in session.gangs.with_tasks_to_place() if starves(session, gang)]
        if session.compat:
            UpstreamPreempt(session, self._limits()).run(starving)
            return
        self._note_jobs_without_pods(session)
        rotation = Rotation(session, starving)
        while (queue := rotation.best_queue()) is not None:
            self._between_gangs(session, rotation.pop(queue))
        rotation = Rotation(session, [gang for gang in starving if session.gangs.pending(gang)])
        while (queue := rotation.best_queue()) is not None:
            self._inside(session, rotation.pop(queue))

    def _limits(self) -> Limits | None:
        """What the topology-aware mode tries of the nodes; None in the normal mode."""
        if not self.values["enableTopologyAwarePreemption"]:
            return None
        names = ("minCandidateNodesPercentage", "minCandidateNodesAbsolute", "maxCandidateNodesAbsolute")
        return Limits(*(int(self.values[name]) for name in names))

    def _note_jobs_without_pods(self, session: Session) -> None:
        """A Job that was not admitted has nothing that could be tried in a victim's place, and says so. What its
        PodGroup declares are sums: they name no node, no filter and no single card, so victims evicted for them might
        be evicted in vain."""
        gangs, priority = session.gangs, session.cluster.workspace.facts.priority
        there = gangs.counts[CHARGED].sum(axis=0) > 0
        for gang in session.trace.enqueue_refusals:
            lower = there & (gangs.queue == gangs.queue[gang]) & (priority < priority[gang])
            if not gangs.total(gang) and lower.any():
                session.trace.notes[gang] = _NO_PODS

    # Between gangs ---------------------------------------------------------------------------------------------

    def _between_gangs(self, session: Session, gang: int) -> None:
        tasks = [task for task in session.pending_tasks(gang) if self._eligible.may_take(task)]
        kind = self._kind(session, gang, tasks)
        if not tasks or self._hopeless.get(kind) == self._changes:
            return
        attempt = Attempt(gang, session.statement())
        if not self._take(session, attempt, tasks):
            attempt.statement.discard()
            self._hopeless[kind] = self._changes
            if attempt.refused:
                session.trace.reclaim_refusals.setdefault(gang, attempt.refused)
            return
        self._keep(session, attempt, _RULE)

    def _take(self, session: Session, attempt: Attempt, tasks: list[int]) -> bool:
        """Find who has to leave and carry it out in the attempt's statement; False when nothing comes of it."""
        gang = attempt.gang
        plain = Trial(session, attempt.statement, gang, tasks)
        if session.phase[gang] is not GangPhase.PENDING:
            attempt.placed = plain.carry_out(()) or []
        elif plain.would_run():
            # It has room and still was not let in: that is for enqueue to say.
            return False
        rest = [task for task in tasks if task not in set(attempt.placed)]
        units = self._units(session, attempt, rest) if rest else []
        if self.values["enableTopologyAwarePreemption"]:
            return self._node_by_node(session, attempt, rest, units)
        trial = Trial(session, attempt.statement, gang, rest)
        most = len(rest) if units else 0
        while most:
            wanted = Outcome(runs=True, placed=most)
            chosen = smallest_set(
                units,
                lambda some: trial.outcome(some) >= wanted,  # noqa: B023 - used inside the turn only
                lambda pool: trial.start(pool, wanted),  # noqa: B023 - as above
            )
            if chosen is not None:
                attempt.backed = trial.carry_out(chosen) or []
                attempt.placed += attempt.backed
                attempt.units = chosen
                return True
            # Not for all of them: for as many as find a place once all victims have left, or one fewer than tried.
            goal = trial.outcome(everything(units))
            most = min(most - 1, goal.placed if goal.runs else 0)
        return bool(attempt.placed) and trial.runs()

    def _node_by_node(self, session: Session, attempt: Attempt, tasks: list[int], units: list[Unit]) -> bool:
        """Task after task on the best node of the topology-aware mode; False where the gang could not run with it."""
        chosen: dict[str, Unit] = {}
        for task in tasks:
            if place(session, attempt.statement, task) is not None:
                attempt.placed.append(task)
                continue
            found = choose_node(session, attempt.statement, task, _left(units, chosen), None)
            if found is None:
                continue
            for unit in found.leaving:
                chosen[unit.name] = unit
                for member in unit.members:
                    attempt.statement.evict(member)
            attempt.statement.pipeline(task, found.spot.node, found.spot.card, found.spot.indices)
            attempt.placed.append(task)
            attempt.backed.append(task)
        attempt.units = [unit for _, unit in sorted(chosen.items())]
        return bool(attempt.placed) and session.is_pipelined(attempt.gang) and not session.short_of_start(attempt.gang)

    def _units(self, session: Session, attempt: Attempt, tasks: list[int]) -> list[Unit]:
        """What rules and votes let go of the other gangs of the queue; the rest is noted with its rule."""
        only_idle = all(session.cluster.class_of(task).best_effort for task in tasks)
        names, queue = session.gangs.names, session.queue_of(attempt.gang)
        gangs = []
        for gang in (session.gangs.queue == queue).nonzero()[0].tolist():
            members = self._guards.holding(gang).members if gang != attempt.gang else ()
            if not members:
                continue
            rule = self._guards.rule(gang)
            if rule is None and only_idle and not all(session.cluster.class_of(t).best_effort for t in members):
                rule = Rule.ASKS_FOR_SOMETHING.text()
            if rule is None:
                gangs.append(gang)
            else:
                attempt.refuse(gang, names[gang], rule)
        pool = in_order_of_taking(session, self._guards, gangs)
        if not pool:
            return []
        verdict = attempt.verdict = session.hooks.victims("preemptable", tasks[0], pool)
        units, in_cards = [], asks_for_cards(session, tasks)
        for gang in gangs:
            found = bundles(session, self._guards, gang, verdict.allowed, in_cards=in_cards)
            units += found
            if not found:
                rules = [verdict.refused[t] for t in self._guards.holding(gang).members if t in verdict.refused]
                attempt.refuse(gang, names[gang], rules[0] if rules else Rule.NOT_EVERY_MEMBER.text())
        return units

    def _kind(self, session: Session, gang: int, tasks: list[int]) -> tuple[object, ...]:
        """Gangs of one kind find the same."""
        classes = tuple(int(session.tasks.cls[task]) for task in tasks)
        priority, held = session.group(gang).priority, session.gangs.counts[:, gang].tobytes()
        lowest = min((int(session.tasks.priority[task]) for task in tasks), default=0)
        said = tuple(mask.tobytes() for task in tasks for _, mask, *_ in session.candidates.said_of(task))
        return (
            session.queue_of(gang), priority, lowest, session.service_type(gang), classes, said, session.needed(gang),
            held,
        )  # fmt: skip

    # Inside a gang ---------------------------------------------------------------------------------------------

    def _inside(self, session: Session, gang: int) -> None:
        """Each waiting task may take the place of a lower one of its own gang; kept task by task."""
        ends = session.group(gang).evicted_policy.fells_gang and not session.compat
        if ends or session.phase[gang] is GangPhase.PENDING:
            return
        for task in session.pending_tasks(gang):
            if not self._eligible.may_take(task) or session.cluster.class_of(task).best_effort:
                continue
            units = self._own_units(session, gang, task)
            if not units:
                continue
            attempt = Attempt(gang, session.statement())
            trial = Trial(session, attempt.statement, gang, [task])
            # Of its own gang no more than it can spare goes, so only the place is in question.
            chosen = smallest_set(
                units,
                lambda some: trial.outcome(some).placed > 0,  # noqa: B023 - used inside the turn only
                lambda pool: trial.start(pool, Outcome(runs=False, placed=1)),  # noqa: B023 - as above
            )
            attempt.placed = attempt.backed = trial.carry_out(chosen or ()) or []
            if not chosen or not attempt.placed or not trial.runs():
                attempt.statement.discard()
                continue
            attempt.units = chosen
            self._keep(session, attempt, _OWN_RULE)

    def _own_units(self, session: Session, gang: int, task: int) -> list[Unit]:
        """Single members of lower priority that the gang can do without."""
        tasks, gangs = session.tasks, session.gangs
        ready, least = gangs.ready(gang), gangs.least[gang]
        lower = [
            other
            for other in gangs.members(gang)
            if CHARGED[tasks.status[other]]
            and tasks.status[other] != TaskStatus.ALLOCATED
            and not tasks.protected[other]
            and tasks.priority[other] < tasks.priority[task]
        ]
        spare = ready - least
        if not lower or spare <= 0 or self._guards.rule(gang) is not None:
            return []
        lower.sort(key=lambda other: (int(tasks.priority[other]), self._guards.work_lost(other), tasks.keys[other]))
        allowed = session.hooks.victims("preemptable", task, lower).allowed
        found = []
        for other in lower:
            if other in allowed:
                in_cards = asks_for_cards(session, [task])
                unit = bundle(session, self._guards, (other,), spare, in_cards=in_cards)
                found.append(
                    Unit(unit.name, unit.gang, (0, int(tasks.priority[other])), unit.work, unit.size, (other,), spare)
                )
        return found

    def _keep(self, session: Session, attempt: Attempt, rule: str) -> None:
        self._changes += 1
        seconds = float(self.values["reservationSeconds"])
        keep(session, attempt, self._guards, action=self.name, rule=rule, verb="preempts for", seconds=seconds)


def _left(units: list[Unit], chosen: dict[str, Unit]) -> list[Unit]:
    """What may still go beside the chosen ones."""
    taken = list(chosen.values())
    return [unit for unit in units if unit.name not in chosen and go_together(taken, unit)]
