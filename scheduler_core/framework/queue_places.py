"""Places in the queue that earlier sessions kept for gangs that come back under a new PodGroup."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from scheduler_core.model.memory import Memory
from scheduler_core.model.podgroup import PodGroup


def without_strangers(memory: Memory, groups: Sequence[PodGroup], lasting: Sequence[str]) -> Memory:
    """The memory without places of Jobs that went; the very same one where there are none. O(gangs) then.

    A Job that was made later than the place dates from is another one of the same name, and waits from its own time.

    Args:
        lasting: the name of each gang that one made anew would have too.
    """
    places = memory.submitted
    if not places:
        return memory
    strangers = {
        name
        for name, group in zip(lasting, groups, strict=True)
        if name in places and group.owner_created is not None and group.owner_created > places[name]
    }
    if not strangers:
        return memory
    kept = {name: since for name, since in places.items() if name not in strangers}
    return msgspec.structs.replace(memory, submitted=kept)
