"""What plugins answer at the points of the per-pod cycle, see :mod:`scheduler_core.framework.extension_points`. Source:
document 001, 2.2.3; contracts 4."""

import msgspec


class Approve(msgspec.Struct, frozen=True, gc=False):
    """The pod may be bound."""


class Deny(msgspec.Struct, frozen=True, gc=False):
    """The pod goes back to the queue. ``reason``: why. ``timed_out``: its group waited too long, so all that wait with
    it are let go."""

    reason: str
    timed_out: bool = False


class Wait(msgspec.Struct, frozen=True, gc=False):
    """The pod keeps its place and is not bound yet; ``until`` in seconds since the epoch."""

    until: float
    reason: str = ""


APPROVE = Approve()
Permit = Approve | Deny | Wait


class Nomination(msgspec.Struct, frozen=True, gc=False):
    """Room that preemption makes: the node, and the tasks that have to leave it."""

    node: int
    victims: tuple[int, ...]
