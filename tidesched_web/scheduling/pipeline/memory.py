import datetime as dt
import hashlib
import logging
from collections.abc import Collection, Iterable, Mapping

import msgspec

from tidesched_web.engine.bridge import decode_memory, encode_memory
from tidesched_web.engine.model import BadInput, Memory, prolonged
from tidesched_web.engine.version import engine_version
from tidesched_web.scheduling.models import Session, SessionMemory

# A gang that may not be evicted is asked again after so long, then twice as long: where a disruption budget keeps it
# up to the longest, where the cluster refuses (a right, a webhook) soon, since that is mended by a person.
SPARE_SECONDS = 15.0
LONGEST_SPARE_SECONDS, LONGEST_REFUSED_SECONDS = 600.0, 20.0
# The same for a gang of which not all members could be bound.
BACK_OFF_SECONDS = 1.0
LONGEST_BACK_OFF_SECONDS = 60.0

_log = logging.getLogger(__name__)


def load(cluster_id: int) -> Memory | None:
    """The memory of the last session; None before the first one, or where another engine wrote an unreadable one."""
    row = SessionMemory.objects.filter(cluster_id=cluster_id).first()
    if row is None:
        return None
    try:
        return decode_memory(bytes(row.payload))
    except BadInput as error:
        _log.warning("cluster %s starts without memory: %s", cluster_id, error.message)
        return None


def store(cluster_id: int, session_id: int, memory: Memory) -> None:
    payload = encode_memory(memory)
    SessionMemory.objects.update_or_create(
        cluster_id=cluster_id,
        defaults={
            "session_id": session_id,
            "engine_version": engine_version(),
            "payload": payload,
            "digest": hashlib.sha256(payload).hexdigest(),
        },
    )


def spare(cluster_id: int, gang: str, why: str, *, at: dt.datetime, of_budget: bool) -> None:
    memory, now, rate = load(cluster_id) or Memory(), at.timestamp(), _clock_rate(cluster_id)
    longest = LONGEST_SPARE_SECONDS if of_budget else LONGEST_REFUSED_SECONDS
    rests = prolonged(memory.spared, gang, why, now=now, first=SPARE_SECONDS * rate, longest=longest * rate)
    _replace(cluster_id, msgspec.structs.replace(memory, spared=rests))


def back_off(cluster_id: int, gangs: Mapping[str, str], *, at: dt.datetime) -> None:
    """``gangs``: why the cluster did not bind them, all or in part: they are not tried again at once."""
    memory, now, rate = load(cluster_id) or Memory(), at.timestamp(), _clock_rate(cluster_id)
    rests, first, longest = memory.backing_off, BACK_OFF_SECONDS * rate, LONGEST_BACK_OFF_SECONDS * rate
    for gang, why in gangs.items():
        rests = prolonged(rests, gang, why, now=now, first=first, longest=longest)
    _replace(cluster_id, msgspec.structs.replace(memory, backing_off=rests))


def _clock_rate(cluster_id: int) -> float:
    """Seconds of the cluster's clock in a wall second, of late: delays spare the API server and count wall time."""
    last = list(Session.objects.filter(cluster_id=cluster_id).values_list("now", "started_at")[:2])
    if len(last) < 2:
        return 1.0
    (now, wall), (now_before, wall_before) = last
    passed = (wall - wall_before).total_seconds()
    return max(1.0, (now - now_before).total_seconds() / passed) if passed > 0 else 1.0


def _replace(cluster_id: int, memory: Memory) -> None:
    payload = encode_memory(memory)
    SessionMemory.objects.filter(cluster_id=cluster_id).update(
        payload=payload, digest=hashlib.sha256(payload).hexdigest()
    )


def not_evicted(cluster_id: int, gangs: Collection[str]) -> None:
    """``gangs``: lasting names of those that the cluster did not evict: they do not cool down from it."""
    memory = load(cluster_id) or Memory()
    kept = tuple(rest for rest in memory.spared if not (rest.cools and rest.gang in gangs))
    _replace(cluster_id, msgspec.structs.replace(memory, spared=kept))


def forget_promises(cluster_id: int, victims: Iterable[str]) -> None:
    """Drop reservations of cards that will not fall free, in the transaction that says so."""
    stay = frozenset(victims)
    memory = load(cluster_id)
    if memory is None:
        return
    kept = tuple(one for one in memory.reservations if not stay.intersection(one.victims))
    if len(kept) == len(memory.reservations):
        return
    _replace(cluster_id, msgspec.structs.replace(memory, reservations=kept))
