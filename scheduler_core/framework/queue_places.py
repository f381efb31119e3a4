"""What earlier sessions keep for gangs that come back under a new PodGroup: places in the queue and cool-downs."""

from collections.abc import Collection, Iterable, Iterator, Sequence

import msgspec

from scheduler_core.framework.session import Session
from scheduler_core.model.memory import Memory
from scheduler_core.model.podgroup import PodGroup
from scheduler_core.model.same_gang import goes_on, lasting_name


def without_strangers(memory: Memory, groups: Sequence[PodGroup]) -> Memory:
    """The memory without what it keeps for other gangs of the same lasting name; O(gangs) where it keeps anything.

    :func:`scheduler_core.model.same_gang.goes_on` decides. A cool-down ends with its place only where the uid of the
    owner was known when the gang was evicted: without it, sparing the new gang is the lesser error.

    Returns:
        The very same memory where no gang is another one."""
    places, owners = memory.submitted, memory.owners
    kept = places.keys() | owners.keys()
    strangers = {
        name
        for name, group in _of_names(groups, kept)
        if not goes_on(group, owner_uid=owners.get(name, ""), at=places.get(name, group.created))
    }
    if not strangers:
        return memory
    known = strangers & owners.keys()
    return msgspec.structs.replace(
        memory,
        submitted={name: since for name, since in places.items() if name not in strangers},
        spared=tuple(rest for rest in memory.spared if not (rest.cools and rest.gang in known)),
        owners={name: uid for name, uid in owners.items() if name not in strangers},
    )


def kept_owners(session: Session, names: Iterable[str]) -> dict[str, str]:
    """Uid of the owner by lasting name, as far as it is known: of the gangs evicted now, else as memory has it."""
    gangs, known = session.gangs, session.memory.owners
    evicted = {gangs.lasting[gang]: gangs.groups[gang].owner_uid for gang in sorted(session.trace.fallen)}
    uids = {name: evicted.get(name) or known.get(name, "") for name in sorted(set(names))}
    return {name: uid for name, uid in uids.items() if uid}


def _of_names(groups: Sequence[PodGroup], names: Collection[str]) -> Iterator[tuple[str, PodGroup]]:
    """The PodGroups whose lasting name is one of ``names``; most are passed over by the last part of it alone."""
    if not names:
        return
    ends = {name.rpartition("/")[2] for name in names}
    for group in groups:
        if group.owner_name in ends or group.name in ends:
            name = lasting_name(group)
            if name in names:
                yield name, group
