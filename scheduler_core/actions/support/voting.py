"""The votes of action enqueue one by one, and the promises that follow them."""

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from scheduler_core.actions.support.admission import promise_to
from scheduler_core.framework.demand import Demand
from scheduler_core.framework.forms import Ceilings, RowCeilings, Silent, form_of
from scheduler_core.framework.session import Session
from scheduler_core.state.status import Bools


class Voting:
    """Asks the plugins. Where all that counts is the queue, the minimum and who may take back, equal questions get
    equal answers for as long as no gang is promised anything; most of those who wait at a full queue ask for the
    same."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._known: dict[tuple[object, ...], Any] = {}

    @cached_property
    def _back(self) -> list[int | None]:
        """Who may take back, where that is all that counts beside the queue and the minimum; else None."""
        vote = admission_vote(self._session)
        if len(vote.voters) != 1 or not isinstance(vote.voters[0], Ceilings):
            return [None] * len(self._session.gangs)
        pairs = zip(vote.voters[0].back.tolist(), vote.others.tolist(), strict=True)
        return [None if other else back for back, other in pairs]

    def ask(self, gang: int, demand: Demand) -> Any:
        """What the vote says of a gang, None = admitted."""
        session = self._session
        if self._back[gang] is None:
            refusal = session.hooks.vote("job_enqueueable", gang, demand)
            if refusal is not None and session.compat:
                permitted = session.hooks.overruled("job_enqueueable", gang, demand)
                for name, call in session.hooks.flat("overruled"):
                    if name in permitted:
                        call(gang, demand)
            return refusal
        parts = (*demand.cards.items(), None, *demand.unnamed.items(), None, *demand.unknown.items())
        key = (session.queue_of(gang), self._back[gang], demand.cpu_milli, demand.memory_mib, *parts)
        if key not in self._known:
            self._known[key] = session.hooks.vote("job_enqueueable", gang, demand)
        return self._known[key]

    def promise(self, gang: int, demand: Demand) -> None:
        promise_to(self._session, gang, demand)
        self.forget()

    def forget(self) -> None:
        """Another part of the session has promised something."""
        self._known.clear()


class AdmissionVote(NamedTuple):
    """The vote in columns: who votes, one after the other, and bool (G,) gangs about which others may decide."""

    voters: list[Ceilings | RowCeilings]
    others: Bools


def admission_vote(session: Session) -> AdmissionVote:
    """The vote where ceilings decide about gangs; where they do not, it is about nobody. It holds for this moment."""
    others: Bools = np.zeros(len(session.gangs), dtype=np.bool_)
    by_python = AdmissionVote([], ~others)
    if session.compat:
        return by_python
    for tier in session.hooks.tiers("job_enqueueable"):
        voters: list[Ceilings | RowCeilings] = []
        permits = False
        for _, call in tier:
            for form in form_of(call, "job_enqueueable") or (None,):
                if isinstance(form, Ceilings | RowCeilings):
                    voters.append(form)
                elif isinstance(form, Silent):
                    others |= form.others
                    permits |= form.permits
                else:
                    return by_python
        if voters:
            # Who permits in the tier lets nobody in whom the ceilings refuse, and tiers below are not asked.
            by_card = [one for one in voters if isinstance(one, Ceilings)]
            return AdmissionVote(voters, others) if len(by_card) <= 1 else by_python
        if permits:
            return by_python
    return by_python
