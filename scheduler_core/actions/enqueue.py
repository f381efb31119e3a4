"""Action ``enqueue``: which gangs may ask for room at all.

Gangs that were admitted earlier are tested again first (pitfall 16: quotas may have shrunk since), then the waiting
ones. Each gang is tested once; one that is refused does not hold up those behind it.
Source: volcano-semantics 3.1.

On purpose different from Volcano: an admitted gang that finds no place does not hold the door. Upstream its promise
fills the queue's quota, and smaller gangs stay outside while cards are free. Here, where a gang was refused that could
start now, all are tested once more, those who could start before those who could not; if that lets such a gang in, it
is final, and an admitted gang for which no quota is left is refused again. No gang overtakes on a full
cluster, where none could start. With ``compatibility: volcano`` the order is upstream's.
"""

from __future__ import annotations

from typing import Any, ClassVar

from scheduler_core.actions.support.admission import count_elastic, promise_to, withdraw_promise
from scheduler_core.actions.support.rotation import Rotation
from scheduler_core.actions.support.startable import Startable
from scheduler_core.actions.support.votes import Votes, electorate_of
from scheduler_core.actions.support.voting import Voting
from scheduler_core.framework.demand import Demand, Shortfall
from scheduler_core.framework.plugin import Action
from scheduler_core.framework.session import Session
from scheduler_core.model.podgroup import GangPhase
from scheduler_core.state.phases import PHASE_INQUEUE, PHASE_PENDING

# Gang -> what the vote said, None = admitted.
Answers = dict[int, Any]


class Enqueue(Action):
    """Pending -> Inqueue, and back where the promise no longer holds."""

    name: ClassVar[str] = "enqueue"

    def execute(self, session: Session) -> None:
        """Test every admitted and every waiting gang, O(gangs log gangs); a dry run where a gang is refused."""
        count_elastic(session)
        electorate = electorate_of(session)
        if electorate is not None:
            votes = electorate.vote()
            if not session.compat and votes.refused.any():
                votes = electorate.vote_again(votes, Startable(session))
            _note(session, votes)
            return
        demands = {gang: session.minimum(gang) for gang in _in_order(session)}
        answers = _test(session, demands)
        if not session.compat:
            answers = _overtake(session, demands, answers, Startable(session))
        for gang, refusal in answers.items():
            if refusal is None:
                session.phase[gang] = GangPhase.INQUEUE
                session.hooks.call_all("job_enqueued", gang)
                continue
            session.phase[gang] = GangPhase.PENDING
            if isinstance(refusal, Shortfall):
                session.trace.enqueue_refusals[gang] = refusal


def _note(session: Session, votes: Votes) -> None:
    """Keep the votes as they are."""
    codes, order, refused = session.phase.codes, votes.order, votes.refused[votes.order]
    codes[order[~refused]] = PHASE_INQUEUE
    codes[order[refused]] = PHASE_PENDING
    if session.hooks.flat("job_enqueued"):
        for gang in order[~refused].tolist():
            session.hooks.call_all("job_enqueued", gang)
    refusals = session.trace.enqueue_refusals
    refusals.hold((gang for gang in order[refused].tolist() if gang not in votes.own), votes.shortfall)
    for gang, refusal in votes.own.items():
        if isinstance(refusal, Shortfall):
            refusals[gang] = refusal


def _in_order(session: Session) -> list[int]:
    """Admitted gangs, then waiting ones, each in the order of queues and gangs."""
    order = []
    for phase in (GangPhase.INQUEUE, GangPhase.PENDING):
        rotation = Rotation(session, [gang for gang in session.phase.where(phase) if session.schedulable(gang)])
        while (queue := rotation.best_queue()) is not None:
            order.append(rotation.pop(queue))
    return order


def _test(session: Session, demands: dict[int, Demand], startable: Startable | None = None) -> Answers:
    """The votes, each with the promises to those before it; with ``startable`` who has no room comes last."""
    for gang in demands:
        withdraw_promise(session, gang)
    answers: Answers = {}
    later = []
    voting = Voting(session)
    for gang, demand in demands.items():
        # Upstream admits for good.
        stays = session.compat and session.phase[gang] is GangPhase.INQUEUE
        refusal = None if stays else voting.ask(gang, demand)
        if refusal is None and startable is not None and not startable.take(gang):
            later.append(gang)
            continue
        answers[gang] = refusal
        if refusal is None:
            voting.promise(gang, demand)
    for gang in later:
        answers[gang] = voting.ask(gang, demands[gang])
        if answers[gang] is None:
            voting.promise(gang, demands[gang])
    return answers


def _overtake(session: Session, demands: dict[int, Demand], answers: Answers, startable: Startable) -> Answers:
    """The answers when gangs that could start go first, if that admits one of them; else as they were."""
    kept_out = [gang for gang, refusal in answers.items() if refusal is not None and startable.could(gang)]
    if not kept_out:
        return answers
    again = _test(session, demands, startable)
    if any(again[gang] is None for gang in kept_out):
        return again
    for gang, demand in demands.items():
        withdraw_promise(session, gang)
        if answers[gang] is None:
            promise_to(session, gang, demand)
    return answers
