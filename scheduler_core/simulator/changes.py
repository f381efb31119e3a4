"""What the world reports to its listeners."""

import enum
from collections.abc import Callable
from typing import Any

import msgspec


class Cause(enum.StrEnum):
    SUBMITTED = "submitted"
    MADE = "made"
    BOUND = "bound"
    STARTED = "started"
    EVICTED = "evicted"
    KILLED = "killed"
    SCALED = "scaled"
    GONE = "gone"
    FINISHED = "finished"
    REQUEUED = "requeued"
    ABORTED = "aborted"
    STATUS = "status"
    UPDATED = "updated"
    DELETED = "deleted"


class Change(msgspec.Struct, frozen=True, gc=False):
    """One object that changed. ``verb``: ``upsert`` or ``delete``. ``kind``: ``Pod``, ``PodGroup``, ``Job``,
    ``ReplicaSet``, ``Queue``, ``Node`` or ``PriorityClass``. ``key``: ``namespace/name``, or ``name`` for kinds without
    a namespace. ``cause``: why. ``value``: the object as after the change; for ``delete`` as it was last."""

    verb: str
    kind: str
    key: str
    cause: Cause
    value: Any


Listener = Callable[[Change], None]
