"""What all gangs of a session are for, as one column."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from scheduler_core.framework.session import Session
from scheduler_core.model.pod import ServiceType
from scheduler_core.model.podgroup import PodGroup

Codes = npt.NDArray[np.int8]

SERVICE_TYPES: tuple[ServiceType, ...] = tuple(ServiceType)
SERVICE_CODE: dict[ServiceType, int] = {kind: code for code, kind in enumerate(SERVICE_TYPES)}


class Column(msgspec.Struct, frozen=True, gc=False):
    """Codes and what they were made of; ``open``: gangs that only their pods can tell of."""

    groups: Sequence[PodGroup]
    bounds: tuple[str, ...]
    by_owner: dict[str, str]
    codes: Codes
    open: tuple[int, ...]


def service_codes(session: Session, by_owner: dict[str, str]) -> Codes:
    """int8 (G,): position of each gang's service type in :data:`SERVICE_TYPES`; kept while no PodGroup changes.

    Args:
        by_owner: service type by the kind of the pods' owner.
    """
    groups, masks = session.gangs.groups, session.cluster.workspace.masks
    bounds = tuple(queue.service_type for queue in session.ledger.queues)
    known = masks.get("service types")
    if (
        not isinstance(known, Column)
        or known.groups is not groups
        or known.bounds != bounds
        or known.by_owner != by_owner
    ):
        known = masks["service types"] = _make(session, bounds, by_owner)
    codes = known.codes
    if known.open:
        codes = codes.copy()
        for gang in known.open:
            codes[gang] = SERVICE_CODE[session.base_service_type(gang, by_owner)]
    return codes


def _make(session: Session, bounds: tuple[str, ...], by_owner: dict[str, str]) -> Column:
    groups, queues = session.gangs.groups, session.gangs.queue_list
    codes: Codes = np.zeros(len(groups), dtype=np.int8)
    kinds = dict[tuple[str, str, int], int]()
    loose = []
    for gang, (group, queue) in enumerate(zip(groups, queues, strict=True)):
        if not group.owner_kind and not group.service_type:
            loose.append(gang)
            continue
        key = (group.service_type, group.owner_kind, queue)
        code = kinds.get(key)
        if code is None:
            code = kinds[key] = SERVICE_CODE[session.base_service_type(gang, by_owner)]
        codes[gang] = code
    return Column(groups, bounds, by_owner, codes, tuple(loose))
