"""The scheduler's memory in PostgreSQL: one row a cluster, written in the transaction of the session that made it."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable

import msgspec

from tidesched_web.engine.bridge import decode_memory, encode_memory
from tidesched_web.engine.model import BadInput, Memory
from tidesched_web.engine.version import engine_version
from tidesched_web.scheduling.models import SessionMemory

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
    """Replace it, in the caller's transaction."""
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


def forget_promises(cluster_id: int, victims: Iterable[str]) -> None:
    """Drop reservations of cards that will not fall free: the evictions of ``victims`` were not made.

    In the transaction that says so.
    """
    stay = frozenset(victims)
    memory = load(cluster_id)
    if memory is None:
        return
    kept = tuple(one for one in memory.reservations if not stay.intersection(one.victims))
    if len(kept) == len(memory.reservations):
        return
    payload = encode_memory(msgspec.structs.replace(memory, reservations=kept))
    SessionMemory.objects.filter(cluster_id=cluster_id).update(
        payload=payload, digest=hashlib.sha256(payload).hexdigest()
    )
