"""What all gangs of a session are for, as one column."""

import weakref

import numpy as np
import numpy.typing as npt

from scheduler_core.framework.session import Session
from scheduler_core.model.pod import ServiceType
from scheduler_core.state.gang_table import GangTable
from scheduler_core.state.status import Index, Ints

Codes = npt.NDArray[np.int8]

SERVICE_TYPES: tuple[ServiceType, ...] = tuple(ServiceType)
SERVICE_CODE: dict[ServiceType, int] = {kind: code for code, kind in enumerate(SERVICE_TYPES)}


class Kept:
    """Codes by number of the gang, and what they were made of."""

    def __init__(self, bounds: tuple[str, ...], by_owner: dict[str, str]) -> None:
        self.bounds, self.by_owner = bounds, by_owner
        self.version: Ints = np.zeros(0, dtype=np.int64)
        self.queue: Index = np.zeros(0, dtype=np.int32)
        self.codes: Codes = np.zeros(0, dtype=np.int8)
        # The gangs that were last asked about, and the answer.
        self.asked: weakref.ref[GangTable] | None = None
        self.answer: Codes = self.codes

    def make_room(self, size: int) -> None:
        """Have rows for numbers below ``size``."""
        more = size - len(self.codes)
        if more > 0:
            self.version = np.concatenate([self.version, np.full(more, -1, dtype=np.int64)])
            self.queue = np.concatenate([self.queue, np.full(more, -1, dtype=np.int32)])
            self.codes = np.concatenate([self.codes, np.zeros(more, dtype=np.int8)])


def service_codes(session: Session, by_owner: dict[str, str]) -> Codes:
    """int8 (G,): position of each gang's service type in :data:`SERVICE_TYPES`; found out for gangs that changed.
    ``by_owner``: service type by the kind of the pods' owner."""
    gangs, workspace = session.gangs, session.cluster.workspace
    bounds = tuple(queue.service_type for queue in session.ledger.queues)
    kept = workspace.outcomes.get("service types")
    if not isinstance(kept, Kept) or kept.bounds != bounds or kept.by_owner != by_owner:
        kept = workspace.outcomes["service types"] = Kept(bounds, by_owner)
    if kept.asked is not None and kept.asked() is gangs:
        return kept.answer
    numbers, version = gangs.numbers, workspace.gangs.versions
    kept.make_room(len(version))
    stale = np.flatnonzero((kept.version[numbers] != version[numbers]) | (kept.queue[numbers] != gangs.queue))
    known = dict[tuple[str, str, int], int]()
    codes, groups = list[int](), gangs.groups
    columns = (stale.tolist(), gangs.queue[stale].tolist(), gangs.member_kinds(stale))
    for gang, queue, kind in zip(*columns, strict=True):
        group = groups[gang]
        key = (group.service_type, group.owner_kind or kind, queue)
        code = known.get(key)
        if code is None:
            code = known[key] = SERVICE_CODE[session.base_service_type(gang, by_owner)]
        codes.append(code)
    at = numbers[stale]
    kept.codes[at], kept.version[at], kept.queue[at] = codes, version[at], gangs.queue[stale]
    kept.asked, kept.answer = weakref.ref(gangs), kept.codes[numbers]
    return kept.answer
