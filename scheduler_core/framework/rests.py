"""Gangs that earlier sessions, or the host that carries decisions out, asked to leave alone for a while."""

import msgspec

from scheduler_core.framework.session import Session
from scheduler_core.model.memory import Memory, Rest
from scheduler_core.model.rests import in_force, ordered
from scheduler_core.model.same_gang import lasting_name
from scheduler_core.model.snapshot import Snapshot


def lay_over(snapshot: Snapshot, memory: Memory | None, now: float) -> Snapshot:
    """The snapshot with what rests said so on its PodGroups; the very same one, in O(gangs), where no gang rests."""
    if memory is None or not (memory.spared or memory.backing_off):
        return snapshot
    spared, off = in_force(memory.spared, now), in_force(memory.backing_off, now)
    if not (spared or off):
        return snapshot
    groups = []
    for group in snapshot.pod_groups:
        names = (group.key, lasting_name(group))
        keep = next((spared[name] for name in names if name in spared), "")
        wait = next((off[name] for name in names if name in off), "")
        if (keep and not group.spared) or (wait and not group.backing_off):
            group = msgspec.structs.replace(  # noqa: PLW2901 - the group as the session sees it
                group, spared=group.spared or keep, backing_off=group.backing_off or wait
            )
        groups.append(group)
    return msgspec.structs.replace(snapshot, pod_groups=tuple(groups))


def standing_rests(session: Session) -> tuple[tuple[Rest, ...], tuple[Rest, ...]]:
    """``spared`` and ``backing_off`` for the next session: what still rests, and what exists and may rest longer."""
    memory, cooling = session.memory, session.trace.cooling
    if not (memory.spared or memory.backing_off or cooling):
        return (), ()
    names = {*session.gangs.names, *session.cluster.workspace.lasting_names}

    def kept(rests: tuple[Rest, ...]) -> dict[str, Rest]:
        """A gang that has been left in peace as long again begins anew."""
        now = session.now
        there = (rest for rest in rests if rest.gang in names and rest.until + max(60.0, rest.seconds) > now)
        return {rest.gang: rest for rest in (*there, *(rest for rest in rests if rest.until > now))}

    spared = kept(tuple(rest for rest in memory.spared if rest.until > session.now or not rest.cools))
    return ordered((spared | cooling).values()), ordered(kept(memory.backing_off).values())
