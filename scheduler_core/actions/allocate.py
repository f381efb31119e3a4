"""Action ``allocate``: give admitted gangs room that is free, or that will be once something has left.

Source: volcano-semantics 3.2. A gang is bound only when it is ready; one that would be ready on what leaves keeps its
promises for the rest of the session; else everything is undone. Where no plugin says when a gang is ready (plugin gang,
switch enableJobReady) it always is, and each member starts on its own."""

from functools import partial
from typing import ClassVar

from scheduler_core.actions.support.admission import renew_promise
from scheduler_core.actions.support.placement import place
from scheduler_core.actions.support.pod_cycle import PodCycle
from scheduler_core.actions.support.policy_forms import policy_forms
from scheduler_core.actions.support.turns import CompiledTurns
from scheduler_core.framework.plugin import Action, Argument, number, switch
from scheduler_core.framework.session import Session
from scheduler_core.framework.statement import Statement
from scheduler_core.model.podgroup import GangPhase
from scheduler_core.state.phases import PHASE_PENDING
from scheduler_core.state.status import Bools, TaskStatus


class Allocate(Action):
    name: ClassVar[str] = "allocate"

    arguments: ClassVar[tuple[Argument, ...]] = (
        number(
            "podInitialBackoffSeconds", 1.0, (0.0, 3600.0),
            "per-pod cycle: how long a pod waits after its first attempt; each further one doubles it",
        ),
        number("podMaxBackoffSeconds", 10.0, (0.0, 86400.0), "per-pod cycle: the longest such wait"),
        number(
            "podMaxInUnschedulableSeconds", 300.0, (1.0, 86400.0),
            "per-pod cycle: after so long a pod is tried again although nothing has happened that may help it",
        ),
        number(
            "assumeSeconds", 30.0, (1.0, 3600.0),
            "per-pod cycle: how long a bound pod keeps its place although the cluster does not show it there",
        ),
        switch(
            "interleaveZones", False,
            "per-pod cycle: of nodes with equal scores take those of each zone in turn, not the first name",
        ),
    )  # fmt: skip

    def execute(self, session: Session) -> None:
        """Queues and gangs take turns, or pods where a plugin sorts them; O(waiting tasks x nodes)."""
        if "enqueue" not in session.policy.actions:
            _promote(session)
        if session.hooks.flat("queue_sort"):
            PodCycle(session, self.values).run()
            return
        waiting = candidates(session)
        if not waiting.any():
            return
        CompiledTurns(session, policy_forms(session), waiting).run(waiting, partial(self._finish, session))

    def _finish(self, session: Session, gang: int, statement: Statement) -> bool:
        """Bind, keep as promises, or undo; True when something was kept."""
        self._place_idle(session, gang, statement)
        if (session.is_ready(gang) or session.is_pipelined(gang)) and not session.short_of_start(gang):
            session.commit(statement)
            if not session.is_ready(gang):
                hold_back(session, gang)
            renew_promise(session, gang)
            return True
        if statement.operations and session.is_pipelined(gang) and session.hooks.any_true("holds_partly", gang):
            # Bound to nothing: it waits for the rest, and no gang behind it gets this room.
            session.commit(statement)
            hold_back(session, gang)
            renew_promise(session, gang)
            return True
        if session.compat:
            # Upstream writes the node on the pod and leaves it there: a choice of cards is now the card of that node.
            for done in statement.operations:
                if done.after.status == TaskStatus.ALLOCATED and done.after.card >= 0:
                    session.stale_cards[done.task] = done.after.card
        statement.discard()
        return False

    def _place_idle(self, session: Session, gang: int, statement: Statement) -> None:
        """Members that ask for nothing count as in place, but where minMember needs them they must have one. They are
        backfill's: they are placed here only together with others, so that the gang starts whole, and only in a policy
        that has that action."""
        if not statement.operations or "backfill" not in session.policy.actions:
            return
        if not session.short_of_start(gang) or not (session.is_ready(gang) or session.is_pipelined(gang)):
            return
        for task in session.pending_tasks(gang):
            if session.cluster.class_of(task).best_effort and session.short_of_start(gang):
                place(session, statement, task)


def is_candidate(session: Session, gang: int) -> bool:
    """Admitted and valid."""
    if session.phase[gang] is GangPhase.PENDING:
        return False
    return session.schedulable(gang) and session.hooks.refusal("job_valid", gang) is None


def candidates(session: Session) -> Bools:
    """bool (G,): admitted, valid, and with a task that waits or holds a promise."""
    counts, columns = session.gangs.counts, session.columns
    found: Bools = (counts[TaskStatus.PENDING] > 0) | (counts[TaskStatus.PIPELINED] > 0)
    found &= (session.phase.codes != PHASE_PENDING) & columns.schedulable
    return columns.valid(found)


def hold_back(session: Session, gang: int) -> None:
    """A gang that still waits for leaving room binds no pod yet: what it could have now becomes a promise too."""
    allocated = session.gangs.with_status(gang, TaskStatus.ALLOCATED)
    if not allocated:
        return
    statement = session.statement()
    for task in allocated:
        statement.hold(task)
    session.commit(statement)


def _promote(session: Session) -> None:
    """Without an enqueue action every gang counts as admitted."""
    for gang in session.phase.where(GangPhase.PENDING):
        if session.schedulable(gang):
            session.phase[gang] = GangPhase.INQUEUE
            renew_promise(session, gang)
