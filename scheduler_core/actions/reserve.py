"""Action ``reserve``: lock the nodes of the elected gang, or let them go. Belongs after allocate.

The locked nodes take no gang but the target from here on and in the sessions that follow, until it starts or goes.
A gang that was elected and could start in this very session makes way for the next one. Where room would not help the
target any more (its quota is full, its nodes are gone) the nodes are let go too.
Source: document 002, contracts 4."""

from typing import ClassVar

import msgspec

from scheduler_core.actions.support.election import elect, target
from scheduler_core.framework.plugin import Action
from scheduler_core.framework.session import Session


class Reserve(Action):
    name: ClassVar[str] = "reserve"

    def execute(self, session: Session) -> None:
        """Renew the group of nodes of the target; O(nodes)."""
        found = elect(session) if "elect" in session.policy.actions else target(session)
        if found is None or session.election is None:
            return
        nodes = self._nodes(session, found, session.election.nodes)
        session.election = None if nodes is None else msgspec.structs.replace(session.election, nodes=nodes)

    def _nodes(self, session: Session, gang: int, kept: tuple[str, ...]) -> tuple[str, ...] | None:
        """What all plugins name together; None when one of them says that it is of no use."""
        found: dict[str, None] = {}
        for _, call in session.hooks.flat("reserved_nodes"):
            named = call(gang, kept)
            if named is None:
                return None
            found.update(dict.fromkeys(named))
        return tuple(sorted(found))
