"""Action ``enqueue``: which gangs may ask for room at all.

Gangs that were admitted earlier are tested again first (pitfall 16: quotas may have shrunk since), then the waiting
ones. Each gang is tested once; one that is refused does not hold up those behind it.
Source: volcano-semantics 3.1.

On purpose different from Volcano: an admitted gang that finds no place does not hold the door. Upstream its promise
fills the queue's quota, and smaller gangs stay outside while cards are free. Here, where a gang was refused that could
start now, all are tested once more, those who could start before those who could not; if that lets such a gang in, it
is final, and an admitted gang for which no quota is left is refused again. No gang overtakes on a full
cluster, where none could start. With ``compatibility: volcano`` the order is upstream's."""

from typing import ClassVar

from scheduler_core.actions.support.admission import count_elastic
from scheduler_core.actions.support.startable import Startable
from scheduler_core.actions.support.votes import Electorate, Votes
from scheduler_core.framework.demand import Shortfall
from scheduler_core.framework.plugin import Action
from scheduler_core.framework.session import Session
from scheduler_core.state.phases import PHASE_INQUEUE, PHASE_PENDING


class Enqueue(Action):
    name: ClassVar[str] = "enqueue"

    def execute(self, session: Session) -> None:
        """Test every admitted and every waiting gang, O(gangs log gangs); a dry run where a gang is refused."""
        count_elastic(session)
        electorate = Electorate(session)
        votes = electorate.vote()
        if not session.compat and votes.refused.any():
            votes = electorate.vote_again(votes, Startable(session))
        _note(session, votes)


def _note(session: Session, votes: Votes) -> None:
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
