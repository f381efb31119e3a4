from __future__ import annotations

from typing import TYPE_CHECKING

from tidesched_web.common.live import EVERYTHING, About
from tidesched_web.common.live_hub import MOST_OF_ONE

if TYPE_CHECKING:
    from tidesched_web.scheduling.pipeline.work import Work

_Changed = dict[tuple[str, int | str], About | None]


def announce(work: Work, *, gangs: int, usage: int, nodes: int, reclaims: int) -> None:
    session, context = work.session, work.context
    changed: _Changed = {("sessions", session.pk): About("session", str(session.number), "done")}
    if usage:
        changed["usage", EVERYTHING] = None
    if nodes:
        changed["nodes", EVERYTHING] = None
    changed |= _gangs(work, gangs) | _reclaims(work, reclaims)
    context.announce(changed, version=session.number)


def _gangs(work: Work, number: int) -> _Changed:
    written = work.context.gangs.written
    if not number or number > MOST_OF_ONE or number != len(written):  # of gangs that are gone there is nothing to name
        return {("gangs", EVERYTHING): None} if number else {}
    return {("gangs", row.pk): About("gang", row.key, str(row.state), _whose(work, row.queue_name)) for row in written}


def _reclaims(work: Work, earlier: int) -> _Changed:
    if earlier or len(work.reclaims) > MOST_OF_ONE:
        return {("reclaims", EVERYTHING): None}
    return {
        ("reclaims", row.pk): About("reclaim", row.reclaimer, str(row.state), _whose(work, row.queue_name))
        for row in work.reclaims
    }


def _whose(work: Work, queue: str) -> frozenset[int]:
    """Whose members see what happens in the queue; empty for one of the platform's."""
    owner = work.context.owners().get(queue)
    return frozenset() if owner is None or owner.tenant_id is None else frozenset({owner.tenant_id})
