"""The votes of action enqueue one by one, and the promises that follow them."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from scheduler_core.actions.support.admission import promise_to
from scheduler_core.framework.demand import Demand
from scheduler_core.framework.forms import Ceilings, forms_of
from scheduler_core.framework.session import Session


class Voting:
    """Asks the plugins.

    Where all that counts is the queue, the minimum and who may take back, equal questions get equal answers for as long
    as no gang is promised anything; most of those who wait at a full queue ask for the same.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._known: dict[tuple[object, ...], Any] = {}

    @cached_property
    def _back(self) -> list[int] | None:
        """Who may take back, where that is all that counts beside the queue and the minimum."""
        form = ceilings(self._session)
        return None if form is None else form.back.tolist()

    def ask(self, gang: int, demand: Demand) -> Any:
        """What the vote says of a gang, None = admitted."""
        session = self._session
        if self._back is None:
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
        """Promise an admitted gang what it asks for."""
        promise_to(self._session, gang, demand)
        self.forget()

    def forget(self) -> None:
        """Another part of the session has promised something."""
        self._known.clear()


def ceilings(session: Session) -> Ceilings | None:
    """The form of the vote where one plugin alone votes and its function has one; it holds for this moment."""
    forms = forms_of(session.hooks, "job_enqueueable")
    rows = None if forms is None else [form for parts in forms for form in parts]
    if not rows or len(rows) > 1 or not isinstance(rows[0], Ceilings):
        return None
    return rows[0]
