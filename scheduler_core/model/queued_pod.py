"""A pod that waits in the scheduling queue of the per-pod cycle."""

import enum

import msgspec


class Where(enum.StrEnum):
    ACTIVE = "active"
    BACKING_OFF = "backoff"
    UNSCHEDULABLE = "unschedulable"


class QueuedPod(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """One pod that waits.

    Attributes:
        pod: namespace/name. where: its queue.
        attempts: how often it was tried. tried: when it was last put aside, seconds since the epoch.
        digest: what it looked like then; another one means an update.
        nominated: node that preemption makes room on for it, empty = none.
        timed_out: how its group ran out of time, until it is tried again; empty = it did not."""

    pod: str
    where: Where = Where.ACTIVE
    attempts: int = 0
    tried: float = 0.0
    digest: str = ""
    nominated: str = ""
    timed_out: str = ""
